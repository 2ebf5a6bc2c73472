//! Payments by the wallet.

use std::fmt;

use bsv_tx::Txid;
use minicbor::{Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize};

use crate::model::invoice_id::InvoiceId;
use crate::model::time::Timestamp;
use crate::model::transaction::{BlockPlace, TransactionRecord, TransactionState};

/// What a payment by the wallet is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum OutgoingPurpose {
    /// This payment URL is paid.
    #[n(0)]
    Url(#[n(0)] String),
    /// It belongs to the withdrawal of this number.
    #[n(1)]
    Withdrawal(#[n(0)] u64),
    /// Money that was paid to an invoice goes back.
    #[n(2)]
    Refund {
        /// The number of the invoice.
        #[n(0)]
        invoice: u64,
        /// The address, or the script in hex, that it goes to.
        #[n(1)]
        to: String,
    },
    /// It brings coins of the wallet together.
    #[n(3)]
    Consolidation,
}

impl OutgoingPurpose {
    /// The name that the API uses.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Url(_) => "payment",
            Self::Withdrawal(_) => "withdrawal",
            Self::Refund { .. } => "refund",
            Self::Consolidation => "consolidation",
        }
    }

    /// The payment URL, if one is paid. Only such a payment has a payee that the wallet can ask.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Url(url) => Some(url),
            Self::Withdrawal(_) | Self::Refund { .. } | Self::Consolidation => None,
        }
    }
}

/// A payment by the wallet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingPayment {
    /// Its number, from 1 on.
    pub number: u64,
    /// The transaction.
    pub txid: Txid,
    /// What it is for.
    pub purpose: OutgoingPurpose,
    /// The invoice whose money goes back.
    pub invoice: Option<InvoiceId>,
    /// The address, or the script in hex, that a withdrawal or a refund goes to.
    pub to: Option<String>,
    /// What the payee gets.
    pub satoshis: u64,
    /// What the miner gets.
    pub fee: u64,
    /// Its state.
    pub state: OutgoingState,
    /// When it began.
    pub created_at: Timestamp,
    /// Until when the payee accepts it, if the payee says so.
    pub expires_at: Option<Timestamp>,
    /// What the payee says.
    pub memo: String,
    /// Where the payee offers the proof.
    pub channel: Option<PeerChannel>,
    /// The block that it is in, once the wallet has a proof.
    pub block: Option<BlockPlace>,
    /// Whether the payee has refused it although the network may have it.
    pub is_refused: bool,
}

impl OutgoingPayment {
    /// Whether the payee is paid or may still be paid. Then the wallet makes no other payment for
    /// the same purpose. After a refusal it does, because another payment then spends what cancels
    /// this one: only one of the two can be mined.
    pub fn lasts(&self) -> bool {
        let is_taken_back = self.is_refused && self.state == OutgoingState::Cancelling;
        !is_taken_back && !self.state.is_lost()
    }
}

/// What is posted to a payee.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Posting {
    /// The URL that it is posted to, as its terms say. `None` stands for the payment URL.
    pub url: Option<String>,
    /// The message.
    pub body: Vec<u8>,
}

/// The state of a payment by the wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutgoingState {
    /// The wallet does not know the payee's answer, or the network has not shown the payment.
    Open,
    /// A cancellation that spends one of its coins is under way, or will be after a refusal.
    Cancelling,
    /// The payee has agreed, and the network has not shown it yet.
    Unseen,
    /// It is in the mempool, but its fee may be too low for it to be mined.
    Waiting,
    /// The network has taken it.
    Settled,
    /// The network has shown it before and does not show it now.
    Contested,
    /// The payee has refused it.
    Refused,
    /// A cancellation spent one of its coins.
    Cancelled,
    /// Another transaction has taken its place.
    Displaced,
    /// The network has refused it at several tips in a row.
    Invalid,
}

