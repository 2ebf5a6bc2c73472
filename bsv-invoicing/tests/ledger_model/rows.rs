//! A back end of maps in memory, which can be cloned and compared.

use std::collections::BTreeMap;
use std::ops::Bound;

use bsv_invoicing::ledger::rows::{
    Accounts, AllFigures, Ancestors, AuditLog, CatchUp, Claims, Counted, Damaged, Deliveries,
    DeliveriesByTime, Engine, EventLog, Events, Expiries, FollowedTip, FollowedTransactions,
    IdempotencyAges, IdempotentAnswers, Immature, InFlight, Incoming, Invoices,
    InvoicesByReference, KeyRange, Kind, LastRefunds, Marked, Messages, MinedAt, NewlyWatched,
    Order, Outgoing, OutgoingByUrl, Owner, PostingUrls, Processes, Proofs, RawTransactions,
    ReadTable, Receipts, ReceivedFor, Refunds, Reorganisations, Rescan, Reservations, RowsOf,
    Rules, Spendable, Spends, Table, TransactionNumbers, Transactions, Unassigned, Unlisted, Users,
    WatchBacklog, Watched, WebhookChanges, Webhooks, Wishes, Withdrawals,
};
use bsv_invoicing::ledger::{Books, Command, Refusal};
use bsv_store::{AuditEntry, KeyEvent};

/// Why a command did nothing.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The rows do not fit together. This is always a mistake of the rules.
    Damaged(Damaged),
    Refused(Refusal),
}

impl From<Damaged> for Fault {
    fn from(damaged: Damaged) -> Self {
        Self::Damaged(damaged)
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

macro_rules! memory_rows {
    ($($field:ident: $kind:ident,)*) => {
        /// All rows, by kind.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub(crate) struct MemoryRows {
            $(pub(crate) $field: BTreeMap<<$kind as Kind>::Key, <$kind as Kind>::Row>,)*
            audit_log: Vec<(KeyEvent, String)>,
        }

        $(
            impl ReadTable<$kind> for MemoryRows {
                fn read(
                    &self,
                    key: &<$kind as Kind>::Key,
                ) -> Result<Option<<$kind as Kind>::Row>, Fault> {
                    Ok(self.$field.get(key).cloned())
                }

                fn scan(
                    &self,
                    range: KeyRange<'_, $kind>,
                    order: Order,
                    limit: usize,
                ) -> Result<RowsOf<$kind>, Fault> {
                    Ok(scan(&self.$field, range, order, limit))
                }
            }

            impl Table<$kind> for MemoryRows {
                fn write(
                    &mut self,
                    key: &<$kind as Kind>::Key,
                    row: &<$kind as Kind>::Row,
                ) -> Result<(), Fault> {
                    self.$field.insert(key.clone(), row.clone());
                    Ok(())
                }

                fn write_new(
                    &mut self,
                    key: &<$kind as Kind>::Key,
                    row: &<$kind as Kind>::Row,
                ) -> Result<(), Fault> {
                    let before = self.$field.insert(key.clone(), row.clone());
                    assert_eq!(before, None, "{key:?} has a row already");
                    Ok(())
                }

                fn erase(&mut self, key: &<$kind as Kind>::Key) -> Result<bool, Fault> {
                    Ok(self.$field.remove(key).is_some())
                }
            }
        )*
    };
}

memory_rows! {
    invoices: Invoices,
    invoices_by_reference: InvoicesByReference,
    users: Users,
    events: Events,
    event_log: EventLog,
    webhooks: Webhooks,
    webhook_changes: WebhookChanges,
    deliveries: Deliveries,
    deliveries_by_time: DeliveriesByTime,
    expiries: Expiries,
    idempotent_answers: IdempotentAnswers,
    idempotency_ages: IdempotencyAges,
    figures: AllFigures,
    owner: Owner,
    followed_tip: FollowedTip,
    reorganisations: Reorganisations,
    catch_up: CatchUp,
    accounts: Accounts,
    rules: Rules,
    watched: Watched,
    newly_watched: NewlyWatched,
    watch_backlog: WatchBacklog,
    rescan: Rescan,
    transactions: Transactions,
    transaction_numbers: TransactionNumbers,
    raw_transactions: RawTransactions,
    ancestors: Ancestors,
    receipts: Receipts,
    spendable: Spendable,
    immature: Immature,
    unassigned: Unassigned,
    unlisted: Unlisted,
    spends: Spends,
    incoming: Incoming,
    received_for: ReceivedFor,
    counted: Counted,
    wishes: Wishes,
    marked: Marked,
    in_flight: InFlight,
    refunds: Refunds,
    outgoing: Outgoing,
    messages: Messages,
    posting_urls: PostingUrls,
    outgoing_by_url: OutgoingByUrl,
    last_refunds: LastRefunds,
    withdrawals: Withdrawals,
    reservations: Reservations,
    processes: Processes,
    claims: Claims,
    followed: FollowedTransactions,
    proofs: Proofs,
    mined_at: MinedAt,
}

impl Engine for MemoryRows {
    type Error = Fault;
}

impl AuditLog for MemoryRows {
    fn append_audit(&mut self, event: KeyEvent, subject: &str) -> Result<(), Fault> {
        self.audit_log.push((event, subject.to_owned()));
        Ok(())
    }

