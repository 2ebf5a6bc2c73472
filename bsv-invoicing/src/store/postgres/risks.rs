//! Warns of settings of the database that put commits at risk.

use super::connection::Connection;
use super::error::Failure;
use super::statements::StatementKey;

const READ: StatementKey = StatementKey::Other(
    "SELECT current_setting('data_checksums'), current_setting('fsync'), current_setting('synchronous_commit')",
);

/// Warns of settings with which the database may lose, or not notice that it has lost, what was committed.
pub(super) async fn warn_of_risks(connection: &Connection) -> Result<(), Failure> {
    connection.prepare(&[READ]).await?;
    let rows = connection.run(READ, Vec::new()).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    let setting = |column: usize| row.try_get::<_, &str>(column);
    for risk in risks(setting(0)?, setting(1)?, setting(2)?) {
        tracing::warn!("{risk}");
    }
    Ok(())
}

fn risks(checksums: &str, fsync: &str, synchronous_commit: &str) -> Vec<&'static str> {
    let mut risks = Vec::new();
    if checksums == "off" {
        risks.push(
            "the database has no data_checksums, and does not notice when the disk changes what it has written: see \
             pg_checksums",
        );
    }
    if fsync == "off" {
        risks.push("the database runs with fsync = off, and loses payments when its machine fails");
    }
    if matches!(synchronous_commit, "off" | "local") {
        risks.push(
            "the database does not wait until a commit is safe, and loses payments when its machine fails: set \
             synchronous_commit = on",
        );
    }
    risks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_that_is_unsafe_is_told() {
        assert_eq!(risks("on", "on", "on").len(), 0);
        assert_eq!(risks("on", "on", "remote_apply").len(), 0);
        assert_eq!(risks("off", "on", "on").len(), 1);
        assert_eq!(risks("off", "off", "local").len(), 3);
        assert_eq!(risks("on", "on", "off").len(), 1);
    }
}
