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
//! | mined | in a block of the main chain, which a checked proof shows | count, can be spent (of a coinbase transaction 100 blocks later) | spent |
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
//! | [`ReserveWithdrawal`], [`RecordWithdrawal`] | – | offered | likewise, for all transactions of a withdrawal at once |
//! | [`ReserveConsolidation`], [`Record`] | – | offered | likewise, for coins that are brought together |
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
//! | [`Notice`], [`Recover`] (the network shows what nobody told of) | – | waiting, seen, mined | as with [`See`] and [`Mine`] |
//!
//! Displaced, invalid, refused and cancelled are *lost*: taken for lost, and looked after for another while.
//! So the word of the network wins from every state, and the word of nobody else makes money.
//!
//! A **command** checks before it writes: one that is refused has written nothing. It may be run twice,
//! as when another one of its batch fails. It neither waits nor signs.

mod accept;
mod adopt;
pub(crate) mod attempts;
mod begin_account;
mod books;
mod cancel;
pub(crate) mod coin_choice;
mod command;
mod consolidate;
mod contest;
pub(crate) mod copy;
mod create_invoice;
mod create_user;
mod damaged;
mod delete_invoice;
mod displace;
mod earlier_attempts;
mod effects;
mod event_log;
mod event_page;
pub mod events;
pub mod figures;
mod follow_tip;
mod forget_block;
pub mod idempotency;
mod idempotent_answers;
pub mod items;
mod keys;
mod mark_read;
mod mine;
pub mod movements;
mod notice;
mod offer;
pub mod queries;
mod record;
mod recover;
mod refunds;
mod refusal;
mod refuse;
mod release;
mod rescan;
mod reserve;
pub mod rows;
mod see;
mod settle;
mod skip_numbers;
mod sweep;
mod told;
mod unassigned;
mod unfollow;
mod watch;
pub mod webhooks;
mod withdraw;

pub use self::accept::Accept;
pub(crate) use self::adopt::SEED_NAME;
pub use self::adopt::{Adopt, NoteKeyEvent};
pub use self::begin_account::{BeginAccount, CaughtUp};
pub use self::books::Books;
pub use self::cancel::{PrepareCancellation, PreparedCancellation, RecordCancellation};
pub use self::command::{Command, Query};
pub use self::consolidate::ReserveConsolidation;
pub use self::contest::{Contest, TellContested};
pub use self::create_invoice::CreateInvoice;
pub use self::create_user::{CreateUser, UserRecord};
pub use self::delete_invoice::DeleteInvoice;
pub use self::displace::{Displace, Invalidate};
pub use self::event_log::{GetLogName, NameLog};
pub use self::event_page::GetEventPage;
pub use self::follow_tip::FollowTip;
pub use self::forget_block::ForgetBlock;
pub use self::mark_read::MarkRead;
pub use self::mine::Mine;
pub use self::notice::{GetKnown, Known, Notice, Noticed, OwnParts, ShownPlace};
pub use self::offer::{Offer, Offered};
pub use self::record::{NewPayment, Record};
pub use self::recover::{Recover, Recovered};
pub use self::refunds::Refundable;
pub use self::refusal::Refusal;
pub use self::refuse::{Refuse, RefuseByPayee};
pub use self::release::{Release, ReleaseAll};
pub use self::rescan::{GetRescan, SetRescan};
pub use self::reserve::{EstimateFee, FindPayment, Reservation, Reserve, Reserved};
pub use self::see::See;
pub use self::settle::{GetRules, MarkPaid, SetRules};
pub use self::skip_numbers::SkipNumbers;
pub use self::sweep::Sweep;
pub use self::unassigned::GetUnassigned;
pub use self::unfollow::Unfollow;
pub use self::watch::{GetWatchBacklog, GetWatched, IsWatched, Watch, WatchBacklogged};
pub use self::withdraw::{
    EstimateWithdrawal, RecordWithdrawal, ReserveWithdrawal, ReservedWithdrawal,
};
