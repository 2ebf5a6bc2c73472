use std::fmt::Display;

use bsv_tx::{BlockHash, Txid};
use serde::{Serialize, Serializer};

use crate::model::event::{EventKind, LogName};
use crate::model::invoice_id::InvoiceId;
use crate::model::time::Timestamp;
use crate::model::webhook::WebhookId;

/// Something that happened in the wallet.
///
/// Events are numbered from 1 without a gap, in the order in which they happened. Each event is
/// stored in the same step as the change that it tells of. An event never changes, even when the
/// invoice or the payment that it tells of changes later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The number.
    pub number: u64,
    /// When it happened: never earlier than the previous event.
    pub at: Timestamp,
    /// What kind of thing happened.
    pub kind: EventKind,
    /// The number of the subject: an invoice, a user, a payment by the wallet, a withdrawal, a
    /// transaction, or a webhook.
    pub subject: u64,
    /// The details.
    pub data: EventData,
}

/// The details of an event: its `data` as the API shows it. `None` is null in JSON: there is no such
/// value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum EventData {
    /// An invoice that was created.
    Created {
        /// The invoice.
        #[serde(flatten)]
        invoice: EventInvoice,
        /// What it asks for.
        satoshis: u64,
        /// Until when it can be paid.
        expires_at: Timestamp,
    },
    /// An invoice that was deleted.
    Deleted {
        /// The invoice.
        #[serde(flatten)]
        invoice: EventInvoice,
        /// What it asked for.
        satoshis: u64,
    },
    /// An invoice that has expired, or that its owner has marked as paid.
    Standing {
        /// The invoice.
        #[serde(flatten)]
        invoice: EventInvoice,
        /// What it asks for.
        satoshis: u64,
        /// The sum of the payments that counted at that time.
        paid_satoshis: u64,
        /// The same sum, under the name that settlements have for it.
        received_satoshis: u64,
    },
    /// A payment of an invoice, or the change of the invoice by that payment.
    Payment {
        /// The invoice.
        #[serde(flatten)]
        invoice: EventInvoice,
        /// The payment.
        #[serde(flatten)]
        payment: EventPayment,
        /// The block, for the kinds that name one.
        #[serde(flatten)]
        block: Option<MinedIn>,
    },
    /// A refund of an invoice.
    Refund {
        /// The invoice.
        #[serde(flatten)]
        invoice: EventInvoice,
        /// The number of the payment by the wallet.
        outgoing_id: u64,
        /// What went back.
        satoshis: u64,
        /// What the miner gets.
        fee: u64,
        /// The transaction.
        #[serde(serialize_with = "as_text")]
        txid: Txid,
    },
    /// A user.
    User {
        /// The id.
        user_id: u64,
    },
    /// A payment by the wallet.
    Outgoing {
        /// The payment.
        #[serde(flatten)]
        outgoing: Box<EventOutgoing>,
        /// The block, for the kinds that name one.
        #[serde(flatten)]
        block: Option<MinedIn>,
    },
    /// A withdrawal.
    Withdrawal {
        /// Its number.
        withdrawal_id: u64,
        /// The owner's own reference.
        reference: Option<String>,
        /// What arrives.
        satoshis: u64,
        /// What the miners get.
        fee: u64,
        /// Its transactions.
        #[serde(serialize_with = "as_texts")]
        txids: Vec<Txid>,
    },
    /// Money that a transaction pays to keys of one owner, and that belongs to no invoice.
    Receipt {
        /// The transaction.
        #[serde(serialize_with = "as_text")]
        txid: Txid,
        /// The index of the output. JSON has it only if there is one output.
        #[serde(skip_serializing_if = "Option::is_none")]
        vout: Option<u32>,
        /// The number of outputs.
        outputs: u64,
        /// Their sum.
        satoshis: u64,
        /// The user whose keys they pay. The other keys of the wallet have none.
        user_id: Option<u64>,
        /// The block, for the kinds that name one.
        #[serde(flatten)]
        block: Option<MinedIn>,
    },
    /// A transaction that spends coins of the wallet and that the wallet did not make.
    Transaction {
        /// The transaction.
        #[serde(serialize_with = "as_text")]
        txid: Txid,
        /// What it pays to scripts of the wallet.
        satoshis: u64,
        /// The block, for the kinds that name one.
        #[serde(flatten)]
        block: Option<MinedIn>,
    },
    /// A payment that waits for its block, because too much counts by the word of services alone.
    Exposure {
        /// The transaction.
        #[serde(serialize_with = "as_text")]
        txid: Txid,
        /// What it would have added.
        satoshis: u64,
        /// The sum of what counts by the word of services alone.
        exposed_satoshis: u64,
        /// The highest sum.
        limit_satoshis: u64,
    },
    /// A webhook that was disabled.
    Webhook {
        /// The id.
        #[serde(serialize_with = "as_text")]
        webhook_id: WebhookId,
        /// `disabled`, or `gone` if the endpoint has answered 410.
        state: &'static str,
        /// Since when the endpoint has accepted nothing.
        failing_since: Timestamp,
    },
}

