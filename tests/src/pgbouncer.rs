//! A pooler before a PostgreSQL server.

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::fetch::pgbouncer;
use crate::postgres::{NOBODY, Postgres, give_to_nobody};

/// How long the pooler may take until it accepts connections.
const START_TIMEOUT: Duration = Duration::from_secs(20);
const PORT: u16 = 6432;

/// PgBouncer, which passes statements on to a server. It runs until this is dropped.
#[derive(Debug)]
pub struct PgBouncer {
    program: Child,
    dir: TempDir,
}

impl PgBouncer {
    /// Starts it before a server. `pool_mode` is `session`, `transaction` or `statement`.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(server: &Postgres, pool_mode: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("bsv-pool-").tempdir().unwrap();
        give_to_nobody(dir.path());
        let own = dir.path().display();
        let settings = format!(
            "[databases]\npostgres = host={} port={} user=postgres\n[pgbouncer]\nlisten_port = {PORT}\n\
             unix_socket_dir = {own}\nauth_type = any\npool_mode = {pool_mode}\n",
            server.directory().display(),
            server.port(),
        );
        let (file, log) = (dir.path().join("pgbouncer.ini"), dir.path().join("log"));
        fs::write(&file, settings).unwrap();
        let mut command = pgbouncer();
        if rustix::process::geteuid().is_root() {
            // It refuses to run as root.
            command.uid(NOBODY).gid(NOBODY);
        }
        command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
        let program = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
        let mut pooler = Self { program, dir };
        let begun = Instant::now();
        while UnixStream::connect(pooler.socket()).is_err() {
            let has_ended = pooler.program.try_wait().unwrap().is_some();
            let is_late = begun.elapsed() > START_TIMEOUT;
            assert!(!has_ended && !is_late, "{}", fs::read_to_string(&log).unwrap());
            sleep(Duration::from_millis(20));
        }
        pooler
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join(format!(".s.PGSQL.{PORT}"))
    }

    /// The URL of a schema.
    pub fn url(&self, schema: &str) -> String {
        let host = self.dir.path().display();
        format!("postgresql:///postgres?host={host}&port={PORT}&user=postgres&schema={schema}")
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
