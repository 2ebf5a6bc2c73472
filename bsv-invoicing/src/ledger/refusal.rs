use bsv_tx::{KeyError, Txid};
use thiserror::Error;

use crate::model::outgoing::OutgoingState;
use crate::model::time::Timestamp;
use crate::model::webhook::WebhookId;

/// Why a command did nothing.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no invoice of this number, or it is deleted.
    #[error("there is no invoice number {0}")]
    UnknownInvoice(u64),
    /// The invoice of this number is paid.
    #[error("invoice number {0} is paid")]
    Paid(u64),
    /// The invoice of this number was not paid in time.
    #[error("invoice number {0} is expired")]
    Expired(u64),
    /// A payment of the invoice of this number is being offered to the network.
    #[error("a payment of invoice number {0} is on its way")]
    InFlight(u64),
    /// The outcome of the transaction with this number is known.
    #[error("transaction {0} is not on its way")]
    NotInFlight(u64),
    /// There is no transaction with this number: the network has refused it meanwhile.
    #[error("there is no transaction {0}")]
    UnknownTransaction(u64),
    /// The transaction of this id is old and long, and the wallet keeps its bytes no longer.
    #[error("bytes dropped: the wallet keeps transaction {0} without its bytes")]
    BytesDropped(Txid),
    /// The wallet has followed a reorganisation since a proof was checked.
    #[error("the main chain has changed since the proof was checked: check it again")]
    Reorganised,
    /// There is no payment by the wallet of this number.
    #[error("there is no payment {0}")]
    UnknownPayment(u64),
    /// The payment of this number cannot be cancelled.
    #[error("payment {0} is {name}", name = .1.name())]
    NotOpen(u64, OutgoingState),
    /// The coins that can be spent are worth too little, or too many of them are small.
    #[error("{needed} satoshis are needed, fee included, and {spendable} can be spent")]
    InsufficientFunds {
        /// What is needed, including the least fee.
        needed: u64,
        /// What the coins are worth that can be spent in one transaction.
        spendable: u64,
    },
    /// An earlier payment for the same purpose can still be mined. No coin of it is free, so that a
    /// new payment could not exclude the earlier one.
    #[error(
        "payment {0} for the same purpose can still be mined, and none of its coins is free for a \
         new one: try again after the next block"
    )]
    EarlierAttempt(u64),
    /// A withdrawal of all would take too many transactions.
    #[error("there are more than {0} coins, too many for one withdrawal: consolidate them first")]
    TooManyCoins(usize),
    /// The refund is higher than what was paid and is not refunded yet.
    #[error("{satoshis} satoshis cannot be refunded: at most {left} can")]
    RefundTooLarge {
        /// The refund that was asked for.
        satoshis: u64,
        /// The highest refund that is possible.
        left: u64,
    },
    /// The transaction that paid the invoice is in no block, and the refund cannot spend its
    /// outputs.
    #[error(
        "transaction {0}, which paid the invoice, is in no block yet: refund it once it is mined"
    )]
    RefundMustWait(Txid),
    /// The reservation of this number was released meanwhile.
    #[error("the coins that were reserved under number {0} were released")]
    NotReserved(u64),
    /// A key could not be derived.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The invoice would have expired before it was created.
    #[error("the invoice would have expired before it was created")]
    AlreadyExpired,
    /// The idempotency key was already used for another request.
    #[error("this idempotency key was already used for another request")]
    KeyReused,
    /// All key numbers are used up.
    #[error("the wallet is full: it has used all {0} key numbers")]
    Full(u64),
    /// The store belongs to a wallet of another seed.
    #[error("the store belongs to another wallet")]
    OtherWallet,
    /// A query names an event that does not exist. The log is shorter than before, for example
    /// because a backup was restored.
    #[error("there is no event {after}, the last event is {last}: a backup may have been restored")]
    CursorAhead {
        /// The number of the event that the query starts after.
        after: u64,
        /// The number of the last event.
        last: u64,
    },
    /// There is no webhook of this id.
    #[error("there is no webhook {0}")]
    UnknownWebhook(WebhookId),
    /// The event was not sent to the webhook, or the wallet has deleted the record of its delivery.
    #[error("nothing is known of a delivery of event {number} to webhook {id}")]
    UnknownDelivery {
        /// The webhook.
        id: WebhookId,
        /// The number of the event.
        number: u64,
    },
    /// The wallet has the most webhooks that it can have.
    #[error("there are already {0} webhooks: delete one first")]
    TooManyWebhooks(usize),
    /// Another webhook has this id.
    #[error("another webhook has the id {0} by chance: try again")]
    WebhookIdTaken(WebhookId),
    /// The webhook still has two secrets that sign.
    #[error("the previous secret still signs until {0}: wait until then before you make another")]
    TwoSecrets(Timestamp),
    /// Another process moves the wallet to another store.
    #[error("the wallet is being moved to another store: wait until that has ended")]
    Moving,
    /// There is nothing to do.
    #[error("there is nothing to do")]
    NothingDue,
}