/// Which invoice an event tells of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventInvoice {
    /// The id.
    #[serde(serialize_with = "as_text")]
    pub invoice_id: InvoiceId,
    /// The owner's own reference.
    pub reference: Option<String>,
}

/// A payment of an invoice, and what is still due after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventPayment {
    /// What this transaction pays to the invoice: 0 if there is none.
    pub satoshis: u64,
    /// The transaction. `None` if no payment has changed the invoice, but its owner or a refund.
    #[serde(serialize_with = "as_optional_text")]
    pub txid: Option<Txid>,
    /// The sum of the payments of the invoice that count, this one included.
    pub paid_satoshis: u64,
    /// What is still due after this payment.
    pub due_satoshis: u64,
    /// The same sum as `paid_satoshis`, under the name that settlements have for it.
    pub received_satoshis: u64,
    /// The part of it that counts towards the invoice.
    pub counted_satoshis: u64,
    /// Whether the transaction was first seen after the invoice had expired.
    pub late: bool,
}

/// A payment by the wallet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventOutgoing {
    /// Its number.
    pub outgoing_id: u64,
    /// What it is for, as the API names it.
    pub purpose: &'static str,
    /// The payment URL that is paid.
    pub url: Option<String>,
    /// The number of the withdrawal that it belongs to.
    pub withdrawal_id: Option<u64>,
    /// The invoice whose money goes back.
    #[serde(serialize_with = "as_optional_text")]
    pub invoice_id: Option<InvoiceId>,
    /// What the payee gets.
    pub satoshis: u64,
    /// What the miner gets.
    pub fee: u64,
    /// The transaction.
    #[serde(serialize_with = "as_text")]
    pub txid: Txid,
}

/// The block that something was mined in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MinedIn {
    /// Its hash.
    #[serde(serialize_with = "as_text")]
    pub block_hash: BlockHash,
    /// Its height.
    pub block_height: u32,
}

#[derive(Serialize)]
struct EventJson<'e> {
    id: EventId,
    number: u64,
    r#type: &'static str,
    timestamp: Timestamp,
    data: &'e EventData,
}

/// `evt_3f9a1c02_1042`.
struct EventId(LogName, u64);

impl Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "evt_{}_{}", self.0, self.1)
    }
}

impl Serialize for EventId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl LogName {
    /// The id of the event with this number, as the API and webhooks show it: `evt_3f9a1c02_1042`.
    pub fn event_id(self, number: u64) -> String {
        EventId(self, number).to_string()
    }
}

impl Event {
    /// The id of the event in the log of this name, as the API and webhooks show it:
    /// `evt_3f9a1c02_1042`.
    pub fn id(&self, log: LogName) -> String {
        log.event_id(self.number)
    }

    /// The event as JSON, as the API and webhooks send it. The same event gives the same bytes
    /// every time. They are fewer than 20,000.
    pub fn to_json(&self, log: LogName) -> String {
        let mut json = Vec::with_capacity(JSON_LEN);
        self.write_json(log, &mut json);
        String::from_utf8(json).expect("it was made of texts and numbers")
    }

    /// Appends the JSON of [`to_json`](Self::to_json).
    pub fn write_json(&self, log: LogName, json: &mut Vec<u8>) {
        let Self { number, at, kind, data, .. } = self;
        let event = EventJson {
            id: EventId(log, *number),
            number: *number,
            r#type: kind.name(),
            timestamp: *at,
            data,
        };
        serde_json::to_writer(json, &event).expect("a vector takes texts and numbers");
    }
}

/// Most events fit into this as JSON, in bytes.
const JSON_LEN: usize = 512;

fn as_text<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn as_optional_text<T: Display, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

fn as_texts<T: Display, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(ToString::to_string))
}
