//! The calls of scenarios to a store, as methods instead of commands and queries.

use std::future::Future;

use bsv_invoicing::coins::Spending;
use bsv_invoicing::events::Event;
use bsv_invoicing::invoices::{IdempotencyKey, InvoicePage, InvoiceQuery};
use bsv_invoicing::ledger::queries::{
    GetAccounts, GetBalance, GetBlocks, GetEvents, GetFollowed, GetFollowedTip, GetIncoming,
    GetInvoice, GetInvoices, GetLastEventAt, GetOutgoing, GetOutgoingBefore, GetOutgoingFor,
    GetOutgoingTransaction, GetOwner, GetProofs, GetRecord, GetTransaction, GetUser,
};
use bsv_invoicing::ledger::rows::{AccountStart, FollowedBlock};
use bsv_invoicing::ledger::{
    Accept, Adopt, BeginAccount, CheckedProof, Contest, CreateInvoice, CreateUser, DeleteInvoice,
    Displace, FollowTip, ForgetBlock, Invalidate, Join, Leave, Left, MarkRead, Mine, Offer,
    Offered, PrepareCancellation, PreparedCancellation, Record, RecordCancellation, Refusal,
    Refuse, RefuseByPayee, Release, Reserve, Reserved, See, Sighting, Sweep, TellContested,
    Unfollow, UserRecord,
};
use bsv_invoicing::receiving::{IncomingPayment, PaymentQuery};
use bsv_invoicing::sending::{OutgoingPayment, OutgoingPurpose, Posting};
use bsv_invoicing::store::{Task, WalletStore, WalletStoreError};
use bsv_invoicing::transactions::{BlockPlace, Followed, FoundProof, Proof, TransactionRecord};
use bsv_invoicing::{Invoice, Timestamp, UserDraft};
use bsv_store::KeyEvent;
use bsv_tx::Transaction;

pub(crate) type Answer<T> = Result<T, WalletStoreError>;

/// The first page of the payments of an invoice, without a limit.
pub(crate) const ALL_PAYMENTS: PaymentQuery = PaymentQuery { after: None, limit: usize::MAX };

/// Defines a method for a command or a query.
macro_rules! calls {
    ($($how:ident: $name:ident($($argument:ident: $type:ty),*) -> $answer:ty = $what:expr;)*) => {
        /// The methods, for every store.
        pub(crate) trait Calls: WalletStore {
            $(
                fn $name(
                    &self,
                    $($argument: $type),*
                ) -> impl Future<Output = Answer<$answer>> + Send {
                    self.$how($what)
                }
            )*

            /// Runs a sweep. Returns how much was due, which may be nothing.
            fn sweep(
                &self,
                now: Timestamp,
                limit: usize,
            ) -> impl Future<Output = Answer<usize>> + Send {
                async move {
                    match self.execute(Sweep { now, doubted_since: None, limit }).await {
                        Err(WalletStoreError::Refused(Refusal::NothingDue)) => Ok(0),
                        swept => swept,
                    }
                }
            }

            /// All payments towards an invoice.
            fn incoming(
                &self,
                invoice: u64,
            ) -> impl Future<Output = Answer<Vec<IncomingPayment>>> + Send {
                async move {
                    let (mut payments, mut query) = (Vec::new(), ALL_PAYMENTS);
                    loop {
                        let page = self.list(GetIncoming(invoice, query)).await?;
                        payments.extend(page.payments);
                        query.after = page.next;
                        if page.next.is_none() {
                            return Ok(payments);
                        }
                    }
                }
            }

            /// The network shows a transaction in its mempool, with a fee that is sufficient.
            fn see(
                &self,
                transaction: u64,
                now: Timestamp,
            ) -> impl Future<Output = Answer<()>> + Send {
                self.execute(See { transaction, sighting: Sighting::judged(true), now })
            }

            /// The network shows a transaction in its mempool, with a fee that is too low.
            fn see_waiting(
                &self,
                transaction: u64,
                now: Timestamp,
            ) -> impl Future<Output = Answer<()>> + Send {
                self.execute(See { transaction, sighting: Sighting::judged(false), now })
            }
        }

        impl<S: WalletStore> Calls for S {}
    };
}

