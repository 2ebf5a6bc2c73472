//! All rows of a store, as text.

use bsv_invoicing::ledger::Query;
use bsv_invoicing::ledger::rows::{
    Accounts, AllFigures, Ancestors, CatchUp, Claims, Counted, Deliveries, DeliveriesByTime,
    EventLog, Events, Expiries, FollowedTip, FollowedTransactions, IdempotencyAges,
    IdempotentAnswers, Immature, InFlight, Incoming, Invoices, InvoicesByReference, KINDS,
    LastRefunds, Marked, Messages, MinedAt, Outgoing, OutgoingByUrl, Owner, PostingUrls, Proofs,
    RawTransactions, ReadRows, Receipts, ReceivedFor, Refunds, Reorganisations, Rescan,
    Reservations, Rules, Spendable, Spends, TransactionNumbers, Transactions, Unassigned, Unlisted,
    Users, WatchBacklog, Watched, WebhookChanges, Webhooks, Wishes, Withdrawals,
};

/// All rows, table by table, in the order of their keys.
#[derive(Clone)]
pub(crate) struct Dump;

macro_rules! dump {
    ($($kind:ident),* $(,)?) => {
        // All kinds but the figures, and what differs because only one process has a file.
        const _: () = assert!([$(stringify!($kind)),*].len() + 4 == KINDS);

        impl Query for Dump {
            type Answer = Vec<String>;

            fn run<R: ReadRows>(self, rows: &R) -> Result<Vec<String>, R::Error> {
                let mut all = Vec::new();
                $(for (key, row) in rows.range::<$kind>(..)? {
                    all.push(format!("{} {key:?}: {row:?}", stringify!($kind)));
                })*
                for (task, claimed) in rows.range::<Claims>(..)? {
                    all.push(format!("Claims {task:?}: {}", claimed.number));
                }
                Ok(all)
            }
        }
    };
}

dump!(
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
    Owner,
    FollowedTip,
    Reorganisations,
    CatchUp,
    Accounts,
    Rules,
    Watched,
    WatchBacklog,
    Rescan,
    Transactions,
    TransactionNumbers,
    RawTransactions,
    Ancestors,
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
    Messages,
    PostingUrls,
    OutgoingByUrl,
    LastRefunds,
    Withdrawals,
    Reservations,
    FollowedTransactions,
    Proofs,
    MinedAt,
);

/// The figures.
pub(crate) struct DumpFigures;

impl Query for DumpFigures {
    type Answer = String;

    fn run<R: ReadRows>(self, rows: &R) -> Result<String, R::Error> {
        Ok(format!("{:?}", rows.get::<AllFigures>(&())?.unwrap_or_default()))
    }
}
