//! Migrations of the wallet's file from each version to the next. They define the tables of older
//! versions themselves, so that changes of today's tables do not change a migration.

mod events;
mod holdings;
mod payments;
mod purposes;
mod tables;
mod watching;

use std::collections::HashMap;

use bsv_store::{KeyEvent, Migration, Schema, StoreError, append_to_audit_log, create_audit_log};
use redb::{ReadableTable, TableDefinition, WriteTransaction};

use self::events::tell_events_by_invoice;
use self::holdings::keep_holdings;
use self::payments::keep_payments;
use self::purposes::give_payments_purposes;
use self::tables::{
    CHANGE, EVENTS, FIGURES_6, INVOICES, OF_STRANGERS, OUTGOING_6, RECEIPTS, SETTLED, SPENDABLE,
    TRANSACTIONS,
};
use self::watching::{tell_unmined_apart, watch_scripts};
use super::rows::create_tables;
use crate::ledger::attempts::url_hash;
use crate::store::stored::WAS_SEEN;

pub(super) const SCHEMA: Schema = Schema { name: "wallet", migrations: MIGRATIONS };

const MIGRATIONS: &[Migration] = &[
    create_tables_of_version_1,
    add_expiries_and_idempotency,
    add_money,
    begin_audit_log,
    forget_hashes_of_mined,
    believe_only_the_network,
    watch_scripts,
    give_payments_purposes,
    keep_holdings,
    tell_events_by_invoice,
    add_webhooks,
    add_ancestors,
    add_claims,
];

