//! The log in a table of a database.

use std::time::{SystemTime, UNIX_EPOCH};

use redb::{ReadTransaction, ReadableTable, TableDefinition, WriteTransaction};

use super::{AuditCheck, AuditEntry, KeyEvent};
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
    let mut last = table.last()?.map(|(number, row)| entry(number.value(), row.value()));
    for (event, subject) in entries {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        let next = AuditEntry {
            number: last.as_ref().map_or(0, |last| last.number) + 1,
            at_micros: last.as_ref().map_or(now, |last| last.at_micros.max(now)),
            event: event.name().to_owned(),
            subject: subject.to_owned(),
            previous: last.as_ref().map_or([0; 32], AuditEntry::hash),
        };
        let row = (next.at_micros, next.event.as_str(), subject, next.previous);
        table.insert(next.number, row)?;
        last = Some(next);
    }
    Ok(())
}

/// Up to `limit` entries after the one with this number, in order.
pub fn read_audit_log(
    transaction: &ReadTransaction,
    after: u64,
    limit: usize,
) -> Result<Vec<AuditEntry>, StoreError> {
    let rows = transaction.open_table(AUDIT)?.range(after.saturating_add(1)..)?;
    rows.take(limit)
        .map(|row| {
            let (number, row) = row?;
            Ok(entry(number.value(), row.value()))
        })
        .collect()
}

/// Reads the log from its beginning to the first entry that does not fit.
pub fn verify_audit_log(transaction: &ReadTransaction) -> Result<AuditCheck, StoreError> {
    let mut check = AuditCheck { entries: 0, head: [0; 32], fault: None };
    let mut last_at = 0;
    for row in transaction.open_table(AUDIT)?.iter()? {
        let (number, row) = row?;
        let entry = entry(number.value(), row.value());
        let expected = check.entries + 1;
        check.fault = if entry.number != expected {
            Some(format!("entry {expected} is missing; entry {} follows", entry.number))
        } else if entry.previous != check.head {
            Some(format!("entry {expected} does not carry the hash of the one before it"))
        } else if entry.at_micros < last_at {
            Some(format!("entry {expected} has an earlier time than the one before it"))
        } else {
            None
        };
        if check.fault.is_some() {
            break;
        }
        check.entries = expected;
        check.head = entry.hash();
        last_at = entry.at_micros;
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
        let entries = database.read(|transaction| read_audit_log(transaction, 1, 9)).unwrap();
        assert_eq!(entries.iter().map(|entry| entry.number).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(entries[1].previous, entries[0].hash());
        assert_eq!((entries[1].event.as_str(), entries[1].subject.as_str()), ("made", "pool_3"));
        let expected = AuditCheck { entries: 3, head: entries[1].hash(), fault: None };
        assert_eq!(check(&database), expected);
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
