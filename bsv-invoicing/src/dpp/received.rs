mod wire;

use std::borrow::Cow;
use std::collections::BTreeMap;

use bsv_tx::{Beef, Network, Transaction};
use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use self::wire::{
    Bip270Payment, Bip270Terms, Bip274FeeRate, BrcFees, BrcMode, BrcOption, BrcPayment, BrcTerms,
    BrcTransaction, GoDppPayment, GoDppTerms, Keys, MerchantData, NoCallbacks, Output, UnixSeconds,
};
use super::dialect::{Dialect, HYBRID_MODE};
use super::{Destination, Fees, Merchant, Terms, json};
use crate::model::invoice::MAX_SATOSHIS;

/// The most outputs that a payer makes for one payee.
pub const MAX_DESTINATIONS: usize = 1000;

/// Terms that a payer has received, and the parts that the payment must repeat.
#[derive(Clone, Debug)]
pub struct ReceivedTerms {
    /// What the payee asks for. The sum of the amounts is from 1 to [`MAX_SATOSHIS`], and the fee
    /// rates are for at least one byte. Expiry is not checked.
    pub terms: Terms,
    echo: Echo,
}

/// The parts of the terms that a payment repeats.
#[derive(Clone, Debug)]
enum Echo {
    GoDpp { merchant_data: Option<Box<RawValue>> },
    Brc { option_id: String },
    Bip270 { merchant_data: Option<Box<RawValue>> },
}

/// Why terms cannot be paid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TermsError {
    /// They cannot be understood.
    #[error("the payment terms cannot be understood: {0}")]
    Malformed(String),
    /// They are for another network.
    #[error("the payee is on the network \"{payee}\", this wallet is on {ours}")]
    OtherNetwork {
        /// The payee's name for its network.
        payee: String,
        /// This wallet's network.
        ours: Network,
    },
    /// They ask for something that this wallet does not support.
    #[error("the payee asks for {0}, which this wallet does not support")]
    Unsupported(String),
}

impl ReceivedTerms {
    /// Reads a payee's answer to a GET of its payment URL, for a wallet on `network`.
    pub fn from_json(body: &[u8], network: Network) -> Result<Self, TermsError> {
        let Keys { modes, destinations, outputs } = read(body)?;
        match (modes, destinations, outputs) {
            (Some(_), _, _) => Self::from_brc(read(body)?, network),
            (None, Some(_), _) => Self::from_go_dpp(read(body)?, network),
            (None, None, Some(_)) => Self::from_bip270(read(body)?, network),
            (None, None, None) => Err(TermsError::Malformed(
                "they have none of the members destinations, modes and outputs".to_owned(),
            )),
        }
    }

    /// The dialect of the terms, and of the payment that the payee expects.
    pub fn dialect(&self) -> Dialect {
        match self.echo {
            Echo::GoDpp { .. } => Dialect::GoDpp,
            Echo::Brc { .. } => Dialect::Brc,
            Echo::Bip270 { .. } => Dialect::Bip270,
        }
    }

    /// The body to post: the payment of these terms with a signed transaction, and with its
    /// ancestors if the payee [wants](Terms::wants_ancestry) them. The same input always gives the
    /// same bytes, so that the body can be stored and posted again.
    pub fn payment(
        &self,
        transaction: &Transaction,
        ancestry: Option<&Beef>,
        memo: &str,
    ) -> Vec<u8> {
        let hex = transaction.to_hex();
        let ancestry = ancestry.map(|beef| hex::encode(beef.to_bytes()));
        match &self.echo {
            Echo::GoDpp { merchant_data } => json::write(&GoDppPayment {
                merchant_data: merchant_data.as_deref(),
                refund_to: None,
                memo,
                ancestry: ancestry.as_deref().unwrap_or_default(),
                raw_tx: &hex,
                proof_callbacks: NoCallbacks {},
            }),
            Echo::Brc { option_id } => json::write(&BrcPayment {
                mode_id: HYBRID_MODE,
                mode: BrcMode { option_id, transactions: [&hex], ancestors: ancestry.as_deref() },
                memo,
            }),
            Echo::Bip270 { merchant_data } => json::write(&Bip270Payment {
                merchant_data: merchant_data.as_deref(),
                transaction: &hex,
                memo,
            }),
        }
    }

