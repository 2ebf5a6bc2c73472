//! The rules of money: what may happen, and what follows from it.
//!
//! The rules are pure. They read and write rows through [`rows`], which a back end provides. They
//! know no clock, no network and no storage engine. Everything that can happen is a [`Command`]:
//! plain data that runs in one step.
//!
//! # States of a transaction
//! Only transactions in the node's mempool of final transactions, or in a block of its main chain,
//! are money. Without a node, the word of services stands for the mempool, as far as it reaches: see
//! [`Evidence`].
//!
//! | state | means | its receipts | the coins it spends |
//! | --- | --- | --- | --- |
//! | offered | its bytes are stored, and the network has not shown it | do not count | of a payment by the wallet: reserved |
//! | unseen | the payee has agreed, and the network has not shown it | do not count | reserved |
//! | waiting | in the mempool, and only a block makes it count ([`WaitReason`](crate::transactions::WaitReason)): its fee may be too low for it to be mined, or the word of services does not suffice | do not count | spent |
//! | seen | in the mempool, and its fee is sufficient | count, can be spent | spent |
//! | mined | a checked proof shows that it is in a block of the main chain | count, can be spent (those of a coinbase transaction 100 blocks later) | spent |
//! | contested | it was seen, is now neither in the mempool nor in a block, and no transaction in the chain spends the same coins | count, cannot be spent | spent |
//! | displaced | another transaction in the chain spends the same coins | do not count | free |
//! | invalid | the network refused the transaction itself at six tips in a row, or had shown it and refused it when it was offered again, or it is the coinbase transaction of a block that has left the main chain | do not count | free |
//! | refused | the network or the payee did not take it | do not count | free |
//! | cancelled | the wallet cancelled it: a cancellation spent one of its coins | do not count | free |
//!
//! # What changes one state to another
//!
//! | what happens | from | to | remarks |
//! | --- | --- | --- | --- |
//! | [`Offer`] | – or lost | offered | only one payment of an invoice is offered at a time; a payment that the network already has is recorded in any case |
//! | [`Reserve`], [`Record`] | – | offered | coins are reserved, then the caller signs, then the payment is recorded |
//! | [`ReserveWithdrawal`], [`RecordWithdrawal`] | – | offered | the same for all transactions of a withdrawal at once |
//! | [`ReserveConsolidation`], [`Record`] | – | offered | the same for a transaction that consolidates coins |
//! | [`Accept`] (the payee agrees) | offered | unseen | |
//! | [`See`] (a node shows it) | any but mined | seen; waiting if its fee is too low and was never sufficient | other transactions that hold its coins become displaced or cancelled; it has no rival |
//! | [`See`] (services know it, [`Evidence::Word`]) | any but mined, displaced, cancelled | the same; waiting, or contested if it was, if it has a rival; waiting if it does not count yet and its receipts would lift the [`Exposure`] above its limit | another transaction that holds one of its coins keeps it and its own state, and is a rival. Once that one is lost, the coin is held by this one. Nothing changes for a coinbase transaction |
//! | [`See`] (services know it, [`Evidence::Hearsay`]) | any but waiting, seen, contested, mined, displaced, cancelled | waiting | |
//! | [`NoteRival`] (services know another transaction that spends the same coin), or a second one gets into the books | seen | contested | other states stay; it counts only in a block, until a node shows it; its invoices take another payment if it is still offered |
//! | [`TellByServices`] (instead of a node) | waiting, seen, contested | the same; contested if it has a rival | |
//! | [`Mine`] | any | mined | a payment that only services tell of, and that did not count before, counts once the block is deep enough; other transactions that hold its coins become displaced or cancelled, and its rivals displaced; refused if a reorganisation was followed since the proof was checked ([`FollowReorganisation`]) |
//! | [`ForgetBlock`] | mined | contested; waiting if services tell of it and it did not count yet; invalid if it is the coinbase transaction of a block that another one has replaced | transactions that spend receipts of an invalid one become displaced first |
//! | [`Contest`] | seen | contested | |
//! | [`TellContested`] | contested | contested | writes the event, once |
//! | [`Displace`] | any that is not lost | displaced | transactions that spend its receipts become displaced first |
//! | [`Invalidate`] | any that is not lost | invalid | transactions that spend its receipts become displaced first |
//! | [`Refuse`] (the network says no) | offered, of a payment to the wallet | refused; invalid if it was ever seen | |
//! | [`FreeInvoices`] (nobody says what became of it for a while) | offered, of a payment to the wallet | offered | its invoices take another payment, and expire in their time |
//! | [`RefuseByPayee`] | offered, of a payment by the wallet | refused, or offered if the network may have it | |
//! | [`PrepareCancellation`], [`RecordCancellation`] | – | offered | the payment keeps its state until the network shows it or the cancellation |
//! | a cancellation is seen by a node, or mined | offered, unseen, waiting | cancelled | this is the state of the payment. A cancellation that services know waits, and the payment keeps its state |
//! | [`Notice`] (the network shows a transaction that nobody announced) | – | waiting, seen, mined | as with [`See`] and [`Mine`] |
//!
//! A displaced, invalid, refused or cancelled transaction is *lost*. The wallet still follows it
//! for a while. If the network shows a transaction, that changes every state, and nothing but the
//! network makes a transaction money.
//!
//! A **command** checks before it writes, so that a refused command has written nothing. It may run
//! twice, for example if another command of its batch fails. It neither waits nor signs.

