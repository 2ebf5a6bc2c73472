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
    #[error("there is no invoice of number {0}")]
    UnknownInvoice(u64),
    /// The invoice of this number is paid.
    #[error("the invoice of number {0} is paid, and stays")]
    Paid(u64),
    /// The invoice of this number is not paid in time.
    #[error("the invoice of number {0} is expired")]
    Expired(u64),
    /// A payment of the invoice of this number is being offered to the network.
    #[error("a payment of the invoice of number {0} is on its way")]
    InFlight(u64),
    /// The transaction of this number is not one whose outcome is open.
    #[error("the transaction of number {0} is not on its way")]
    NotInFlight(u64),
    /// There is no transaction of this number.
    #[error("there is no transaction of number {0}")]
    UnknownTransaction(u64),
    /// There is no payment by the wallet of this number.
    #[error("there is no payment {0}")]
    UnknownPayment(u64),
    /// The payment of this number cannot be cancelled.
    #[error("payment {0} is {name}", name = .1.name())]
    NotOpen(u64, OutgoingState),
    /// The coins that can be spent are worth too little, or too many of them are small.
    #[error("{needed} satoshis are needed, fee included, and {spendable} can be spent")]
    InsufficientFunds {
        /// What is needed, with the least fee.
        needed: u64,
        /// What the coins are worth that can be spent in one transaction.
        spendable: u64,
    },
    /// An earlier payment for the same purpose can still be mined, and no coin is free that would keep
    /// both from being mined.
    #[error(
        "payment {0} for the same purpose can still be mined, and none of its coins is free: try \
         again after the next block"
    )]
    EarlierAttempt(u64),
    /// A withdrawal of all would take too many transactions.
    #[error(
        "there are more than {0} coins, which one withdrawal cannot send: consolidate them first"
    )]
    TooManyCoins(usize),
    /// More is to go back than was paid, and has not gone back yet.
    #[error("{satoshis} satoshis cannot be refunded: {left} can")]
    RefundTooLarge {
        /// What is to go back.
        satoshis: u64,
        /// What can.
        left: u64,
    },
    /// The transaction that paid is in no block, and the refund cannot spend what it paid.
    #[error("transaction {0}, which paid, is in no block yet: refund it once it is mined")]
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
    /// The idempotency key came with another request before.
    #[error("this idempotency key came with another request before")]
    KeyReused,
    /// No further number can be given out.
    #[error("the wallet is full: it has {0} of them")]
    Full(u64),
    /// The store belongs to a wallet of another seed.
    #[error("the store belongs to another wallet")]
    OtherWallet,
    /// Events are asked for after one that there is not.
    #[error("there is no event {after}: the last one is {last}")]
    CursorAhead {
        /// The number of the event after which they are asked for.
        after: u64,
        /// The number of the last event.
        last: u64,
    },
    /// There is no webhook of this id.
    #[error("there is no webhook {0}")]
    UnknownWebhook(WebhookId),
    /// The event of this number was not sent to this webhook, or that is forgotten.
    #[error("nothing is known of a delivery of event {number} to webhook {id}")]
    UnknownDelivery {
        /// The webhook.
        id: WebhookId,
        /// The number of the event.
        number: u64,
    },
    /// No further webhook can be made.
    #[error("there are {0} webhooks already: delete one first")]
    TooManyWebhooks(usize),
    /// Another webhook has this id.
    #[error("another webhook has the id {0} by chance: try again")]
    WebhookIdTaken(WebhookId),
    /// Two secrets of a webhook sign already.
    #[error("the secret before this one still signs until {0}: wait until then to make another")]
    TwoSecrets(Timestamp),
    /// There is nothing to do.
    #[error("there is nothing to do")]
    NothingDue,
}
