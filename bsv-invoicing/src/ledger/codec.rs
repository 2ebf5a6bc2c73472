//! How keys and rows become bytes.
//!
//! Keys are in the order of [`Ord`], compared as bytes: numbers are big-endian, and texts end with a mark that is
//! lower than every character. Rows are CBOR (RFC 8949): each member and variant has a number. A member that was added
//! later is absent in older rows, and has a default. Rows that are bytes already stay these bytes.

use std::fmt::Debug;

use bsv_tx::{OutPoint, Txid};
use minicbor::Decoder;

use crate::ledger::events::EventRow;
use crate::ledger::figures::Figures;
use crate::ledger::idempotency::{Answered, Route};
use crate::model::coin::{Chain, KeyPath, Trust};
use crate::model::delivery::Delivery;
use crate::model::event::LogName;
use crate::model::invoice::Invoice;
use crate::model::outgoing::OutgoingRecord;
use crate::model::process::{Claimed, ProcessId, Task};
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::settlement::{PaymentRules, Received, Shallowness};
use crate::model::stored::{AccountStart, CopyEnd, FollowedBlock, Paid, Reorganised, RescanFrom};
use crate::model::time::Timestamp;
use crate::model::transaction::{FollowedUntil, FoundProof, TransactionRecord};
use crate::model::user::UserDraft;
use crate::model::webhook::{Webhook, WebhookId};
use crate::model::withdrawal::WithdrawalRecord;

/// A row cannot be read, or does not fit together with other rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stored record is damaged: {0}")]
pub struct Damaged(pub String);

impl Damaged {
    /// A row that another one names is missing.
    pub(crate) fn missing(what: &str) -> Self {
        Self(format!("{what} is missing"))
    }
}

/// A key.
pub trait RowKey: Clone + Ord + Debug + Send {
    /// Appends its bytes.
    fn encode(&self, bytes: &mut Vec<u8>);

