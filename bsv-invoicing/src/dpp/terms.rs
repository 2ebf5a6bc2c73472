use bsv_tx::{Network, Script};
use serde::{Serialize, Serializer};

use super::{Dialect, json};
use crate::model::time::Timestamp;

/// What a payee asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The network of the payment.
    pub network: Network,
    /// The outputs to pay. There is at least one.
    pub destinations: Vec<Destination>,
    /// When the terms were made.
    pub created_at: Timestamp,
    /// Until when the terms can be paid, if there is a limit.
    pub expires_at: Option<Timestamp>,
    /// The URL to which the payee wants the payment, absolute or relative to the URL of the terms.
    /// Empty if the payee names none: the payment then goes to the URL of the terms. Payers of
    /// go-dpp always post there.
    pub payment_url: String,
    /// What the payment is for, in the payee's words.
    pub memo: String,
    /// The payee.
    pub merchant: Merchant,
    /// The payee's name for the payment. This wallet uses the invoice's id. Empty if the payee
    /// names none.
    pub reference: String,
    /// The fees that the payer must leave for the miner, if the payee states them. go-dpp requires
    /// them. BIP270 has one rate for all bytes (the `feeRate` of BIP274), which is the standard
    /// rate.
    pub fees: Option<Fees>,
    /// Whether the payee asks for the ancestors of the transaction, back to mined ones. BIP270 has no
    /// member for that.
    pub wants_ancestry: bool,
}

/// An output that the payer's transaction must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The amount, exactly.
    pub satoshis: u64,
    /// The locking script.
    pub script: Script,
    /// What it is for, in the payee's words.
    pub description: String,
}

/// A payee's description of itself. Members that it does not state are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merchant {
    /// The name.
    pub name: String,
    /// The URL of a picture.
    pub avatar: String,
    /// An e-mail address.
    pub email: String,
    /// A postal address.
    pub address: String,
}

/// Fees of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fees {
    /// The rate for all bytes except data.
    pub standard: FeeRate,
    /// The rate for the bytes of outputs that carry data.
    pub data: FeeRate,
}

/// A price in satoshis for a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FeeRate {
    /// The price.
    pub satoshis: u64,
    /// The number of bytes. It is not 0.
    pub bytes: u64,
}

impl FeeRate {
    /// The fee for this many bytes, rounded down as in wallets that speak go-dpp.
    ///
    /// # Panics
    /// If the rate is for 0 bytes.
    pub fn fee(self, bytes: u64) -> u64 {
        let fee = u128::from(bytes) * u128::from(self.satoshis) / u128::from(self.bytes);
        u64::try_from(fee).unwrap_or(u64::MAX)
    }
}

impl Terms {
    /// The sum to pay, without the fee.
    pub fn satoshis(&self) -> u64 {
        let amounts = self.destinations.iter().map(|destination| destination.satoshis);
        amounts.fold(0, u64::saturating_add)
    }

    /// The terms as a payee writes them.
    pub fn to_json(&self, dialect: Dialect) -> Vec<u8> {
        match dialect {
            Dialect::GoDpp => json::write(&self.to_go_dpp()),
            Dialect::Brc => json::write(&self.to_brc()),
            Dialect::Bip270 => json::write(&self.to_bip270()),
        }
    }

    fn to_go_dpp(&self) -> GoDppTerms<'_> {
        let Merchant { name, avatar, email, address } = &self.merchant;
        GoDppTerms {
            network: network_name(self.network, Dialect::GoDpp),
            ancestry_required: self.wants_ancestry,
            destinations: Outputs { outputs: self.outputs() },
            creation_timestamp: self.created_at,
            expiration_timestamp: GoTime(self.expires_at),
            payment_url: &self.payment_url,
            memo: &self.memo,
            merchant_data: MerchantData {
                avatar,
                name,
                email,
                address,
                extended_data: ExtendedData { payment_reference: &self.reference },
            },
            fees: self.fees.map(|Fees { standard, data }| FeeQuote {
                data: Quote::same(data),
                standard: Quote::same(standard),
            }),
        }
    }

    fn to_brc(&self) -> BrcTerms<'_> {
        let Merchant { name, avatar, email, address } = &self.merchant;
        let transaction = BrcTransaction {
            outputs: Native { native: self.outputs() },
            policies: Policies {
                fees: self.fees.map(|Fees { standard, data }| FeeQuote { data, standard }),
                spv_required: self.wants_ancestry,
            },
        };
        BrcTerms {
            network: network_name(self.network, Dialect::Brc),
            version: "1.0",
            creation_timestamp: seconds(self.created_at),
            expiration_timestamp: self.expires_at.map(seconds),
            memo: &self.memo,
            payment_url: &self.payment_url,
            beneficiary: Beneficiary {
                name,
                email,
                address,
                payment_reference: &self.reference,
                avatar: Some(avatar.as_str()).filter(|avatar| !avatar.is_empty()),
            },
            modes: Modes {
                hybrid: Options { option: Transactions { transactions: [transaction] } },
            },
        }
    }

    fn to_bip270(&self) -> Bip270Terms<'_> {
        Bip270Terms {
            network: network_name(self.network, Dialect::Bip270),
            outputs: self.outputs(),
            creation_timestamp: seconds(self.created_at),
            expiration_timestamp: self.expires_at.map(seconds),
            memo: &self.memo,
            payment_url: &self.payment_url,
            merchant_data: &self.reference,
            fee_rate: self.fees.map(|fees| Bip274FeeRate {
                satoshis_per_byte: fees.standard.satoshis as f64 / fees.standard.bytes as f64,
            }),
        }
    }

    fn outputs<'a>(&'a self) -> Vec<Output<'a>> {
        let output = |destination: &'a Destination| Output {
            amount: destination.satoshis,
            script: &destination.script,
            description: &destination.description,
        };
        self.destinations.iter().map(output).collect()
    }
}