    fn put_audit(&mut self, entry: &AuditEntry) -> Result<(), Fault> {
        unreachable!("no rule copies entries: {entry:?}")
    }
}

fn scan<K: Clone + Ord, V: Clone>(
    rows: &BTreeMap<K, V>,
    (start, end): (Bound<&K>, Bound<&K>),
    order: Order,
    limit: usize,
) -> Vec<(K, V)> {
    let is_empty = match (start, end) {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end))
        | (Bound::Excluded(start), Bound::Included(end)) => start >= end,
        _ => false,
    };
    if is_empty {
        return Vec::new();
    }
    let range = rows.range((start.cloned(), end.cloned()));
    let copy = |(key, row): (&K, &V)| (key.clone(), row.clone());
    match order {
        Order::Ascending => range.take(limit).map(copy).collect(),
        Order::Descending => range.rev().take(limit).map(copy).collect(),
    }
}

impl MemoryRows {
    /// Runs a command in its own step. Checks that a refused command has written nothing, and that
    /// a command that runs again on the same rows does the same, as it does when another command of
    /// its batch fails.
    pub(crate) fn execute<C: Command<Answer: PartialEq + std::fmt::Debug>>(
        &mut self,
        command: &C,
    ) -> Result<C::Answer, Refusal> {
        let (rows, answer) = self.clone().try_execute(command);
        let (again, answer_again) = self.clone().try_execute(command);
        assert_eq!(rows, again, "run again: the rows");
        match (answer, answer_again) {
            (Ok(answer), Ok(again)) => {
                assert_eq!(answer, again, "run again: the answer");
                *self = rows;
                Ok(answer)
            }
            (Err(Fault::Refused(refusal)), Err(Fault::Refused(again))) => {
                assert_eq!(format!("{refusal:?}"), format!("{again:?}"), "run again: the refusal");
                assert_eq!(*self, rows, "a refused command has written: {refusal}");
                Err(refusal)
            }
            (Err(Fault::Damaged(damaged)), _) => panic!("{damaged}"),
            (answer, again) => panic!("run again: {answer:?}, and then {again:?}"),
        }
    }

    /// Runs a command that must not be refused.
    pub(crate) fn apply<C: Command<Answer: std::fmt::Debug>>(&mut self, command: &C) {
        let (rows, answer) = std::mem::take(self).try_execute(command);
        *self = rows;
        answer.unwrap();
    }

    fn try_execute<C: Command>(self, command: &C) -> (Self, Result<C::Answer, Fault>) {
        let mut books = Books::open(self).expect("maps can be read");
        let answer = command.run(&mut books);
        (books.close().expect("maps can be written"), answer)
    }
}
