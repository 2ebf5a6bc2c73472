/// The form of the messages. The members of terms and of a payment show their dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The form that wallets used in 2022, named after the Go library go-dpp.
    GoDpp,
    /// BRC-27 with the hybrid payment mode (BRC-54), over HTTP (BRC-55).
    Brc,
    /// BIP270, the simplified payment protocol.
    Bip270,
}

/// The only payment mode of BRC-27 that the wallet supports: the hybrid payment mode (BRC-54).
pub(super) const HYBRID_MODE: &str = "ef63d9775da5";

impl Dialect {
    /// A short name. It never changes, so that it can be stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::GoDpp => "go-dpp",
            Self::Brc => "brc-27",
            Self::Bip270 => "bip-270",
        }
    }

    /// The dialect with this [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::GoDpp, Self::Brc, Self::Bip270].into_iter().find(|dialect| dialect.name() == name)
    }

    /// The media type that a payer names in `Accept` when it asks for terms.
    pub fn request_type(self) -> &'static str {
        match self {
            Self::GoDpp | Self::Brc => "application/json",
            Self::Bip270 => "application/bitcoinsv-paymentrequest",
        }
    }

    /// The `Content-Type` of terms. For BIP270 it is not the [`request_type`](Self::request_type),
    /// because ElectrumSV asks for that type and accepts only JSON.
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