impl OutgoingState {
    fn of(state: TransactionState, is_being_cancelled: bool, is_refused: bool) -> Self {
        use TransactionState as State;
        match state {
            State::Offered | State::Unseen | State::Contested { .. } if is_being_cancelled => {
                Self::Cancelling
            }
            State::Offered | State::Unseen if is_refused => Self::Cancelling,
            State::Offered => Self::Open,
            State::Unseen => Self::Unseen,
            State::Waiting => Self::Waiting,
            State::Seen | State::Mined(_) => Self::Settled,
            State::Contested { .. } => Self::Contested,
            State::Displaced => Self::Displaced,
            State::Invalid => Self::Invalid,
            State::Refused => Self::Refused,
            State::Cancelled => Self::Cancelled,
        }
    }

    /// The name that the API uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Cancelling => "cancelling",
            Self::Unseen => "unseen",
            Self::Waiting => "waiting",
            Self::Settled => "settled",
            Self::Contested => "contested",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::Displaced => "displaced",
            Self::Invalid => "invalid",
        }
    }

    /// Whether it can be cancelled, because the network has not shown it. What only services have shown
    /// may also be cancelled later, while it is in no block and they do not show it.
    pub fn can_be_cancelled(self, is_shown_by_node: bool) -> bool {
        match self {
            Self::Open | Self::Cancelling | Self::Unseen => true,
            Self::Waiting | Self::Contested => !is_shown_by_node,
            _ => false,
        }
    }

    fn is_lost(self) -> bool {
        matches!(self, Self::Refused | Self::Cancelled | Self::Displaced | Self::Invalid)
    }
}

/// A payment by the wallet as it is stored. Its state follows from its transaction.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OutgoingRecord {
    /// The number of its transaction.
    #[n(0)]
    pub transaction: u64,
    /// The number of the transaction that takes one of its coins back.
    #[n(1)]
    pub cancellation: Option<u64>,
    /// The previous payment for the same purpose.
    #[n(2)]
    pub previous: Option<u64>,
    /// What it is for.
    #[n(3)]
    pub purpose: OutgoingPurpose,
    /// What the payee gets, in satoshis.
    #[n(4)]
    pub satoshis: u64,
    /// What the miner gets, in satoshis.
    #[n(5)]
    pub fee: u64,
    /// When it began.
    #[n(6)]
    pub created_at: Timestamp,
    /// Until when the payee accepts it, if the payee says so.
    #[n(7)]
    pub expires_at: Option<Timestamp>,
    /// What the payee says.
    #[n(8)]
    pub memo: String,
    /// Where the payee offers the proof.
    #[n(9)]
    pub channel: Option<PeerChannel>,
    /// The part of a refund that was more than the amount of its invoice, which was paid then.
    #[cbor(n(10), default)]
    pub surplus: u64,
    /// Whether the payee has refused it although the network may have it.
    #[cbor(n(11), default)]
    pub is_refused: bool,
}

impl OutgoingRecord {
    pub(crate) fn into_payment(
        self,
        number: u64,
        transaction: &TransactionRecord,
        is_being_cancelled: bool,
        (invoice, to): (Option<InvoiceId>, Option<String>),
    ) -> OutgoingPayment {
        OutgoingPayment {
            number,
            txid: transaction.txid,
            purpose: self.purpose,
            invoice,
            to,
            satoshis: self.satoshis,
            fee: self.fee,
            state: OutgoingState::of(transaction.state, is_being_cancelled, self.is_refused),
            created_at: self.created_at,
            expires_at: self.expires_at,
            memo: self.memo,
            channel: self.channel,
            block: transaction.state.block(),
            is_refused: self.is_refused,
        }
    }
}

/// The channel where a payee leaves messages for a payer. The payer reads them with `GET
/// {scheme}://{host}{path}/api/v1/channel/{channel_id}` and the token. `Debug` does not show the
/// token.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize, Encode, Decode)]
pub struct PeerChannel {
    /// The host, with a port if that is not the default of the scheme.
    #[n(0)]
    pub host: String,
    /// The part of the path before `/api`. It is empty in most cases.
    #[serde(default, deserialize_with = "text_or_null")]
    #[n(1)]
    pub path: String,
    /// The channel.
    #[n(2)]
    pub channel_id: String,
    /// The token for `Authorization: Bearer`.
    #[n(3)]
    pub token: String,
}

impl fmt::Debug for PeerChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, path, channel_id, token: _ } = self;
        write!(f, "PeerChannel({host}{path}, {channel_id})")
    }
}

fn text_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
