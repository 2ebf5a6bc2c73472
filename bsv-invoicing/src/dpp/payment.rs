mod ancestry;
mod refund_to;

use std::fmt;

use bsv_tx::BeefError;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

pub use self::refund_to::MAX_REFUND_TO_LEN;

use self::ancestry::with_ancestry;
use self::refund_to::RefundTo;
use super::dialect::{Dialect, HYBRID_MODE};
use super::json::{self, HexBytes};

/// A payment as a payee reads it. The transaction is not decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    /// The dialect of the payment, and of the answer that the payer expects.
    pub dialect: Dialect,
    /// The encoded transaction in any [form](bsv_tx::TransactionForm). It may be invalid. If the
    /// payer has sent all ancestors beside it, it is BEEF.
    pub transaction: Vec<u8>,
    /// The payer's text, of any length. Empty if there is none.
    pub memo: String,
    /// Where the payer wants refunds, in at most [`MAX_REFUND_TO_LEN`] characters: a paymail, or
    /// with BRC-27 an address or a script. From a list of outputs (BIP270) it is the first script
    /// within that length, in lower-case hexadecimal digits. Amounts are dropped.
    pub refund_to: Option<String>,
    /// The reference from the terms, if the payer repeats it.
    pub reference: Option<String>,
}

/// Why a payment cannot be accepted. The texts are for the payer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PaymentError {
    /// It is not JSON, or a member is invalid.
    #[error("the payment cannot be read: {0}")]
    Malformed(String),
    /// It is empty.
    #[error("the body is empty: a transaction is expected")]
    Nothing,
    /// It has no transaction.
    #[error(
        "the payment has no transaction: it must have one of the members rawTx (go-dpp), mode \
         (BRC-27) and transaction (BIP270)"
    )]
    NoTransaction,
    /// It mixes dialects. Only BRC-27 (1.2) allows that: the deprecated `transaction` beside
    /// `mode`, if both hold the same transaction.
    #[error(
        "the payment must have one of the members rawTx (go-dpp), mode (BRC-27) and transaction \
         (BIP270), not several, unless mode and transaction hold the same transaction"
    )]
    SeveralDialects,
    /// It uses a payment mode that the terms do not offer.
    #[error("the payment's modeId must be {HYBRID_MODE}, the only mode that is offered")]
    UnknownMode,
    /// The ancestors beside the transaction are malformed.
    #[error("the ancestry of the transaction is not the BEEF that it begins like: {0}")]
    Ancestry(#[from] BeefError),
    /// The place for refunds is too long.
    #[error("the place for refunds must have at most {MAX_REFUND_TO_LEN} characters")]
    RefundToTooLong,
}

impl Payment {
    /// Reads the body of a POST to a payment URL.
    pub fn from_json(body: &[u8]) -> Result<Self, PaymentError> {
        let body: Body<'_> = json::read(body).map_err(PaymentError::Malformed)?;
        let transactions = (body.raw_tx.into_bytes(), body.mode, body.transaction.into_bytes());
        let (dialect, transaction, ancestry) = match transactions {
            (Some(transaction), None, None) => (Dialect::GoDpp, transaction, body.ancestry),
            (None, Some(mode), None) => (Dialect::Brc, mode.transactions.0, mode.ancestors),
            (None, Some(mode), Some(deprecated)) if mode.transactions.0 == deprecated => {
                (Dialect::Brc, deprecated, mode.ancestors)
            }
            (None, None, Some(transaction)) => (Dialect::Bip270, transaction, None),
            (None, None, None) => return Err(PaymentError::NoTransaction),
            _ => return Err(PaymentError::SeveralDialects),
        };
        if dialect == Dialect::Brc && body.mode_id.as_deref() != Some(HYBRID_MODE) {
            return Err(PaymentError::UnknownMode);
        }
        let refund_to = match dialect {
            Dialect::GoDpp | Dialect::Bip270 => body.refund_to.and_then(|RefundTo(place)| place),
            Dialect::Brc => body.originator.and_then(Originator::refund_to),
        };
        let refund_to = refund_to.filter(|text| !text.is_empty());
        if refund_to.as_ref().is_some_and(|text| text.chars().nth(MAX_REFUND_TO_LEN).is_some()) {
            return Err(PaymentError::RefundToTooLong);
        }
        Ok(Self {
            dialect,
            transaction: with_ancestry(transaction, ancestry)?,
            memo: body.memo.unwrap_or_default(),
            refund_to,
            reference: body.merchant_data.and_then(|raw| reference(dialect, raw)),
        })
    }
}

/// The reference that the payer repeats. The payer can change it, so that a wrong one is ignored.
fn reference(dialect: Dialect, merchant_data: &RawValue) -> Option<String> {
    let text = merchant_data.get();
    match dialect {
        Dialect::GoDpp => {
            let data: MerchantData = json::read_text(text).ok()?;
            data.extended_data?.payment_reference
        }
        Dialect::Brc => None,
        Dialect::Bip270 => json::read_text(text).ok(),
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(default)]
    raw_tx: TransactionText,
    #[serde(borrow)]
    ancestry: Option<&'a RawValue>,
    mode_id: Option<String>,
    #[serde(borrow)]
    mode: Option<Mode<'a>>,
    #[serde(default)]
    transaction: TransactionText,
    memo: Option<String>,
    refund_to: Option<RefundTo>,
    originator: Option<Originator>,
    #[serde(borrow)]
    merchant_data: Option<&'a RawValue>,
}

/// A transaction. Proxies write an empty string or null if there is none.
#[derive(Default, serde::Deserialize)]
struct TransactionText(Option<HexBytes>);

impl TransactionText {
    fn into_bytes(self) -> Option<Vec<u8>> {
        self.0.map(|HexBytes(bytes)| bytes).filter(|bytes| !bytes.is_empty())
    }
}

#[derive(serde::Deserialize)]
struct Mode<'a> {
    transactions: OneTransaction,
    #[serde(borrow)]
    ancestors: Option<&'a RawValue>,
}

/// A list of one transaction. Longer lists are not read to their end.
struct OneTransaction(Vec<u8>);

impl<'de> Deserialize<'de> for OneTransaction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneVisitor;

        impl<'de> Visitor<'de> for OneVisitor {
            type Value = OneTransaction;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of one transaction")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneTransaction, A::Error> {
                let first: Option<HexBytes> = list.next_element()?;
                let HexBytes(bytes) = first.ok_or_else(|| de::Error::invalid_length(0, &self))?;
                if list.next_element::<IgnoredAny>()?.is_some() {
                    return Err(de::Error::custom("one transaction is asked for, not several"));
                }
                Ok(OneTransaction(bytes))
            }
        }

        deserializer.deserialize_seq(OneVisitor)
    }
}

#[derive(serde::Deserialize)]
struct Originator {
    paymail: Option<String>,
    return_address: Option<String>,
    return_script: Option<String>,
}

impl Originator {
    fn refund_to(self) -> Option<String> {
        let places = [self.paymail, self.return_address, self.return_script];
        places.into_iter().flatten().find(|place| !place.is_empty())
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct MerchantData {
    extended_data: Option<ExtendedData>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExtendedData {
    payment_reference: Option<String>,
}
