#![doc = include_str!("../README.md")]

pub mod dpp;
mod error;
pub mod ledger;
mod model;
mod store;
mod wallet;
pub mod webhooks;

#[cfg(feature = "postgres")]
pub use crate::store::{PostgresOptions, PostgresUrlError, PostgresWalletStore};
pub use bsv_network::{self, NodeCredentials, NodeError, NodeRpc, NodeSettings};
pub use bsv_store::{
    self, DatabaseOptions, DirLock, KeyEvent, Keystore, PlainKeys, SecretString,
    StretchedPassphrase,
};
pub use bsv_tx::{self, Address, BlockHash, Network, OutPoint, Script, Transaction, Txid};
pub use error::Error;
pub use ipnet::IpNet;
pub use model::clock::ClockDoubt;
pub use model::coin::{Chain, Change, Coin, KeyPath, Selection, Spending, Trust};
pub use model::delivery::{
    Attempt, AttemptFailure, AttemptOutcome, DELIVERIES_KEPT, Delivery, DeliveryState,
    MAX_ANSWER_KEPT, MAX_ATTEMPTS_KEPT,
};
pub use model::event::{
    Event, EventData, EventFilter, EventFilterParseError, EventInvoice, EventKind, EventOutgoing,
    EventPage, EventPayment, EventQuery, LogName, LogNameParseError, MAX_EVENTS_LOOKED_AT, MinedIn,
    WrittenEvent, WrittenPage,
};
pub use model::fields::{BodyError, FieldErrors};
pub use model::holdings::{Holding, Holdings};
pub use model::idempotency::{BadIdempotencyKey, IDEMPOTENCY_PERIOD, IdempotencyKey, MAX_KEY_LEN};
pub use model::invoice::{
    DEFAULT_EXPIRY, Invoice, InvoiceDraft, InvoicePage, InvoiceQuery, InvoiceState,
    InvoiceStateParseError, MAX_DESCRIPTION_LEN, MAX_LOOKED_AT, MAX_PAGE_TEXT, MAX_REFERENCE_LEN,
    MAX_SATOSHIS,
};
pub use model::invoice_id::{IdCipher, InvoiceId, InvoiceIdParseError, NewId};
pub use model::movement::{Movement, MovementKind, MovementPage, MovementQuery, PaidInvoice};
pub use model::outgoing::{
    OutgoingPayment, OutgoingPurpose, OutgoingRecord, OutgoingState, Posting,
};
pub use model::payment::{
    IncomingPayment, IncomingState, MAX_RECEIPTS_LOOKED_AT, PaidByPage, PaidByQuery, PaymentPage,
    PaymentQuery, UnassignedReceipt,
};
pub use model::process::{Claimed, ProcessId, Task};
pub use model::receipt::{NewReceipt, Receipt, ReceiptKey};
pub use model::settlement::{Counting, LatePayments, PaymentRules, Received, Settlement};
pub use model::time::{StorableTimeError, Timestamp, TimestampParseError};
pub use model::transaction::{
    BlockPlace, COINBASE_MATURITY, EncodedTransaction, Followed, FollowedUntil, FoundProof, Proof,
    Purpose, RawBytes, ShownAs, TransactionRecord, TransactionState,
};
pub use model::user::{MAX_NAME_LEN, MAX_USER_FIELD_LEN, User, UserDraft};
pub use model::webhook::{
    FormerSecret, MAX_SECRET_GRACE, MAX_WEBHOOKS, ReplayDraft, SecretDraft, Webhook, WebhookChange,
    WebhookDraft, WebhookId, WebhookIdParseError, WebhookState,
};
pub use model::withdrawal::{Withdrawal, WithdrawalAmount, WithdrawalCost, WithdrawalRecord};
pub use store::{
    Answering, BoxedAnswer, BoxedCommand, BoxedOnce, BoxedQuery, CopyError, EventCounts,
    OpenWalletStoreError, RedbWalletStore, Store, WalletStore, WalletStoreError, copy_wallet,
    holds_no_wallet,
};
pub use wallet::books::BooksCheck;
pub use wallet::checkout::Checkout;
pub use wallet::outbound::{HttpWebhooks, OwnListeners};
pub use wallet::pay::{PayDraft, PaymentPreview, faucet};
pub use wallet::receive::NotTaken;
pub use wallet::recover::{DEFAULT_LOOKAHEAD, Recovery, Walk};
pub use wallet::refund::{RefundDraft, RefundPreview};
pub use wallet::seed::WalletSeed;
pub use wallet::withdraw::WithdrawalDraft;
pub use wallet::{Wallet, WalletSettings};