    /// Takes its bytes from the beginning of others.
    fn decode(bytes: &mut &[u8]) -> Result<Self, Damaged>;
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Damaged> {
    let (taken, rest) =
        bytes.split_first_chunk().ok_or_else(|| Damaged("a key that is too short".to_owned()))?;
    *bytes = rest;
    Ok(*taken)
}

impl<const N: usize> RowKey for [u8; N] {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, Damaged> {
        take(bytes)
    }
}

macro_rules! number_keys {
    ($($number:ty),*) => {
        $(impl RowKey for $number {
            fn encode(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_be_bytes());
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, Damaged> {
                take(bytes).map(Self::from_be_bytes)
            }
        })*
    };
}
number_keys!(u8, u32, u64);

/// A key that stands for another one, in whose form and order it is stored.
macro_rules! keys_as {
    ($($key:ty as $stored:ty: |$own:ident| $to:expr, |$read:ident| $from:expr;)*) => {
        $(impl RowKey for $key {
            fn encode(&self, bytes: &mut Vec<u8>) {
                let $own = self;
                <$stored as RowKey>::encode(&$to, bytes);
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, Damaged> {
                let $read = <$stored as RowKey>::decode(bytes)?;
                $from.ok_or_else(|| Damaged(format!("{:?} is no {}", $read, stringify!($key))))
            }
        })*
    };
}
keys_as! {
    bool as u8: |it| u8::from(*it), |it| [false, true].get(usize::from(it)).copied();
    Txid as [u8; 32]: |it| *it.as_bytes(), |it| Some(Self::from_bytes(it));
    Timestamp as u64: |it| it.as_micros(), |it| Some(Self::from_micros(it));
    WebhookId as u64: |it| it.to_number(), |it| Some(Self::from_number(it));
    ProcessId as [u8; 16]: |it| it.to_bytes(), |it| Some(Self::from_bytes(it));
    Task as (u8, [u8; 32]): |it| it.to_parts(), |it| Self::from_parts(it.0, it.1);
    OutPoint as (Txid, u32): |it| (it.txid, it.vout), |it| Some(Self { txid: it.0, vout: it.1 });
    ReceiptKey as (u64, u32): |it| (it.maker, it.vout), |it| Some(Self { maker: it.0, vout: it.1 });
    KeyPath as (u32, Chain, u32): |it| (it.account, it.chain, it.index),
        |it| Some(Self { account: it.0, chain: it.1, index: it.2 });
    Chain as u8: |it| *it as u8,
        |it| [Self::Receive, Self::Change, Self::User].into_iter().find(|known| *known as u8 == it);
    Trust as u8: |it| *it as u8,
        |it| [Self::Sure, Self::Unsure].into_iter().find(|known| *known as u8 == it);
    Route as u8: |it| *it as u8, |it| Self::of_number(it);
}

/// Ends a text in a key.
const END: [u8; 2] = [0, 0];
/// Follows a zero in a text in a key.
const ZERO: u8 = 0xff;

impl RowKey for String {
    fn encode(&self, bytes: &mut Vec<u8>) {
        for byte in self.bytes() {
            bytes.push(byte);
            if byte == 0 {
                bytes.push(ZERO);
            }
        }
        bytes.extend_from_slice(&END);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, Damaged> {
        let mut text = Vec::new();
        loop {
            match take(bytes)? {
                [0] => match take(bytes)? {
                    [ZERO] => text.push(0),
                    [0] => break,
                    _ => return Err(Damaged("a key with a text that cannot be read".to_owned())),
                },
                [byte] => text.push(byte),
            }
        }
        Self::from_utf8(text).map_err(|_| Damaged("a key with a text that is none".to_owned()))
    }
}

macro_rules! tuple_keys {
    ($(($($part:ident $index:tt),*);)*) => {
        $(impl<$($part: RowKey),*> RowKey for ($($part,)*) {
            fn encode(&self, bytes: &mut Vec<u8>) {
                $(self.$index.encode(bytes);)*
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, Damaged> {
                Ok(($($part::decode(bytes)?,)*))
            }
        })*
    };
}
tuple_keys! {
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
}

impl RowKey for () {
    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &mut &[u8]) -> Result<Self, Damaged> {
        Ok(())
    }
}

/// A row.
pub trait Row: Clone + PartialEq + Debug + Send {
    /// Its bytes.
    fn encode(&self) -> Vec<u8>;

    /// Reads it from its bytes.
    fn decode(bytes: &[u8]) -> Result<Self, Damaged>;
}

/// Most rows fit into this, in bytes.
const ROW_LEN: usize = 96;

/// Rows in CBOR.
macro_rules! cbor_rows {
    ($($row:ty),* $(,)?) => {
        $(impl Row for $row {
            fn encode(&self) -> Vec<u8> {
                let mut bytes = Vec::with_capacity(ROW_LEN);
                minicbor::encode(self, &mut bytes).expect("a vector takes everything");
                bytes
            }

            fn decode(bytes: &[u8]) -> Result<Self, Damaged> {
                let mut decoder = Decoder::new(bytes);
                let row = decoder.decode().map_err(|error| Damaged(format!("{}: {error}", stringify!($row))))?;
                match decoder.position() == bytes.len() {
                    true => Ok(row),
                    false => Err(Damaged(format!("{}: bytes are left over", stringify!($row)))),
                }
            }
        })*
    };
}
cbor_rows! {
    AccountStart, Answered, CopyEnd, Delivery, EventRow, Figures, FollowedBlock, FollowedUntil,
    FoundProof, Invoice, KeyPath, OutgoingRecord, Paid, PaymentRules, Receipt, ReceiptKey, Received,
    Reorganised, RescanFrom, Shallowness, String, Timestamp, TransactionRecord, UserDraft, Vec<ReceiptKey>, Webhook,
    WithdrawalRecord, u32, u64,
}

/// A row that is bytes already.
macro_rules! byte_rows {
    ($($row:ty: |$own:ident| $to:expr, |$bytes:ident| $from:expr;)*) => {
        $(impl Row for $row {
            fn encode(&self) -> Vec<u8> {
                let $own = self;
                $to
            }

            fn decode($bytes: &[u8]) -> Result<Self, Damaged> {
                $from.ok_or_else(|| Damaged(format!("{}: wrong length", stringify!($row))))
            }
        })*
    };
}
byte_rows! {
    Vec<u8>: |it| it.clone(), |bytes| Some(bytes.to_vec());
    [u8; 20]: |it| it.to_vec(), |bytes| bytes.try_into().ok();
    LogName: |it| it.to_bytes().to_vec(), |bytes| bytes.try_into().ok().map(Self::from_bytes);
    // The holder comes first, where a database finds it.
    Claimed: |it| [&it.holder.to_bytes()[..], &it.number.to_be_bytes()].concat(), |bytes| {
        let (holder, number) = bytes.split_at_checked(16).unwrap_or_default();
        let holder = holder.try_into().ok().map(ProcessId::from_bytes);
        let number = number.try_into().ok().map(u64::from_be_bytes);
        holder.zip(number).map(|(holder, number)| Self { holder, number })
    };
    (): |_it| Vec::new(), |bytes| bytes.is_empty().then_some(());
}