    fn from_go_dpp(terms: GoDppTerms<'_>, ours: Network) -> Result<Self, TermsError> {
        let known = match ours {
            Network::Livenet => "mainnet",
            Network::Testnet => "testnet",
            Network::Regtest => "regtest",
        };
        check_network(terms.network, &[known], ours)?;
        let (merchant, reference) = merchant(terms.merchant_data);
        Ok(Self {
            terms: Terms {
                network: ours,
                destinations: destinations("destinations.outputs", terms.destinations.outputs)?,
                created_at: terms.creation_timestamp,
                expires_at: terms.expiration_timestamp,
                payment_url: terms.payment_url.unwrap_or_default(),
                memo: terms.memo.unwrap_or_default(),
                merchant,
                reference,
                fees: Some(Fees {
                    standard: terms.fees.standard.mining_fee.into(),
                    data: terms.fees.data.mining_fee.into(),
                }),
                wants_ancestry: terms.ancestry_required || terms.spv_required,
            },
            echo: Echo::GoDpp { merchant_data: terms.merchant_data.map(ToOwned::to_owned) },
        })
    }

    fn from_brc(terms: BrcTerms<'_>, ours: Network) -> Result<Self, TermsError> {
        // BRC-27 asks payees in production to name the chain. Some other payees do so as well.
        let known = match ours {
            Network::Livenet => ["bitcoin-sv", "bitcoin", "mainnet"].as_slice(),
            Network::Testnet => &["testnet", "test", "bitcoin-sv"],
            Network::Regtest => &["regtest", "bitcoin-sv"],
        };
        check_network(terms.network, known, ours)?;
        let (option_id, BrcChoice { outputs, fees, wants_ancestry }) = choose_option(&terms.modes)?;
        let beneficiary = terms.beneficiary.and_then(|raw| json::read_text(raw.get()).ok());
        let beneficiary: MerchantData = beneficiary.unwrap_or_default();
        let reference = beneficiary.payment_reference.clone().unwrap_or_default();
        Ok(Self {
            terms: Terms {
                network: ours,
                destinations: destinations("outputs.native", outputs)?,
                created_at: terms.creation_timestamp.0,
                expires_at: terms.expiration_timestamp.map(|UnixSeconds(time)| time),
                payment_url: terms.payment_url.unwrap_or_default(),
                memo: terms.memo.unwrap_or_default(),
                merchant: beneficiary.into(),
                reference,
                fees,
                wants_ancestry,
            },
            echo: Echo::Brc { option_id },
        })
    }

