/// How the messages are written. A payment's dialect shows in its members, and so does that of terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// What wallets spoke in 2022, after the Go library of this name.
    GoDpp,
    /// BRC-27 with the hybrid payment mode (BRC-54), over HTTP (BRC-55).
    Brc,
    /// BIP270, the simplified payment protocol.
    Bip270,
}

/// The one payment mode of BRC-27 that is spoken here, the hybrid payment mode (BRC-54).
pub(super) const HYBRID_MODE: &str = "ef63d9775da5";

impl Dialect {
    /// A short name, which stays the same and can be stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::GoDpp => "go-dpp",
            Self::Brc => "brc-27",
            Self::Bip270 => "bip-270",
        }
    }

    /// The dialect of this [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::GoDpp, Self::Brc, Self::Bip270].into_iter().find(|dialect| dialect.name() == name)
    }

    /// The media type that who asks for terms names in `Accept`.
    pub fn request_type(self) -> &'static str {
        match self {
            Self::GoDpp | Self::Brc => "application/json",
            Self::Bip270 => "application/bitcoinsv-paymentrequest",
        }
    }

    /// The `Content-Type` of terms. That of BIP270 is not its [`request_type`](Self::request_type): ElectrumSV asks for
    /// that, and takes only what calls itself JSON.
    pub fn terms_type(self) -> &'static str {
        match self {
            Self::GoDpp | Self::Brc => "application/json",
            Self::Bip270 => "application/json; charset=utf-8",
        }
    }

    /// The `Content-Type` of a payment.
    pub fn payment_type(self) -> &'static str {
        match self {
            Self::GoDpp | Self::Brc => "application/json",
            Self::Bip270 => "application/bitcoinsv-payment",
        }
    }

    /// The `Content-Type` of an acknowledgement.
    pub fn acknowledgement_type(self) -> &'static str {
        match self {
            Self::GoDpp | Self::Brc => "application/json",
            Self::Bip270 => "application/bitcoinsv-paymentack",
        }
    }
}
