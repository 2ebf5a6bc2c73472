use std::time::{Duration, Instant};

use bsv_tests::Postgres;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio_postgres::{Client, Config, NoTls, Statement};

/// How many connections commit at the same time.
const CONNECTIONS: usize = 64;

/// The least work for a durable change in the database: an `INSERT` of one row, which is a transaction of its own. Each
/// connection sends its next one when the one before is committed.
pub(super) struct BareInserts {
    runtime: Runtime,
    connections: Vec<Inserter>,
}

struct Inserter {
    client: Client,
    insert: Statement,
    next: i64,
}

impl BareInserts {
    /// Makes a table for these rows.
    pub(super) fn new(server: &Postgres) -> Self {
        server.query("CREATE TABLE bare (id bigint PRIMARY KEY, bytes bytea NOT NULL)");
        let runtime = Runtime::new().unwrap();
        let connections = runtime.block_on(async {
            let mut connections = Vec::new();
            for number in 0..CONNECTIONS {
                let client = connect(server).await;
                let insert = client.prepare("INSERT INTO bare VALUES ($1, $2)").await.unwrap();
                let next = i64::try_from(number << 40).unwrap();
                connections.push(Inserter { client, insert, next });
            }
            connections
        });
        Self { runtime, connections }
    }

    /// How many rows per second all connections commit.
    pub(super) fn rate(&mut self, duration: Duration) -> f64 {
        self.rate_of(CONNECTIONS, duration)
    }

    /// How many rows per second one connection commits.
    pub(super) fn rate_alone(&mut self, duration: Duration) -> f64 {
        self.rate_of(1, duration)
    }

    fn rate_of(&mut self, connections: usize, duration: Duration) -> f64 {
        let started = Instant::now();
        let deadline = started + duration;
        let at_work = self.connections.drain(..connections);
        let mut inserters: JoinSet<_> = {
            let _entered = self.runtime.enter();
            at_work.map(|inserter| inserter.insert_until(deadline)).collect()
        };
        let mut count = 0;
        self.runtime.block_on(async {
            while let Some(done) = inserters.join_next().await {
                let (inserter, inserted) = done.unwrap();
                self.connections.push(inserter);
                count += inserted;
            }
        });
        count as f64 / started.elapsed().as_secs_f64()
    }
}

impl Inserter {
    async fn insert_until(mut self, deadline: Instant) -> (Self, u64) {
        let mut count = 0;
        while Instant::now() < deadline {
            let row = [7_u8; 200];
            self.client.execute(&self.insert, &[&self.next, &row.as_slice()]).await.unwrap();
            self.next += 1;
            count += 1;
        }
        (self, count)
    }
}

/// A connection to the server's database.
pub(super) async fn connect(server: &Postgres) -> Client {
    let mut config = Config::new();
    config.host_path(server.directory()).port(server.port()).user("postgres").dbname("postgres");
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
