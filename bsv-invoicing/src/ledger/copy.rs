//! Rows as they are, from one store to another. Nothing of this is a rule: what is copied was made by them.

use std::ops::Bound;

use bsv_store::AuditEntry;

use crate::ledger::queries::GetFigures;
use crate::ledger::rows::{
    Accounts, AllFigures, Ancestors, CatchUp, Claims, Counted, Deliveries, DeliveriesByTime,
    EventLog, Events, Expiries, FollowedTip, FollowedTransactions, IdempotencyAges,
    IdempotentAnswers, Immature, InFlight, Incoming, Invoices, InvoicesByReference, KINDS, Kind,
    LastRefunds, Marked, Messages, MinedAt, NewlyWatched, Order, Outgoing, OutgoingByUrl, Owner,
    PostingUrls, Processes, Proofs, RawTransactions, ReadRows, ReadTable, Receipts, ReceivedFor,
    Refunds, Reorganisations, Rescan, Reservations, Rows, RowsOf, Rules, Spendable, Spends,
    TransactionNumbers, Transactions, Unassigned, Unlisted, Users, WatchBacklog, Watched,
    WebhookChanges, Webhooks, Wishes, Withdrawals,
};
use crate::ledger::{Books, Command, Query};
use crate::model::webhook::WebhookId;

/// How many rows are copied at once.
const PAGE: usize = 1_000;
/// How many bytes of rows that may be long are copied at once. The last row may go beyond them.
const PAGE_LEN: usize = 1 << 20;

macro_rules! copied {
    ($($kind:ident $(by $len:path)?),* $(,)?) => {
        /// Some rows of one kind.
        #[derive(Clone, Debug)]
        pub(crate) enum RowPage {
            $($kind(RowsOf<$kind>),)*
        }

        /// Where to go on.
        enum RowCursor {
            $($kind(Option<<$kind as Kind>::Key>),)*
        }

        const COPIED: usize = [$(stringify!($kind)),*].len();

        /// Where each kind begins. The owner comes last: until then a store belongs to nobody.
        fn beginnings() -> Vec<RowCursor> {
            vec![$(RowCursor::$kind(None),)*]
        }

        impl RowPage {
            /// How many rows these are.
            pub(crate) fn len(&self) -> usize {
                match self {
                    $(Self::$kind(rows) => rows.len(),)*
                }
            }

            /// Where the kind goes on after these rows.
            fn next(&self) -> Option<RowCursor> {
                match self {
                    $(Self::$kind(rows) => {
                        rows.last().map(|(key, _)| RowCursor::$kind(Some(key.clone())))
                    })*
                }
            }
        }

        impl RowCursor {
            fn read<R: ReadRows>(self, rows: &R) -> Result<RowPage, R::Error> {
                match self {
                    $(Self::$kind(after) => {
                        let len: &[fn(&<$kind as Kind>::Row) -> usize] = &[$($len)?];
                        Ok(RowPage::$kind(read_page::<$kind, R>(rows, after, len.first())?))
                    })*
                }
            }
        }

        impl Command for PutRows {
            type Answer = ();

            fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
                match &self.0 {
                    $(RowPage::$kind(rows) => {
                        for (key, row) in rows {
                            books.rows.put::<$kind>(key.clone(), row)?;
                        }
                    })*
                }
                Ok(())
            }

            fn weight(&self) -> usize {
                self.0.long_rows().iter().map(|(_, row)| row.len()).sum()
            }
        }
    };
}

/// Hands over all rows, some at a time, until they are not taken any more.
pub(crate) struct EachPage<F>(pub(crate) F);

/// Sets rows as they are in another store.
#[derive(Clone, Debug)]
pub(crate) struct PutRows(pub(crate) RowPage);

/// Adds entries of the audit log as they are in another store.
#[derive(Clone, Debug)]
pub(crate) struct PutAudit(pub(crate) Vec<AuditEntry>);

copied!(
    Invoices,
    InvoicesByReference,
    Users,
    Events,
    EventLog,
    Webhooks,
    WebhookChanges,
    Deliveries,
    DeliveriesByTime,
    Expiries,
    IdempotentAnswers,
    IdempotencyAges,
    FollowedTip,
    Reorganisations,
    CatchUp,
    Accounts,
    Rules,
    Watched,
    NewlyWatched,
    WatchBacklog,
    Rescan,
    Transactions,
    TransactionNumbers,
    RawTransactions by Vec::len,
    Ancestors by Vec::len,
    Receipts,
    Spendable,
    Immature,
    Unassigned,
    Unlisted,
    Spends,
    Incoming,
    ReceivedFor,
    Counted,
    Wishes,
    Marked,
    InFlight,
    Refunds,
    Outgoing,
    Messages by Vec::len,
    PostingUrls,
    OutgoingByUrl,
    LastRefunds,
    Withdrawals,
    Reservations,
    Processes,
    Claims,
    FollowedTransactions,
    Proofs,
    MinedAt,
    AllFigures,
    Owner,
);

const _: () = assert!(COPIED == KINDS, "all kinds of rows are copied");

impl RowPage {
    /// The rows, if they are of a kind that may be long.
    fn long_rows(&self) -> &[(u64, Vec<u8>)] {
        match self {
            Self::RawTransactions(rows) | Self::Ancestors(rows) | Self::Messages(rows) => rows,
            _ => &[],
        }
    }

    /// A webhook whose id is of more bits than the integers of every engine hold, as they once were.
    pub(crate) fn unfit_webhook(&self) -> Option<WebhookId> {
        let Self::Webhooks(rows) = self else { return None };
        let mut ids = rows.iter().map(|(id, _)| *id);
        ids.find(|id| i64::try_from(id.to_number()).is_err())
    }
}

/// The next rows of a kind. Rows that may be long are read one at a time, and `len` tells their
/// lengths: strangers choose those.
fn read_page<K: Kind, R: ReadTable<K>>(
    rows: &R,
    mut after: Option<K::Key>,
    len: Option<&fn(&K::Row) -> usize>,
) -> Result<RowsOf<K>, R::Error> {
    let (mut page, mut page_len) = (RowsOf::<K>::new(), 0);
    let at_once = if len.is_some() { 1 } else { PAGE };
    while page.len() < PAGE && page_len < PAGE_LEN {
        let from = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let read = rows.scan((from, Bound::Unbounded), Order::Ascending, at_once)?;
        let Some((last, row)) = read.last() else { break };
        after = Some(last.clone());
        page_len += len.map_or(0, |len| len(row));
        page.extend(read);
    }
    Ok(page)
}

impl<F: FnMut(RowPage) -> bool + Send + 'static> Query for EachPage<F> {
    type Answer = ();

    fn run<R: ReadRows>(mut self, rows: &R) -> Result<(), R::Error> {
        for beginning in beginnings() {
            let mut cursor = Some(beginning);
            while let Some(place) = cursor {
                let page = place.read(rows)?;
                cursor = page.next();
                if page.len() > 0 && !(self.0)(page) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Command for PutAudit {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        self.0.iter().try_for_each(|entry| books.rows.put_audit(entry))
    }
}

/// Whether a store holds nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IsEmpty;

impl Query for IsEmpty {
    type Answer = bool;

    fn run<R: ReadRows>(self, rows: &R) -> Result<bool, R::Error> {
        let figures = GetFigures.run(rows)?;
        Ok(figures == crate::ledger::figures::Figures::default()
            && rows.get::<Owner>(&())?.is_none()
            && rows.first::<Transactions>(.., Order::Ascending, 1)?.is_empty()
            && rows.first::<Invoices>(.., Order::Ascending, 1)?.is_empty())
    }
}
