/// What a request came over, which decides what it may ask for and how failures are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// The miner identity listener: the routes of the specification.
    MinerId,
    /// The node's listener: what a node asks to authenticate its connections, for one alias.
    Node,
    /// The wallet listener: the routes of its specification.
    Wallet,
    /// The payments listener: what payers need.
    Payments,
    /// The control socket, or this very process: the routes of both services, and those below
    /// `/control/`.
    Control,
}

impl Surface {
    /// Its name in the log, and in the lines that tell where the server listens.
    pub fn name(self) -> &'static str {
        match self {
            Self::MinerId => "minerid",
            Self::Node => "node",
            Self::Wallet => "wallet",
            Self::Payments => "payments",
            Self::Control => "control",
        }
    }
}
