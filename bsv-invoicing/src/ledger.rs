//! The rules of money: what may happen, and what follows from it.
//!
//! The rules are pure. They read and write rows through [`rows`], which a back end provides, and know no
//! clock, no network and no engine. What can happen is a [`Command`]: plain data that runs in one step.
//!
//! # States of a transaction
//! Only what the node holds in its final mempool, or in a block of its main chain, is money.
//!
//! | state | means | its receipts | the coins it spends |
//! | --- | --- | --- | --- |
//! | offered | its bytes are stored, the network has not shown it | do not count | of a payment by the wallet: reserved |
//! | unseen | the payee has agreed, the network has not shown it | do not count | reserved |
//! | waiting | in the mempool, and its fee may be too low for it to be mined | do not count | spent |
//! | seen | in the mempool, and its fee is sufficient | count, can be spent | spent |
//! | mined | in a block of the main chain, which a checked proof shows | count, can be spent | spent |
//! | contested | was seen, is now nowhere, and nothing in the chain spends what it spends | count, cannot be spent | spent |
//! | displaced | another transaction in the chain spends what it spends | do not count | free |
//! | invalid | the network refused it for itself at six tips in a row, or had shown it and refused it when it was offered once more | do not count | free |
//! | refused | the network, or the payee, did not take it | do not count | free |
//! | cancelled | one of its coins was spent otherwise, on purpose | do not count | free |
//!
//! # What leads from one state to another
//!
//! | what happens | from | to | besides |
//! | --- | --- | --- | --- |
//! | [`Offer`] | – or lost | offered | the wallet offers one at a time for an invoice; what the network has already is noted besides |
//! | [`Reserve`], [`Record`] | – | offered | coins are reserved, then signed for outside, then recorded |
//! | [`Accept`] (the payee agrees) | offered | unseen | |
//! | [`See`] (the network shows it) | any but mined | seen; waiting if its fee is too low | what else holds its coins is displaced, or cancelled |
//! | [`Mine`] | any | mined | likewise |
//! | [`ForgetBlock`] | mined | contested | |
//! | [`Contest`] | seen | contested | |
//! | [`TellContested`] | contested | contested | an event tells, once |
//! | [`Displace`] | any that is not lost | displaced | what spends its receipts first |
//! | [`Invalidate`] | any that is not lost | invalid | likewise; what spends its receipts is displaced |
//! | [`Refuse`] (the network says no) | offered, of a payment to the wallet | refused; invalid if it was ever seen | |
//! | [`RefuseByPayee`] | offered, of a payment by the wallet | refused | |
//! | [`PrepareCancellation`], [`RecordCancellation`] | – | offered | the payment stays as it is until one of both is seen |
//! | a cancellation is seen | offered, unseen | cancelled | of the payment |
//! | [`Recover`] (found in the chain) | – | seen, mined | |
//!
//! Displaced, invalid, refused and cancelled are *lost*: taken for lost, and looked after for another while.
//! So the word of the network wins from every state, and the word of nobody else makes money.
//!
//! A **command** checks before it writes: one that is refused has written nothing. It may be run twice,
//! as when another one of its batch fails. It neither waits nor signs.

mod accept;
mod adopt;
mod begin_account;
mod cancel;
pub(crate) mod coin_choice;
mod contest;
mod create_invoice;
mod create_user;
mod delete_invoice;
mod displace;
mod earlier_attempts;
mod effects;
pub mod events;
pub mod figures;
mod follow_tip;
mod forget_block;
pub mod idempotency;
pub mod items;
mod mark_read;
mod mine;
mod offer;
pub mod queries;
mod record;
mod recover;
mod refuse;
mod release;
mod reserve;
pub mod rows;
mod see;
mod skip_numbers;
mod sweep;
mod unfollow;

use std::time::Duration;

use bsv_tx::KeyError;
use thiserror::Error;

pub use self::accept::Accept;
pub(crate) use self::adopt::SEED_NAME;
pub use self::adopt::{Adopt, NoteKeyEvent};
pub use self::begin_account::{BeginAccount, CaughtUp};
pub use self::cancel::{PrepareCancellation, PreparedCancellation, RecordCancellation};
pub use self::contest::{Contest, TellContested};
pub use self::create_invoice::CreateInvoice;
pub use self::create_user::{CreateUser, UserRecord};
pub use self::delete_invoice::DeleteInvoice;
pub use self::displace::{Displace, Invalidate};
pub use self::follow_tip::FollowTip;
pub use self::forget_block::ForgetBlock;
pub use self::mark_read::MarkRead;
pub use self::mine::Mine;
pub use self::offer::{NewReceipt, Offer, Offered};
pub use self::record::Record;
pub use self::recover::{Recover, Recovered};
pub use self::refuse::{Refuse, RefuseByPayee};
pub use self::release::{Release, ReleaseAll};
pub use self::reserve::{EstimateFee, FindPayment, Reservation, Reserve, Reserved};
pub use self::see::See;
pub use self::skip_numbers::SkipNumbers;
pub use self::sweep::Sweep;
pub use self::unfollow::Unfollow;

use self::figures::Figures;
use self::rows::{AllFigures, ReadRows, Rows};
use crate::model::payment::OutgoingState;

/// For how long a transaction is looked after that is taken for lost: a day, in which nodes bury or
/// forget it.
const AFTERCARE: Duration = Duration::from_secs(24 * 60 * 60);

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
        "payment {0} to the same URL can still be mined, and none of its coins is free: try again \
         after the next block"
    )]
    EarlierAttempt(u64),
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
    /// There is nothing to do.
    #[error("there is nothing to do")]
    NothingDue,
}

/// Something that can happen, as data.
pub trait Command: Send + Sync + 'static {
    /// What is answered when it has happened.
    type Answer: Send + 'static;

    /// Does it.
    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<Self::Answer, R::Error>;
}

/// A question that rows answer.
pub trait Query: Send + 'static {
    /// What is answered.
    type Answer: Send + 'static;

    /// Answers it.
    fn run<R: ReadRows>(self, rows: &R) -> Result<Self::Answer, R::Error>;
}

/// The rows, and figures about them in memory, as a batch of commands uses them.
#[derive(Debug)]
pub struct Books<R> {
    rows: R,
    figures: Figures,
    /// As they are stored.
    stored_figures: Figures,
}

impl<R: Rows> Books<R> {
    /// Opens the books for a batch.
    pub fn open(rows: R) -> Result<Self, R::Error> {
        let figures = rows.get::<AllFigures>(&())?.unwrap_or_default();
        Ok(Self { rows, stored_figures: figures.clone(), figures })
    }

    /// Writes back what a batch has changed in memory only.
    pub fn close(mut self) -> Result<R, R::Error> {
        if self.figures != self.stored_figures {
            self.rows.put::<AllFigures>((), &self.figures)?;
        }
        Ok(self.rows)
    }
}
