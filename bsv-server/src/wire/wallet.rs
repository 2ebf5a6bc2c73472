use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// A payment by the wallet.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outgoing {
    pub block_hash: Option<String>,
    pub block_height: Option<u32>,
    pub created_at: String,
    pub expires_at: Option<String>,
    pub fee: u64,
    pub id: u64,
    pub invoice: Option<String>,
    pub memo: String,
    pub purpose: String,
    pub satoshis: u64,
    pub state: String,
    pub to: Option<String>,
    pub txid: String,
    pub url: Option<String>,
    pub withdrawal: Option<u64>,
}

/// A transaction with its ancestors, in hexadecimal.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Beef {
    pub beef: String,
    pub txid: String,
}

/// What a refund would do.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RefundPreview {
    pub fee: u64,
    pub invoice: String,
    pub satoshis: u64,
    pub to: String,
}

/// An invoice.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Invoice {
    pub id: String,
    pub reference: Option<String>,
    pub description: Option<String>,
    pub satoshis: u64,
    pub expires_at: String,
    pub payment_received_at: Option<String>,
    pub refund_to: Option<String>,
    pub refunded_at: Option<String>,
    pub state: String,
    pub created_at: String,
    pub updated_at: String,
    pub deleted_at: Option<String>,
}

/// The state of an invoice, in numbers.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Settlement {
    pub state: String,
    pub satoshis: u64,
    pub paid_satoshis: u64,
    pub due_satoshis: u64,
    pub overpaid_satoshis: u64,
    pub received_satoshis: u64,
    pub counted_satoshis: u64,
    pub refunded_satoshis: u64,
    pub surplus_satoshis: u64,
    pub next: String,
    pub late: bool,
    pub confirmations: Option<u32>,
    pub contested: bool,
    pub marked: bool,
    pub refunds: Vec<Outgoing>,
}

/// How an invoice can be paid.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkout {
    pub payment_url: String,
    pub page_url: Option<String>,
    pub address: Option<String>,
    pub bip21: Option<String>,
    pub qr_url: Option<String>,
}

/// What was paid for an invoice, or what pays none.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    pub id: String,
    pub txid: String,
    pub vout: u32,
    pub satoshis: u64,
    pub state: String,
    pub received_at: String,
    pub block_hash: Option<String>,
    pub block_height: Option<u32>,
}

/// A receipt that pays no invoice.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct UnassignedReceipt {
    #[serde(flatten)]
    pub receipt: Receipt,
    pub user: Option<u64>,
}

/// The balance, with its parts if they are asked for. All parts except `waiting` are parts of the
/// balance.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Balance {
    pub satoshis: u64,
    #[serde(flatten)]
    pub parts: Option<BalanceParts>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct BalanceParts {
    pub confirmed: u64,
    pub unconfirmed: u64,
    pub reserved: u64,
    pub contested: u64,
    pub immature: u64,
    pub waiting: u64,
    pub coins: u64,
}

/// A webhook, with its secret if it is new.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    pub id: String,
    pub url: String,
    pub types: String,
    pub description: String,
    pub in_order: bool,
    pub state: String,
    pub created_at: String,
    pub cursor: u64,
    pub behind: u64,
    pub last_success_at: Option<String>,
    pub failing_since: Option<String>,
    pub next_attempt_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Zeroizing<String>>,
}

/// A new secret.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct WebhookSecret {
    pub secret: Zeroizing<String>,
}

/// The number of events that are sent again.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Replayed {
    pub count: u64,
}

/// One attempt to send an event.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Attempt {
    pub at: String,
    pub milliseconds: u32,
    pub status: Option<u16>,
    pub failure: Option<String>,
    pub answer: String,
}

/// The delivery of an event to a webhook.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    pub number: u64,
    pub event_id: String,
    pub r#type: String,
    pub state: String,
    pub next_attempt_at: Option<String>,
    pub attempts: Vec<Attempt>,
}
