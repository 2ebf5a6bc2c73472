//! Shared by the targets that send whole requests.

pub mod blocks;

use std::sync::Arc;

use bsv_server::config::Config;
use bsv_server::{Api, Create, Instance, serve_connection};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
use tokio::runtime::Runtime;

/// A service, and a runtime for its connections.
pub struct Service {
    runtime: Runtime,
    instance: Arc<Instance>,
}

impl Service {
    /// Opens the data directory that `config` names.
    pub fn open(config: Config) -> Self {
        let runtime = Runtime::new().unwrap();
        let instance =
            Arc::new(runtime.block_on(Instance::open(config, "fuzz", Create::All)).unwrap());
        Self { runtime, instance }
    }

    /// Sends bytes over a connection, and checks that the answers are HTTP and report no internal
    /// error.
    pub fn check(&self, api: Api, bytes: &[u8]) {
        let answers = self.runtime.block_on(async {
            let (client, server) = duplex(64 << 10);
            let (mut reader, mut writer) = split(client);
            let ask = async {
                // The server may close the connection before it has read everything.
                let _ = writer.write_all(bytes).await;
                let _ = writer.shutdown().await;
            };
            let listen = async {
                let mut answers = Vec::new();
                let _ = reader.read_to_end(&mut answers).await;
                answers
            };
            tokio::join!(listen, ask, serve_connection(&self.instance, api, server)).0
        });
        let text = String::from_utf8_lossy(&answers);
        assert!(text.is_empty() || text.starts_with("HTTP/1."), "{text}");
        assert!(!text.to_lowercase().contains("internal error"), "{text}");
    }
}