    fn from_bip270(terms: Bip270Terms<'_>, ours: Network) -> Result<Self, TermsError> {
        let known = match ours {
            Network::Livenet => ["bitcoin", "bitcoin-sv", "mainnet"].as_slice(),
            Network::Testnet => &["test", "testnet"],
            Network::Regtest => &["test", "regtest"],
        };
        check_network(terms.network, known, ours)?;
        let reference = terms.merchant_data.and_then(|raw| json::read_text(raw.get()).ok());
        let fee_rate: Option<Bip274FeeRate> =
            terms.fee_rate.and_then(|raw| json::read_text(raw.get()).ok());
        Ok(Self {
            terms: Terms {
                network: ours,
                destinations: destinations("outputs", terms.outputs)?,
                created_at: terms.creation_timestamp.0,
                expires_at: terms.expiration_timestamp.map(|UnixSeconds(time)| time),
                payment_url: terms.payment_url.unwrap_or_default(),
                memo: terms.memo.unwrap_or_default(),
                merchant: Merchant::default(),
                reference: reference.unwrap_or_default(),
                fees: fee_rate.and_then(Bip274FeeRate::into_fees),
                wants_ancestry: false,
            },
            echo: Echo::Bip270 { merchant_data: terms.merchant_data.map(ToOwned::to_owned) },
        })
    }
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, TermsError> {
    json::read(body).map_err(TermsError::Malformed)
}

fn unsupported(what: &str) -> TermsError {
    TermsError::Unsupported(what.to_owned())
}

fn check_network(payee: String, known: &[&str], ours: Network) -> Result<(), TermsError> {
    if known.contains(&payee.as_str()) {
        return Ok(());
    }
    Err(TermsError::OtherNetwork { payee: json::shorten(payee), ours })
}

fn destinations(member: &str, outputs: Vec<Output>) -> Result<Vec<Destination>, TermsError> {
    if outputs.is_empty() {
        return Err(TermsError::Malformed(format!("{member} is empty")));
    }
    if outputs.len() > MAX_DESTINATIONS {
        return Err(TermsError::Unsupported(format!("more than {MAX_DESTINATIONS} outputs")));
    }
    let total = outputs.iter().try_fold(0u64, |sum, output| sum.checked_add(output.amount));
    if !total.is_some_and(|total| (1..=MAX_SATOSHIS).contains(&total)) {
        let reason = format!("{member} must be worth from 1 to {MAX_SATOSHIS} satoshis");
        return Err(TermsError::Malformed(reason));
    }
    let destination = |Output { amount, script, description }| Destination {
        satoshis: amount,
        script,
        description: description.unwrap_or_default(),
    };
    Ok(outputs.into_iter().map(destination).collect())
}

/// Merchant data is for people. A wallet can do without it, so invalid data is ignored. The payment
/// repeats it unchanged.
fn merchant(raw: Option<&RawValue>) -> (Merchant, String) {
    let data = raw.and_then(|raw| json::read_text(raw.get()).ok());
    let mut data: MerchantData = data.unwrap_or_default();
    let reference = data.extended_data.take().and_then(|extended| extended.payment_reference);
    (data.into(), reference.unwrap_or_default())
}

/// The first option, in the order of names, that this wallet can pay, and what it asks for.
fn choose_option(
    modes: &BTreeMap<Cow<'_, str>, &RawValue>,
) -> Result<(String, BrcChoice), TermsError> {
    let hybrid = modes.get(HYBRID_MODE).ok_or_else(|| unsupported("an unknown payment mode"))?;
    let member = format!("modes.{HYBRID_MODE}");
    let options: BTreeMap<Cow<'_, str>, &RawValue> = part(&member, hybrid)?;
    let mut refusal = None;
    for (option_id, option) in options {
        match read_option(&format!("{member}.{option_id}"), option) {
            Ok(choice) => return Ok((option_id.into_owned(), choice)),
            Err(error) => drop(refusal.get_or_insert(error)),
        }
    }
    Err(refusal.unwrap_or_else(|| TermsError::Malformed(format!("{member} has no option"))))
}

/// What an option of BRC-27 asks for.
struct BrcChoice {
    outputs: Vec<Output>,
    fees: Option<Fees>,
    wants_ancestry: bool,
}

fn read_option(member: &str, option: &RawValue) -> Result<BrcChoice, TermsError> {
    let BrcOption { transactions } = part(member, option)?;
    let Ok([transaction]) = <[BrcTransaction<'_>; 1]>::try_from(transactions) else {
        return Err(unsupported("no transaction or more than one"));
    };
    let BrcTransaction { mut outputs, inputs, policies } = transaction;
    if inputs.is_some_and(|inputs| inputs.values().any(|raw| !is_empty(raw))) {
        return Err(unsupported("inputs of its choice"));
    }
    let native = outputs.remove("native");
    if outputs.values().any(|raw| !is_empty(raw)) {
        return Err(unsupported("tokens"));
    }
    let policies = policies.unwrap_or_default();
    if policies.lock_time.is_some_and(|time| time != 0) {
        return Err(unsupported("a lock time"));
    }
    let native = native.ok_or_else(|| unsupported("no native output"))?;
    let outputs = part(&format!("{member}.transactions[0].outputs.native"), native)?;
    let fees = policies.fees.and_then(BrcFees::into_fees);
    Ok(BrcChoice { outputs, fees, wants_ancestry: policies.spv_required })
}

/// Reads a part of the terms that the first pass left as raw JSON.
fn part<'a, T: Deserialize<'a>>(member: &str, raw: &'a RawValue) -> Result<T, TermsError> {
    json::read_text(raw.get())
        .map_err(|reason| TermsError::Malformed(json::shorten(format!("{member}: {reason}"))))
}

fn is_empty(raw: &RawValue) -> bool {
    matches!(raw.get(), "null" | "[]" | "{}")
}
