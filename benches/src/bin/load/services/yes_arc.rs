use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use bsv_tx::ExtendedTransaction;
use bytes::Bytes;
use serde_json::json;
use tokio::net::TcpListener;

use crate::http::serve_paths;

/// Stands in for an ARC that takes every transaction at once.
pub(super) struct YesArc {
    port: u16,
    requests: Arc<AtomicU64>,
}

impl YesArc {
    /// Starts the stand-in on a thread of this process.
    pub(super) fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&requests);
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let answer = move |path: String, body: Bytes| {
                count.fetch_add(1, Ordering::Relaxed);
                async move { Bytes::from(answer(&path, &body)) }
            };
            runtime.block_on(async {
                serve_paths(TcpListener::from_std(listener).unwrap(), answer).await;
            });
        });
        Self { port, requests }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// How many requests there were so far.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

fn answer(path: &str, body: &[u8]) -> String {
    if path == "/v1/policy" {
        return json!({ "policy": { "miningFee": { "satoshis": 1, "bytes": 1000 } } }).to_string();
    }
    let txid = match path.strip_prefix("/v1/tx/") {
        Some(txid) => txid.to_owned(),
        None => {
            let sent = ExtendedTransaction::from_bytes(body).unwrap();
            sent.transaction().txid().to_string()
        }
    };
    json!({ "txid": txid, "txStatus": "SEEN_ON_NETWORK", "status": 200 }).to_string()
}