type UserRow = (&'static str, &'static str, &'static str, &'static str, &'static str);
const USERS: TableDefinition<'_, u64, UserRow> = TableDefinition::new("users");
const FIGURES: TableDefinition<'_, &str, u64> = TableDefinition::new("figures");
const WALLET: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("wallet");

fn create_tables_of_version_1(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(INVOICES)?;
    transaction.open_table(USERS)?;
    transaction.open_table(EVENTS)?;
    transaction.open_table(FIGURES)?;
    transaction.open_table(WALLET)?;
    Ok(())
}

const EXPIRIES: TableDefinition<'_, (u64, u64), ()> = TableDefinition::new("expiries");
const IDEMPOTENCY: TableDefinition<'_, (u8, &str), ([u8; 32], u64, u64)> =
    TableDefinition::new("idempotency");
const IDEMPOTENCY_AGES: TableDefinition<'_, (u64, u8, &str), ()> =
    TableDefinition::new("idempotency_ages");

fn add_expiries_and_idempotency(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(IDEMPOTENCY)?;
    transaction.open_table(IDEMPOTENCY_AGES)?;
    let mut expiries = transaction.open_table(EXPIRIES)?;
    for row in transaction.open_table(INVOICES)?.iter()? {
        let (number, row) = row?;
        let (_, _, _, expires_at, paid_at, deleted_at, ..) = row.value();
        if paid_at.is_none() && deleted_at.is_none() {
            expiries.insert((expires_at, number.value()), ())?;
        }
    }
    Ok(())
}

const RAW: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("raw transactions");
/// Satoshis, chain and index of the key, and the number of the spending transaction.
type CoinRow = (u64, u8, u32, Option<u64>);
const COINS: TableDefinition<'_, (u64, u32), CoinRow> = TableDefinition::new("coins");
const SPENT: TableDefinition<'_, (u64, u64, u32), ()> = TableDefinition::new("spent");
const INCOMING: TableDefinition<'_, (u64, u64), ()> = TableDefinition::new("incoming");
const IN_FLIGHT: TableDefinition<'_, u64, u64> = TableDefinition::new("in flight");
const REFUNDS: TableDefinition<'_, u64, &str> = TableDefinition::new("refunds");
/// Transaction, its cancellation, URL, satoshis, fee, state, times of beginning and expiry, memo,
/// and the channel: host, path, id, token.
type OutgoingRow = (
    u64,
    Option<u64>,
    &'static str,
    u64,
    u64,
    u8,
    u64,
    u64,
    &'static str,
    Option<(&'static str, &'static str, &'static str, &'static str)>,
);
const OUTGOING: TableDefinition<'_, u64, OutgoingRow> = TableDefinition::new("outgoing");
const MESSAGES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("messages");
const OUTGOING_BY_URL: TableDefinition<'_, [u8; 32], u64> = TableDefinition::new("outgoing by url");
const FOLLOWED: TableDefinition<'_, u64, u64> = TableDefinition::new("followed");
type ProofRow = (u32, [u8; 32], u64, bool, &'static [u8]);
const PROOFS: TableDefinition<'_, (u64, u32), ProofRow> = TableDefinition::new("proofs");
/// The key is the height and the number of a transaction. The value is the hash of its block.
const MINED_WITH_HASHES: TableDefinition<'_, (u32, u64), [u8; 32]> = TableDefinition::new("mined");

fn add_money(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(TRANSACTIONS)?;
    transaction.open_table(RAW)?;
    transaction.open_table(COINS)?;
    transaction.open_table(SPENDABLE)?;
    transaction.open_table(SPENT)?;
    transaction.open_table(INCOMING)?;
    transaction.open_table(IN_FLIGHT)?;
    transaction.open_table(REFUNDS)?;
    transaction.open_table(OUTGOING)?;
    transaction.open_table(MESSAGES)?;
    transaction.open_table(OUTGOING_BY_URL)?;
    transaction.open_table(FOLLOWED)?;
    transaction.open_table(PROOFS)?;
    transaction.open_table(MINED_WITH_HASHES)?;
    Ok(())
}

fn add_webhooks(transaction: &WriteTransaction) -> Result<(), StoreError> {
    create_tables(transaction)
}

fn add_ancestors(transaction: &WriteTransaction) -> Result<(), StoreError> {
    create_tables(transaction)
}

/// The numbers of reservations.
const RESERVATIONS: TableDefinition<'_, u64, Vec<(u64, u32)>> =
    TableDefinition::new("reservations");
/// The kind and the subject of a task to the process that has it and the number of its claim.
const CLAIMS: TableDefinition<'_, (u8, [u8; 32]), ([u8; 16], u64)> = TableDefinition::new("claims");
const SPENDING: u8 = 2;

fn add_claims(transaction: &WriteTransaction) -> Result<(), StoreError> {
    create_tables(transaction)?;
    let mut claims = transaction.open_table(CLAIMS)?;
    for row in transaction.open_table(RESERVATIONS)?.iter()? {
        let mut subject = [0; 32];
        subject[24..].copy_from_slice(&row?.0.value().to_be_bytes());
        claims.insert((SPENDING, subject), ([0; 16], 0))?;
    }
    drop(claims);
    tell_unmined_apart(transaction)?;
    keep_payments(transaction)
}

/// The first entry of the log names the seed, if there is one.
fn begin_audit_log(transaction: &WriteTransaction) -> Result<(), StoreError> {
    create_audit_log(transaction)?;
    let has_seed = transaction.open_table(WALLET)?.get("fingerprint")?.is_some();
    append_to_audit_log(transaction, has_seed.then_some((KeyEvent::Found, "wallet.seed")))
}

const MINED: TableDefinition<'_, (u32, u64), ()> = TableDefinition::new("mined at");

fn forget_hashes_of_mined(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let mut mined = transaction.open_table(MINED)?;
    for row in transaction.open_table(MINED_WITH_HASHES)?.iter()? {
        mined.insert(row?.0.value(), ())?;
    }
    transaction.delete_table(MINED_WITH_HASHES)?;
    Ok(())
}

const REFUNDS_6: TableDefinition<'_, u64, &str> = TableDefinition::new("refunds of transactions");

const IN_FLIGHT_STATE: u8 = 1;
const DISPLACED: u8 = 3;
const CANCELLED: u8 = 10;
/// The state of a payment by the wallet that was cancelled.
const OUTGOING_CANCELLED: u8 = 4;
/// A time in the past. A transaction that is followed until then is looked at once.
const ONCE: u64 = 1;

/// Adds the states of transactions that say what the network has shown.
fn believe_only_the_network(transaction: &WriteTransaction) -> Result<(), StoreError> {
    create_tables(transaction)?;
    move_figures(transaction)?;
    move_payments(transaction)?;
    mark_what_was_seen(transaction)?;
    move_coins(transaction)?;
    move_refunds(transaction)?;
    transaction.delete_table(FIGURES)?;
    transaction.delete_table(OUTGOING)?;
    transaction.delete_table(COINS)?;
    transaction.delete_table(REFUNDS)?;
    Ok(())
}

/// Older versions stored the destination of refunds per invoice. At most one transaction of an
/// invoice was in flight or settled. The destination moves to that transaction.
fn move_refunds(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let transactions = transaction.open_table(TRANSACTIONS)?;
    let incoming = transaction.open_table(INCOMING)?;
    let mut moved = transaction.open_table(REFUNDS_6)?;
    for row in transaction.open_table(REFUNDS)?.iter()? {
        let (invoice, refund_to) = row?;
        for row in incoming.range((invoice.value(), 0)..=(invoice.value(), u64::MAX))? {
            let (_, number) = row?.0.value();
            let state = transactions.get(number)?.map(|row| row.value().3);
            if matches!(state, Some(IN_FLIGHT_STATE | SETTLED)) {
                moved.insert(number, refund_to.value())?;
            }
        }
    }
    Ok(())
}

fn move_figures(transaction: &WriteTransaction) -> Result<(), StoreError> {
    const NAMES: [&str; 8] = [
        "last invoice",
        "last user",
        "last event",
        "last event at",
        "last transaction",
        "last payment",
        "last change",
        "balance",
    ];
    let figures = transaction.open_table(FIGURES)?;
    let mut moved = [0; 11];
    for (figure, name) in moved.iter_mut().zip(NAMES) {
        *figure = figures.get(name)?.map_or(0, |figure| figure.value());
    }
    transaction.open_table(FIGURES_6)?.insert((), moved)?;
    Ok(())
}

fn move_payments(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let mut transactions = transaction.open_table(TRANSACTIONS)?;
    let mut moved = transaction.open_table(OUTGOING_6)?;
    let mut last = HashMap::new();
    for row in transaction.open_table(OUTGOING)?.iter()? {
        let (number, row) = row?;
        let (of, cancellation, url, satoshis, fee, state, created_at, expires_at, memo, channel) =
            row.value();
        let previous = last.insert(url_hash(url), number.value());
        moved.insert(
            number.value(),
            (of, cancellation, previous, url, satoshis, fee, created_at, expires_at, memo, channel),
        )?;
        let of_row = transactions.get(of)?.map(|row| row.value());
        if let Some(mut row) =
            of_row.filter(|row| state == OUTGOING_CANCELLED && row.3 == DISPLACED)
        {
            row.3 = CANCELLED;
            transactions.insert(of, row)?;
        }
    }
    Ok(())
}

/// Older versions marked transactions as displaced too early. This has the wallet ask the network
/// about them once more.
fn mark_what_was_seen(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let mut transactions = transaction.open_table(TRANSACTIONS)?;
    let mut followed = transaction.open_table(FOLLOWED)?;
    let mut displaced = Vec::new();
    for row in transactions.iter()? {
        let (number, row) = row?;
        if row.value().3 == DISPLACED {
            displaced.push((number.value(), row.value()));
        }
    }
    for (number, mut row) in displaced {
        row.3 |= WAS_SEEN;
        transactions.insert(number, row)?;
        if followed.get(number)?.is_none() {
            followed.insert(number, ONCE)?;
        }
    }
    Ok(())
}

fn move_coins(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let transactions = transaction.open_table(TRANSACTIONS)?;
    let mut receipts = transaction.open_table(RECEIPTS)?;
    let mut spendable = transaction.open_table(SPENDABLE)?;
    for row in transaction.open_table(COINS)?.iter()? {
        let (key, row) = row?;
        let (maker, vout) = key.value();
        let (satoshis, chain, index, spender) = row.value();
        receipts.insert((maker, vout), (satoshis, 0, chain, index, spender))?;
        let of = transactions.get(maker)?.map(|row| row.value());
        let is_unconfirmed = of.is_some_and(|row| row.3 == SETTLED && row.6.is_none());
        if chain != CHANGE && is_unconfirmed && spender.is_none() {
            let bucket = u8::try_from(satoshis.max(1).ilog2()).expect("a u64 has 64 bits");
            if spendable.remove((bucket, maker, vout))?.is_some() {
                spendable.insert((bucket + OF_STRANGERS, maker, vout), satoshis)?;
            }
        }
    }
    Ok(())
}
