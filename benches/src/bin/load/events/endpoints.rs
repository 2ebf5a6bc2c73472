//! Endpoints for webhooks, which a thread of their own serves.

use std::future::ready;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::Client;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::arrival::{self, Arrival};
use crate::http;

/// How long to wait for events.
const PATIENCE: Duration = Duration::from_secs(60);
const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

/// Endpoints, each with a listener of its own. They stop when dropped.
pub(crate) struct Endpoints {
    urls: Vec<String>,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    _runtime: Runtime,
}

impl Endpoints {
    /// Starts so many endpoints, which answer at once.
    pub(crate) fn start(count: usize) -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let urls = (0..count).map(|_| runtime.block_on(serve(Arc::clone(&arrivals)))).collect();
        Self { urls, arrivals, _runtime: runtime }
    }

    /// Creates a webhook to each endpoint.
    pub(crate) fn subscribe<'a>(&self, wallet: &'a Client, draft: &Value) -> Subscribed<'a> {
        let subscribed = self.urls.iter().map(|url| subscribe(wallet, url, draft.clone()));
        Subscribed { wallet, paths: subscribed.collect() }
    }

    /// The URL of the first endpoint.
    pub(crate) fn url(&self) -> &str {
        &self.urls[0]
    }

    /// Waits until so many events have arrived, and answers them.
    pub(crate) fn until(&self, count: usize) -> Vec<Arrival> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let arrivals = self.arrivals.lock().unwrap().clone();
            if arrivals.len() >= count {
                return arrivals;
            }
            assert!(Instant::now() < deadline, "only {} of {count} events came", arrivals.len());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Webhooks, which are deleted when this is dropped.
pub(crate) struct Subscribed<'a> {
    wallet: &'a Client,
    paths: Vec<String>,
}

impl Drop for Subscribed<'_> {
    fn drop(&mut self) {
        for path in &self.paths {
            unsubscribe(self.wallet, path);
        }
    }
}

/// Creates a webhook, and gives its path.
pub(crate) fn subscribe(wallet: &Client, url: &str, mut draft: Value) -> String {
    draft["url"] = json!(url);
    let made = wallet.send("POST", "/api/v1/webhooks", &JSON, draft.to_string().as_bytes());
    assert_eq!(made.status, 201, "{}", made.body);
    made.header("location").unwrap().to_owned()
}

/// Deletes a webhook.
pub(crate) fn unsubscribe(wallet: &Client, path: &str) {
    assert_eq!(wallet.send("DELETE", path, &[], b"").status, 204);
}

/// Serves an endpoint, and gives its URL.
async fn serve(arrivals: Arc<Mutex<Vec<Arrival>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let answer = move |body: Bytes| {
        let at = Instant::now();
        let number = arrival::number(&body).expect("an event has a number");
        arrivals.lock().unwrap().push(Arrival { number, at });
        ready(Bytes::new())
    };
    tokio::spawn(http::serve(listener, answer));
    url
}