/// A payee's name for a network.
fn network_name(network: Network, dialect: Dialect) -> &'static str {
    match (dialect, network) {
        (Dialect::GoDpp, Network::Livenet) => "mainnet",
        (Dialect::Brc, Network::Livenet) => "bitcoin-sv",
        (Dialect::Bip270, Network::Livenet) => "bitcoin",
        (Dialect::Bip270, _) => "test",
        (Dialect::GoDpp | Dialect::Brc, Network::Testnet) => "testnet",
        (Dialect::GoDpp | Dialect::Brc, Network::Regtest) => "regtest",
    }
}

fn seconds(time: Timestamp) -> u64 {
    time.as_micros() / 1_000_000
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GoDppTerms<'a> {
    network: &'static str,
    ancestry_required: bool,
    destinations: Outputs<'a>,
    creation_timestamp: Timestamp,
    expiration_timestamp: GoTime,
    payment_url: &'a str,
    memo: &'a str,
    merchant_data: MerchantData<'a>,
    fees: Option<FeeQuote<Quote>>,
}

/// The text that Go writes for a missing time.
pub(super) const NO_GO_TIME: &str = "0001-01-01T00:00:00Z";

struct GoTime(Option<Timestamp>);

impl Serialize for GoTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(time) => time.serialize(serializer),
            None => NO_GO_TIME.serialize(serializer),
        }
    }
}

#[derive(Serialize)]
struct Outputs<'a> {
    outputs: Vec<Output<'a>>,
}

#[derive(Serialize)]
struct Output<'a> {
    amount: u64,
    #[serde(serialize_with = "script_hex")]
    script: &'a Script,
    description: &'a str,
}

fn script_hex<S: Serializer>(script: &Script, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&script.to_hex())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MerchantData<'a> {
    avatar: &'a str,
    name: &'a str,
    email: &'a str,
    address: &'a str,
    extended_data: ExtendedData<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExtendedData<'a> {
    payment_reference: &'a str,
}

#[derive(Serialize)]
struct FeeQuote<Q> {
    data: Q,
    standard: Q,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Quote {
    mining_fee: FeeRate,
    relay_fee: FeeRate,
}

impl Quote {
    fn same(rate: FeeRate) -> Self {
        Self { mining_fee: rate, relay_fee: rate }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BrcTerms<'a> {
    network: &'static str,
    version: &'static str,
    creation_timestamp: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiration_timestamp: Option<u64>,
    memo: &'a str,
    payment_url: &'a str,
    beneficiary: Beneficiary<'a>,
    modes: Modes<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Beneficiary<'a> {
    name: &'a str,
    email: &'a str,
    address: &'a str,
    payment_reference: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    avatar: Option<&'a str>,
}

#[derive(Serialize)]
struct Modes<'a> {
    #[serde(rename = "ef63d9775da5")]
    hybrid: Options<'a>,
}

/// The name of the only option is the one that some payers require.
#[derive(Serialize)]
struct Options<'a> {
    #[serde(rename = "choiceID0")]
    option: Transactions<'a>,
}

#[derive(Serialize)]
struct Transactions<'a> {
    transactions: [BrcTransaction<'a>; 1],
}

#[derive(Serialize)]
struct BrcTransaction<'a> {
    outputs: Native<'a>,
    policies: Policies,
}

#[derive(Serialize)]
struct Native<'a> {
    native: Vec<Output<'a>>,
}

#[derive(Serialize)]
struct Policies {
    #[serde(skip_serializing_if = "Option::is_none")]
    fees: Option<FeeQuote<FeeRate>>,
    #[serde(rename = "SPVRequired")]
    spv_required: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bip270Terms<'a> {
    network: &'static str,
    outputs: Vec<Output<'a>>,
    creation_timestamp: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiration_timestamp: Option<u64>,
    memo: &'a str,
    payment_url: &'a str,
    merchant_data: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fee_rate: Option<Bip274FeeRate>,
}

/// The member that BIP274 adds to the terms of BIP270.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bip274FeeRate {
    satoshis_per_byte: f64,
}
