//! The log in a table of a database.

use std::time::{SystemTime, UNIX_EPOCH};

use redb::{ReadTransaction, ReadableTable, TableDefinition, WriteTransaction};

use super::{AuditCheck, AuditEntry, AuditPage, KeyEvent};
use crate::error::StoreError;

/// From the number of an entry to its time, event, subject and the hash of the entry before.
const AUDIT: TableDefinition<'_, u64, (u64, &str, &str, [u8; 32])> = TableDefinition::new("audit");

/// Creates the log's table. Call it from a schema migration.
pub fn create_audit_log(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(AUDIT)?;
    Ok(())
}

/// Appends entries in the transaction that makes the changes which they tell of.
pub fn append_to_audit_log<'a>(
    transaction: &WriteTransaction,
    entries: impl IntoIterator<Item = (KeyEvent, &'a str)>,
) -> Result<(), StoreError> {
    let mut table = transaction.open_table(AUDIT)?;
    let last = table.last()?.map(|(number, row)| entry(number.value(), row.value()).tail());
    let mut tail = last.unwrap_or_default();
    for (event, subject) in entries {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        let next = AuditEntry::next(tail, event, subject, now);
        let row = (next.at_micros, next.event.as_str(), subject, next.previous);
        table.insert(next.number, row)?;
        tail = next.tail();
    }
    Ok(())
}

/// Appends an entry of another log unchanged. All entries of this log must come from that log.
pub fn copy_to_audit_log(
    transaction: &WriteTransaction,
    entry: &AuditEntry,
) -> Result<(), StoreError> {
    let mut table = transaction.open_table(AUDIT)?;
    let row = (entry.at_micros, entry.event.as_str(), entry.subject.as_str(), entry.previous);
    table.insert(entry.number, row)?;
    Ok(())
}

/// Up to `limit` entries of a page, in order.
pub fn read_audit_log(
    transaction: &ReadTransaction,
    page: AuditPage,
    limit: usize,
) -> Result<Vec<AuditEntry>, StoreError> {
    let table = transaction.open_table(AUDIT)?;
    let rows: Vec<_> = match page {
        AuditPage::After(number) => table.range(number.saturating_add(1)..)?.take(limit).collect(),
        AuditPage::Before(number) => {
            let mut rows: Vec<_> = table.range(..number)?.rev().take(limit).collect();
            rows.reverse();
            rows
        }
    };
    let entries = rows.into_iter().map(|row| {
        let (number, row) = row?;
        Ok(entry(number.value(), row.value()))
    });
    entries.collect()
}

/// Reads the log from its beginning to the first entry that does not fit.
pub fn verify_audit_log(transaction: &ReadTransaction) -> Result<AuditCheck, StoreError> {
    let mut check = AuditCheck::default();
    for row in transaction.open_table(AUDIT)?.iter()? {
        let (number, row) = row?;
        if !check.take(&entry(number.value(), row.value())) {
            break;
        }
    }
    Ok(check)
}

fn entry(
    number: u64,
    (at_micros, event, subject, previous): (u64, &str, &str, [u8; 32]),
) -> AuditEntry {
    let (event, subject) = (event.to_owned(), subject.to_owned());
    AuditEntry { number, at_micros, event, subject, previous }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Database, DatabaseOptions, Schema};

    const LOG: Schema = Schema { name: "log", migrations: &[create_audit_log] };

    type Row = (u64, &'static str, &'static str, [u8; 32]);

    fn log_of(count: u64) -> (tempfile::TempDir, Database) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.redb");
        let database = Database::open(&path, &LOG, DatabaseOptions::default()).unwrap();
        for number in 1..=count {
            write(&database, |transaction| {
                let subject = format!("pool_{number}");
                append_to_audit_log(transaction, [(KeyEvent::Made, subject.as_str())])
            });
        }
        (dir, database)
    }

    fn write(
        database: &Database,
        change: impl FnOnce(&WriteTransaction) -> Result<(), StoreError>,
    ) {
        let written = database.write(|transaction| Ok(Ok::<_, ()>(change(transaction)?)));
        assert_eq!(written.unwrap(), Ok(()));
    }

    fn check(database: &Database) -> AuditCheck {
        database.read(|transaction| verify_audit_log(transaction)).unwrap()
    }

    #[test]
    fn entries_are_numbered_and_chained() {
        let (_dir, database) = log_of(3);
        let read = |page, limit| {
            let read = database.read(|transaction| read_audit_log(transaction, page, limit));
            read.unwrap()
        };
        let entries = read(AuditPage::After(1), 9);
        assert_eq!(entries.iter().map(|entry| entry.number).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(entries[1].previous, entries[0].hash());
        assert_eq!((entries[1].event.as_str(), entries[1].subject.as_str()), ("made", "pool_3"));
        let numbers =
            |page, limit| read(page, limit).iter().map(|entry| entry.number).collect::<Vec<_>>();
        assert_eq!(numbers(AuditPage::After(0), 2), [1, 2]);
        assert_eq!(numbers(AuditPage::Before(u64::MAX), 2), [2, 3]);
        assert_eq!(numbers(AuditPage::Before(2), 2), [1]);
        assert_eq!(numbers(AuditPage::Before(0), 2), [0; 0]);
        let found = check(&database);
        assert_eq!((found.entries, found.head, found.fault), (3, entries[1].hash(), None));
    }

    #[test]
    fn the_first_entry_that_was_tampered_with_is_named() {
        for tampered in 1..=3_u64 {
            let tampers: [fn(Row) -> Row; 4] = [
                |(at, event, subject, previous)| (at + 1, event, subject, previous),
                |(at, _, subject, previous)| (at, "rotated", subject, previous),
                |(at, event, _, previous)| (at, event, "other", previous),
                |(at, event, subject, previous)| (at, event, subject, previous.map(|byte| !byte)),
            ];
            for (place, tamper) in tampers.into_iter().enumerate() {
                let (_dir, database) = log_of(4);
                write(&database, |transaction| {
                    let mut table = transaction.open_table(AUDIT)?;
                    let row = table.get(tampered)?.unwrap();
                    let (at, _, subject, previous) = row.value();
                    let subject: &'static str = subject.to_owned().leak();
                    drop(row);
                    table.insert(tampered, tamper((at, "made", subject, previous)))?;
                    Ok(())
                });
                // Only the next entry shows a change of the last field.
                let found = check(&database);
                let named = if place == 3 { tampered } else { tampered + 1 };
                assert_eq!(found.entries + 1, named, "{place}: {found:?}");
                assert!(found.fault.unwrap().contains(&format!("entry {named} ")));
            }
        }
    }

    #[test]
    fn a_missing_entry_is_named() {
        let (_dir, database) = log_of(4);
        write(&database, |transaction| {
            transaction.open_table(AUDIT)?.remove(2)?;
            Ok(())
        });
        let found = check(&database);
        assert_eq!(found.entries, 1);
        assert_eq!(found.fault.unwrap(), "entry 2 is missing; entry 3 follows");
    }
}
