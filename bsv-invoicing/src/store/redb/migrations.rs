//! What leads from one version of the wallet's file to the next. The tables of older versions are written
//! out here as they were, whatever becomes of today's.

mod purposes;

use std::collections::HashMap;

use bsv_store::{KeyEvent, Migration, Schema, StoreError, append_to_audit_log, create_audit_log};
use redb::{ReadableTable, TableDefinition, WriteTransaction};

use self::purposes::give_payments_purposes;
use super::kinds::WAS_SEEN;
use super::rows::create_tables;
use crate::ledger::queries::url_hash;

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
];

/// Id, satoshis, when created, when it expires, when paid, when deleted, reference, description.
type InvoiceRow =
    ([u8; 12], u64, u64, u64, Option<u64>, Option<u64>, Option<&'static str>, Option<&'static str>);
const INVOICES: TableDefinition<'_, u64, InvoiceRow> = TableDefinition::new("invoices");
type UserRow = (&'static str, &'static str, &'static str, &'static str, &'static str);
const USERS: TableDefinition<'_, u64, UserRow> = TableDefinition::new("users");
const EVENTS: TableDefinition<'_, u64, (u64, u8, u64)> = TableDefinition::new("events");
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

/// Txid, purpose and number of the invoice or payment, state, satoshis, when it came, and height and
/// hash of its block. States were 1 in flight, 2 settled, 3 displaced and 4 dropped.
type TransactionRow = ([u8; 32], u8, u64, u8, u64, u64, Option<(u32, [u8; 32])>);
const TRANSACTIONS: TableDefinition<'_, u64, TransactionRow> = TableDefinition::new("transactions");
const RAW: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("raw transactions");
/// Satoshis, chain and index of the key, and the number of the transaction that spends it.
type CoinRow = (u64, u8, u32, Option<u64>);
const COINS: TableDefinition<'_, (u64, u32), CoinRow> = TableDefinition::new("coins");
const SPENDABLE: TableDefinition<'_, (u8, u64, u32), u64> = TableDefinition::new("spendable");
const SPENT: TableDefinition<'_, (u64, u64, u32), ()> = TableDefinition::new("spent");
const INCOMING: TableDefinition<'_, (u64, u64), ()> = TableDefinition::new("incoming");
const IN_FLIGHT: TableDefinition<'_, u64, u64> = TableDefinition::new("in flight");
const REFUNDS: TableDefinition<'_, u64, &str> = TableDefinition::new("refunds");
/// Transaction, the one that cancels it, URL, satoshis, fee, state, when it began, when it expires,
/// memo, and the channel: host, path, id, token.
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
/// Height and number of a transaction to the hash of its block.
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

/// The log begins with the seed, if there is one.
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

/// The same with the payment to the same URL before, and without the state, which the transaction has.
type OutgoingRow6 = (
    u64,
    Option<u64>,
    Option<u64>,
    &'static str,
    u64,
    u64,
    u64,
    u64,
    &'static str,
    Option<(&'static str, &'static str, &'static str, &'static str)>,
);
const OUTGOING_6: TableDefinition<'_, u64, OutgoingRow6> =
    TableDefinition::new("outgoing payments");
/// Satoshis; account, chain and index of the key; the number of the transaction that spends it.
type ReceiptRow = (u64, u32, u8, u32, Option<u64>);
const RECEIPTS: TableDefinition<'_, (u64, u32), ReceiptRow> = TableDefinition::new("receipts");
const FIGURES_6: TableDefinition<'_, (), [u64; 11]> = TableDefinition::new("all figures");

const REFUNDS_6: TableDefinition<'_, u64, &str> = TableDefinition::new("refunds of transactions");

const IN_FLIGHT_STATE: u8 = 1;
const SETTLED: u8 = 2;
const DISPLACED: u8 = 3;
const CANCELLED: u8 = 10;
/// The state of a payment by the wallet that was cancelled.
const OUTGOING_CANCELLED: u8 = 4;
const CHANGE: u8 = 1;
/// What a bucket's number is raised by where its coins are the unconfirmed ones of strangers.
const OF_STRANGERS: u8 = 64;
/// A time that is over: what is looked after until then is looked at once.
const ONCE: u64 = 1;

/// Transactions may be in more states than before, which say what the network has shown.
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

/// Where refunds go was known of an invoice, of which one transaction at most was in flight or settled.
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

/// Nodes were believed too early. So the network is asked once more about what it has not mined.
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

const ACCOUNTS: TableDefinition<'_, u32, (u64, u64)> = TableDefinition::new("accounts");
const TRANSACTION_NUMBERS: TableDefinition<'_, ([u8; 32], u64), ()> =
    TableDefinition::new("transaction numbers");
/// What came in time, and what came late: of each what is in no block, and what is in blocks.
const RECEIVED_FOR: TableDefinition<'_, u64, [u64; 4]> = TableDefinition::new("received for");
/// Account, chain and index of the first key to the index after the last.
const WATCH_BACKLOG: TableDefinition<'_, (u32, u8, u32), u32> =
    TableDefinition::new("watch backlog");
/// Whether what follows is a height, and not a time.
const RESCAN: TableDefinition<'_, (), (bool, u64)> = TableDefinition::new("rescan");

const RECEIVE: u8 = 0;
const USER: u8 = 2;
/// The states whose receipts count: seen or mined, and contested.
const COUNTING: [u8; 3] = [SETTLED, 7, 8];
/// How many keys of an earlier account may have been given out after the backup from which it was restored.
const UNKNOWN_KEYS: u64 = 100_000;
const UNKNOWN_CHANGE_KEYS: u64 = 1_000;

/// All scripts are watched whose keys may have been given out, and blocks are read from the first invoice on.
fn watch_scripts(transaction: &WriteTransaction) -> Result<(), StoreError> {
    create_tables(transaction)?;
    number_transactions(transaction)?;
    let accounts = accounts_of_version_6(transaction)?;
    sum_what_was_received(transaction, &accounts)?;
    put_keys_in_backlog(transaction, &accounts)?;
    if let Some(row) = transaction.open_table(INVOICES)?.first()? {
        let created_at = row.1.value().2;
        transaction.open_table(RESCAN)?.insert((), (false, created_at))?;
    }
    Ok(())
}

fn number_transactions(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let mut numbers = transaction.open_table(TRANSACTION_NUMBERS)?;
    for row in transaction.open_table(TRANSACTIONS)?.iter()? {
        let (number, row) = row?;
        numbers.insert((row.value().0, number.value()), ())?;
    }
    Ok(())
}

/// An account of which keys were given out.
struct AccountOfVersion6 {
    number: u32,
    last_invoice_before: u64,
    last_invoice: u64,
    last_user_before: u64,
    last_user: u64,
    /// Of the account whose keys are given out: how many were used for change.
    last_change: Option<u64>,
}

fn accounts_of_version_6(
    transaction: &WriteTransaction,
) -> Result<Vec<AccountOfVersion6>, StoreError> {
    let figures = transaction.open_table(FIGURES_6)?.get(())?.map_or([0; 11], |row| row.value());
    let [last_invoice, last_user, _, _, _, _, last_change, ..] = figures;
    let mut starts = vec![(0, (0, 0))];
    for row in transaction.open_table(ACCOUNTS)?.iter()? {
        let (number, start) = row?;
        starts.push((number.value(), start.value()));
    }
    let mut accounts = Vec::new();
    for (place, (number, (last_invoice_before, last_user_before))) in starts.iter().enumerate() {
        let next = starts.get(place + 1);
        accounts.push(AccountOfVersion6 {
            number: *number,
            last_invoice_before: *last_invoice_before,
            last_invoice: next.map_or(last_invoice, |(_, start)| start.0),
            last_user_before: *last_user_before,
            last_user: next.map_or(last_user, |(_, start)| start.1),
            last_change: next.is_none().then_some(last_change),
        });
    }
    Ok(accounts)
}

fn sum_what_was_received(
    transaction: &WriteTransaction,
    accounts: &[AccountOfVersion6],
) -> Result<(), StoreError> {
    let transactions = transaction.open_table(TRANSACTIONS)?;
    let invoices = transaction.open_table(INVOICES)?;
    let mut sums = transaction.open_table(RECEIVED_FOR)?;
    for row in transaction.open_table(RECEIPTS)?.iter()? {
        let (key, row) = row?;
        let (satoshis, account, chain, index, _) = row.value();
        let account = accounts.iter().find(|it| it.number == account && chain == RECEIVE);
        let Some(account) = account else { continue };
        let invoice = account.last_invoice_before + u64::from(index);
        let expires_at = invoices.get(invoice)?.map(|row| row.value().3);
        let Some(expires_at) = expires_at.filter(|_| invoice <= account.last_invoice) else {
            continue;
        };
        let maker = transactions.get(key.value().0)?.map(|row| row.value());
        let Some((_, _, _, state, _, came_at, block)) =
            maker.filter(|row| COUNTING.contains(&(row.3 & !WAS_SEEN)))
        else {
            continue;
        };
        let mut sum = sums.get(invoice)?.map_or([0; 4], |row| row.value());
        let slot = 2 * usize::from(came_at >= expires_at)
            + usize::from(block.is_some() && state & !WAS_SEEN == SETTLED);
        sum[slot] = sum[slot].saturating_add(satoshis);
        sums.insert(invoice, sum)?;
    }
    Ok(())
}

fn put_keys_in_backlog(
    transaction: &WriteTransaction,
    accounts: &[AccountOfVersion6],
) -> Result<(), StoreError> {
    let mut last_change = HashMap::new();
    for row in transaction.open_table(RECEIPTS)?.iter()? {
        let (_, account, chain, index, _) = row?.1.value();
        if chain == CHANGE {
            let end: &mut u64 = last_change.entry(account).or_default();
            *end = (*end).max(u64::from(index) + 1);
        }
    }
    let mut backlog = transaction.open_table(WATCH_BACKLOG)?;
    for it in accounts {
        let invoices = it.last_invoice - it.last_invoice_before;
        let users = it.last_user - it.last_user_before;
        let (unknown, change) = match it.last_change {
            Some(change) => (0, change),
            None => {
                let used = last_change.get(&it.number).copied().unwrap_or(0);
                (UNKNOWN_KEYS, used + UNKNOWN_CHANGE_KEYS)
            }
        };
        let keys =
            [(RECEIVE, 1, invoices + unknown + 1), (CHANGE, 0, change), (USER, 1, users + 1)];
        for (chain, first, end) in keys {
            let end = u32::try_from(end.min(1 << 31)).expect("it is at most 2^31");
            if end > first {
                backlog.insert((it.number, chain, first), end)?;
            }
        }
    }
    Ok(())
}
