/// The API that a request came to, which decides what it may ask for, and the format of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// The miner identity listener: the routes of the specification.
    MinerId,
    /// The node's listener: the requests of a node that authenticates its connections, for one
    /// alias.
    Node,
    /// The wallet listener: the routes of its specification.
    Wallet,
    /// The payments listener: the routes for payers.
    Payments,
    /// The control socket, or this process: the routes of both services, and those below
    /// `/control/`.
    Control,
}

impl Api {
    /// The name in the log, and in the lines that tell where the server listens.
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