calls! {
    get: owner() -> Option<[u8; 20]> = GetOwner;
    get: accounts() -> Vec<(u32, AccountStart)> = GetAccounts;
    get: invoice(number: u64) -> Option<Invoice> = GetInvoice(number);
    list: invoices(query: InvoiceQuery, now: Timestamp) -> InvoicePage = GetInvoices(query, now);
    get: user(id: u64) -> Option<UserRecord> = GetUser(id);
    get: outgoing(number: u64) -> Option<(OutgoingPayment, Posting)> = GetOutgoing(number);
    get: outgoing_to(url: &str) -> Option<OutgoingPayment> = GetOutgoingFor(OutgoingPurpose::Url(url.to_owned()));
    list: outgoing_before(payment: u64, limit: usize) -> Vec<OutgoingPayment> =
        GetOutgoingBefore(payment, limit);
    list: followed(after: u64, limit: usize) -> Vec<Followed> = GetFollowed(after, limit);
    get: outgoing_transaction(payment: u64) -> (u64, Transaction) = GetOutgoingTransaction(payment);
    get: record(number: u64) -> Option<TransactionRecord> = GetRecord(number);
    get: transaction(number: u64) -> Option<Transaction> = GetTransaction(number);
    list: blocks(from: u32) -> Vec<BlockPlace> = GetBlocks(from);
    get: proofs(number: u64) -> Vec<FoundProof> = GetProofs(number);
    get: followed_tip() -> Option<FollowedBlock> = GetFollowedTip;
    get: balance() -> u64 = GetBalance;
    get: last_event_at() -> Timestamp = GetLastEventAt;
    list: events(after: u64, limit: usize) -> Vec<Event> = GetEvents(after, limit);

    execute: adopt(fingerprint: [u8; 20], origin: KeyEvent) -> () = Adopt { fingerprint, origin };
    execute: begin_account(account: u32) -> u32 = BeginAccount { account, is_behind: false };
    execute: create_invoice(invoice: CreateInvoice) -> Invoice = invoice;
    execute: delete_invoice(number: u64, now: Timestamp) -> () = DeleteInvoice { number, now };
    execute: create_user(
        details: UserDraft, now: Timestamp, idempotency: Option<IdempotencyKey>
    ) -> UserRecord = CreateUser { details, idempotency, now };
    execute: offer(payment: Offer) -> Offered = payment;
    execute: refuse(transaction: u64, now: Timestamp) -> () = Refuse { transaction, now };
    execute: mine(transaction: u64, proof: Proof, now: Timestamp) -> () =
        Mine { transaction, checked: CheckedProof { proof, reorganisations: 0 }, now };
    execute: forget_block(block: BlockPlace, now: Timestamp) -> Option<u64> =
        ForgetBlock {
            block,
            is_replaced: true,
            may_have_rivals: false,
            after: 0,
            limit: usize::MAX,
            now,
        };
    execute: contest(transaction: u64, now: Timestamp) -> () = Contest { transaction, now };
    execute: tell_contested(transaction: u64, now: Timestamp) -> () =
        TellContested { transaction, now };
    execute: displace(transaction: u64, now: Timestamp) -> () = Displace { transaction, now };
    execute: invalidate(transaction: u64, now: Timestamp) -> () = Invalidate { transaction, now };
    execute: unfollow(transaction: u64) -> () = Unfollow { transaction };
    execute: mark_read(transaction: u64, sequence: u32, is_read: bool) -> bool =
        MarkRead { transaction, sequence, is_read };
    execute: follow_tip(tip: FollowedBlock) -> bool = FollowTip { tip, now: Timestamp::from_micros(0) };
    execute: reserve(payment: Reserve) -> Reserved = payment;
    execute: release(reservation: u64) -> () = Release { reservation };
    execute: join(after: Option<Task>) -> Option<Task> = Join { after };
    execute: leave(after: Option<Task>) -> Left = Leave { process: None, after };
    execute: record_payment(payment: Record) -> OutgoingPayment = payment;
    execute: accept(payment: u64, memo: &str, now: Timestamp) -> OutgoingPayment =
        Accept { payment, memo: memo.to_owned(), channel: None, now };
    execute: refuse_by_payee(payment: u64, reason: &str, now: Timestamp) -> OutgoingPayment =
        RefuseByPayee { payment, reason: reason.to_owned(), is_absent: true, now };
    execute: prepare_cancellation(payment: u64, spending: Spending) -> PreparedCancellation =
        PrepareCancellation { payment, spending };
    execute: record_cancellation(cancellation: RecordCancellation) -> u64 = cancellation;
}
