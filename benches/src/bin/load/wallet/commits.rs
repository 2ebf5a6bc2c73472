use std::time::{Duration, Instant};

use redb::{Database, TableDefinition};
use tempfile::TempDir;

const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");

/// The least work for a durable change: one row in a redb file of its own, with the same kind of
/// commit as the wallet's.
pub(crate) struct BareCommits {
    database: Database,
    next: u64,
    _dir: TempDir,
}

impl BareCommits {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let database = Database::create(dir.path().join("bare.redb")).unwrap();
        Self { database, next: 0, _dir: dir }
    }

    /// Commits one row after the other, and answers how many per second.
    pub(crate) fn rate(&mut self, duration: Duration) -> f64 {
        let (first, started) = (self.next, Instant::now());
        while started.elapsed() < duration {
            self.commit();
        }
        (self.next - first) as f64 / started.elapsed().as_secs_f64()
    }

    /// Commits one row.
    pub(crate) fn commit(&mut self) {
        let mut transaction = self.database.begin_write().unwrap();
        transaction.set_quick_repair(true);
        transaction.open_table(ROWS).unwrap().insert(self.next, [7; 200].as_slice()).unwrap();
        transaction.commit().unwrap();
        self.next += 1;
    }
}
