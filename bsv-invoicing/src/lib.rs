#![doc = include_str!("../README.md")]

pub mod dpp;
mod error;
pub mod ledger;
mod model;
pub mod store;
mod wallet;
pub mod webhooks;

#[cfg(feature = "postgres")]
pub use crate::store::{PostgresOptions, PostgresWalletStore};
pub use bsv_network::{self, NodeCredentials, NodeError, NodeRpc, NodeSettings};
pub use bsv_store::{
    self, DatabaseOptions, DirLock, KeyEvent, Keystore, PlainKeys, SecretString,
    StretchedPassphrase,
};
pub use bsv_tx::{self, Address, BlockHash, Network, OutPoint, Script, Transaction, Txid};
pub use error::Error;
pub use ipnet::IpNet;
pub use model::invoice::{Invoice, InvoiceDraft, InvoiceState};
pub use model::invoice_id::InvoiceId;
pub use model::time::Timestamp;
pub use model::user::{User, UserDraft};
pub use store::RedbWalletStore;
pub use wallet::checkout::{Checkout, Payable};
pub use wallet::pay::PayDraft;
pub use wallet::refund::RefundDraft;
pub use wallet::seed::WalletSeed;
pub use wallet::withdraw::WithdrawalDraft;
pub use wallet::{Wallet, WalletSettings};

/// Invoices and users, and what a request to make one may hold.
pub mod invoices {
    pub use crate::model::fields::{BodyError, FieldErrors};
    pub use crate::model::idempotency::{
        BadIdempotencyKey, IDEMPOTENCY_PERIOD, IdempotencyKey, MAX_KEY_LEN,
    };
    pub use crate::model::invoice::{
        DEFAULT_EXPIRY, InvoicePage, InvoiceQuery, InvoiceStateParseError, MAX_DESCRIPTION_LEN,
        MAX_LOOKED_AT, MAX_PAGE_TEXT, MAX_REFERENCE_LEN, MAX_SATOSHIS,
    };
    pub use crate::model::invoice_id::{IdCipher, InvoiceIdParseError, NewId};
    pub use crate::model::settlement::{
        CONTESTED_BLOCKS, Counting, InvoiceSums, LatePayments, NextStep, PaymentRules, Received,
        Settlement, Shallowness, UNMINED_PERIOD,
    };
    pub use crate::model::user::{MAX_NAME_LEN, MAX_USER_FIELD_LEN};
}

/// Payments to the wallet, and the outputs that it has received.
pub mod receiving {
    pub use crate::model::payment::{
        IncomingPayment, IncomingState, MAX_RECEIPTS_LOOKED_AT, PaidByPage, PaidByQuery,
        PaymentPage, PaymentQuery, UnassignedReceipt,
    };
    pub use crate::model::receipt::{NewReceipt, Receipt, ReceiptKey};
    pub use crate::wallet::receive::NotTaken;
}

/// Payments by the wallet: to payment URLs, withdrawals and refunds.
pub mod sending {
    pub use crate::model::outgoing::{
        OutgoingPayment, OutgoingPurpose, OutgoingRecord, OutgoingState, Posting,
    };
    pub use crate::model::withdrawal::{
        Withdrawal, WithdrawalAmount, WithdrawalCost, WithdrawalRecord,
    };
    pub use crate::wallet::pay::{PaymentPreview, faucet};
    pub use crate::wallet::refund::RefundPreview;
}

/// Coins, the keys that own them, and the balance.
pub mod coins {
    pub use crate::model::coin::{Chain, Change, Coin, KeyPath, Selection, Spending, Trust};
    pub use crate::model::holdings::{Holding, Holdings};
}

/// Transactions, and how far they are followed in the chain.
pub mod transactions {
    pub use crate::model::transaction::{
        BlockPlace, COINBASE_MATURITY, EncodedTransaction, Followed, FollowedUntil, FoundProof,
        Proof, Purpose, RawBytes, ShownAs, TransactionRecord, TransactionState, WaitReason, Word,
    };
}

/// The log of events.
pub mod events {
    pub use crate::model::event::{
        Event, EventData, EventFilter, EventFilterParseError, EventInvoice, EventKind,
        EventOutgoing, EventPage, EventPayment, EventQuery, LogName, LogNameParseError,
        MAX_EVENTS_LOOKED_AT, MinedIn, WrittenEvent, WrittenPage,
    };
}

/// Money that came or left, for accounts.
pub mod movements {
    pub use crate::model::movement::{
        Movement, MovementKind, MovementPage, MovementQuery, PaidInvoice,
    };
}

/// What the words of the seed bring back, and whether the books add up.
pub mod recovery {
    pub use crate::wallet::books::BooksCheck;
    pub use crate::wallet::recover::{DEFAULT_LOOKAHEAD, Recovery, Walk};
}

/// Times, and doubts about the clock.
pub mod time {
    pub use crate::model::clock::ClockDoubt;
    pub use crate::model::time::{StorableTimeError, TimestampParseError};
}