mod accept;
mod adopt;
pub(crate) mod attempts;
mod attention;
mod begin_account;
mod books;
mod cancel;
mod claims;
pub(crate) mod codec;
pub(crate) mod coin_choice;
mod command;
mod confirm_tip;
mod consolidate;
mod contest;
pub(crate) mod copy;
mod create_invoice;
mod create_user;
mod delete_invoice;
mod displace;
pub(crate) mod drop_bytes;
mod earlier_attempts;
mod effects;
mod event_log;
mod event_page;
pub mod events;
mod exposure;
pub mod figures;
mod follow_tip;
mod forget_block;
mod free_invoices;
pub mod idempotency;
mod idempotent_answers;
pub mod items;
mod keys;
mod mark_read;
mod mine;
pub mod movements;
mod notice;
mod offer;
mod payment_pages;
pub mod queries;
mod record;
mod recount;
mod refunds;
mod refusal;
mod refuse;
mod release;
mod reorganisation;
mod rescan;
mod reserve;
mod rivals;
pub mod rows;
mod see;
mod settle;
mod shown_invoices;
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
pub use self::books::{Books, BooksOn};
pub use self::cancel::{PrepareCancellation, PreparedCancellation, RecordCancellation};
pub use self::claims::{Claim, Join, JoinAlone, Leave, Left, LetGo, LetGoAll};
pub(crate) use self::command::Asked;
pub use self::command::{Command, Query};
pub use self::confirm_tip::{ConfirmTip, IsTipUnconfirmed};
pub use self::consolidate::ReserveConsolidation;
pub use self::contest::{Contest, TellContested};
pub use self::create_invoice::CreateInvoice;
pub use self::create_user::{CreateUser, UserRecord};
pub use self::delete_invoice::DeleteInvoice;
pub use self::displace::{Displace, Invalidate};
pub use self::drop_bytes::{DropBytes, GetLong, LongTransactions};
pub use self::event_log::{GetLogName, NameLog};
pub use self::event_page::GetEventPage;
pub use self::exposure::{Exposure, GetExposure};
pub use self::follow_tip::FollowTip;
pub use self::forget_block::ForgetBlock;
pub use self::free_invoices::FreeInvoices;
pub use self::mark_read::MarkRead;
pub use self::mine::Mine;
pub use self::notice::{GetKnown, Known, Notice, Noticed, OwnParts, ShownPlace};
pub use self::offer::{Offer, Offered};
pub use self::record::{NewPayment, Record};
pub use self::refunds::Refundable;
pub use self::refusal::Refusal;
pub use self::refuse::{Refuse, RefuseByPayee};
pub use self::release::Release;
pub use self::reorganisation::{CheckedProof, FollowReorganisation, GetReorganisations};
pub use self::rescan::{GetRescan, SetRescan};
pub use self::reserve::{EstimateFee, FindPayment, Reservation, Reserve, Reserved};
pub use self::rivals::NoteRival;
pub use self::see::{See, TellByServices};
pub use self::settle::{GetRules, MarkPaid, SetRules};
pub use self::skip_numbers::SkipNumbers;
pub use self::sweep::Sweep;
pub use self::unassigned::GetUnassigned;
pub use self::unfollow::Unfollow;
pub(crate) use self::watch::KEYS_END;
pub use self::watch::{
    ForgetNewlyWatched, GetNewlyWatched, GetWatchBacklog, GetWatched, GetWatchedAhead, IsWatched,
    Watch, WatchBacklogged,
};
pub use self::withdraw::{
    EstimateWithdrawal, RecordWithdrawal, ReserveWithdrawal, ReservedWithdrawal,
};
pub use crate::model::sighting::Sighting;
pub use bsv_network::Evidence;
