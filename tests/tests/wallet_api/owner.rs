//! The owner of a wallet, who sends requests to its server.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bsv_tests::{Client, Reply, Server, Site};
use serde_json::{Value, json};

pub(crate) const INVOICES: &str = "/api/v1/invoices";
pub(crate) const USERS: &str = "/api/v1/users";
pub(crate) const PUBLIC_URL: &str = "http://127.0.0.1:8445";
pub(crate) const JSON: &str = "application/json; charset=utf-8";
pub(crate) const PROBLEM: &str = "application/problem+json";

/// A wallet and its server.
pub(crate) struct Owner {
    pub(crate) site: Site,
    pub(crate) server: Server,
}

impl Owner {
    pub(crate) fn start() -> Self {
        Self::start_on(Self::site())
    }

    /// A site whose payment URLs do not contain the port, which changes with each start.
    pub(crate) fn site() -> Site {
        Site::with(json!({"payments": {"publicUrl": PUBLIC_URL}}))
    }

    pub(crate) fn start_on(mut site: Site) -> Self {
        site.set_env("BSV_LOG", "off");
        Self { server: site.server(), site }
    }

    /// Stops the server properly, and starts it again.
    pub(crate) fn restart(self) -> Self {
        let Self { site, server } = self;
        assert_eq!(server.stop(), 0);
        Self::start_on(site)
    }

    /// Kills the server, and starts it again.
    pub(crate) fn restart_after_kill(self) -> Self {
        let Self { site, server } = self;
        server.kill();
        Self::start_on(site)
    }

    pub(crate) fn client(&self) -> &Client {
        self.server.wallet()
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.client().get(path)
    }

    /// The body of the answer to `GET path`, which must succeed.
    pub(crate) fn text(&self, path: &str) -> String {
        let reply = self.get(path);
        assert_eq!((reply.status, reply.header("content-type")), (200, Some(JSON)), "{path}");
        reply.body
    }

    pub(crate) fn invoice(&self, id: &str) -> Value {
        serde_json::from_str(&self.text(&format!("{INVOICES}/{id}"))).unwrap()
    }

    pub(crate) fn delete(&self, id: &str) -> Reply {
        self.client().request("DELETE", &format!("{INVOICES}/{id}"), b"")
    }

    pub(crate) fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Reply {
        self.client().post(path, body)
    }

    /// Sends `POST path` with an idempotency key.
    pub(crate) fn post_with_key(&self, path: &str, key: &str, body: impl AsRef<[u8]>) -> Reply {
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
        self.client().send("POST", path, &headers, body.as_ref())
    }

    /// Sends a request to create something, which must succeed. Gives the body of the answer.
    pub(crate) fn create(&self, path: &str, body: impl AsRef<[u8]>) -> String {
        let body = body.as_ref();
        let reply = self.post(path, body);
        let shown = String::from_utf8_lossy(&body[..body.len().min(300)]);
        assert_eq!(reply.status, 201, "{shown}: {}", reply.body);
        reply.body
    }

    /// Creates an invoice and gives its id.
    pub(crate) fn create_invoice(&self, body: impl AsRef<[u8]>) -> String {
        let invoice: Value = serde_json::from_str(&self.create(INVOICES, body)).unwrap();
        invoice["id"].as_str().unwrap().to_owned()
    }

    /// Creates many invoices in parallel, with the references 0, 1, ….
    pub(crate) fn create_many(&self, count: usize, description: &str) -> BTreeSet<String> {
        let next = AtomicUsize::new(0);
        let ids = Mutex::new(BTreeSet::new());
        let description = serde_json::to_string(description).unwrap();
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return;
                }
                let body = format!(
                    r#"{{"satoshis":1,"reference":"{number}","description":{description}}}"#
                );
                assert!(ids.lock().unwrap().insert(self.create_invoice(body)));
            }
        };
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(work);
            }
        });
        ids.into_inner().unwrap()
    }

    /// The ids in the list at `path`.
    pub(crate) fn ids(&self, path: &str) -> Vec<String> {
        let list: Value = serde_json::from_str(&self.text(path)).unwrap();
        ids_of(&list)
    }

    /// Checks that the started server still runs, and has exactly so many invoices.
    pub(crate) fn check_alive(&self, invoice_count: usize) {
        assert_eq!(self.ids(INVOICES).len(), invoice_count);
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.server.id())).unwrap();
        assert!(stat.contains("(bsv-server)"), "{stat}");
    }
}

/// The ids in a list.
pub(crate) fn ids_of(list: &Value) -> Vec<String> {
    let list = list.as_array().unwrap();
    list.iter().map(|invoice| invoice["id"].as_str().unwrap().to_owned()).collect()
}

/// The JSON in a successful answer.
pub(crate) fn json(reply: &Reply) -> Value {
    assert!([200, 201].contains(&reply.status), "{}", reply.body);
    assert_eq!(reply.header("content-type"), Some(JSON), "{}", reply.body);
    serde_json::from_str(&reply.body).unwrap()
}

/// Checks that the answer is this problem, with its members in the order of RFC 9457 and a text as
/// its detail. Gives the problem.
pub(crate) fn check_problem(reply: &Reply, status: u16, code: &str, what: &str) -> Value {
    let title = match status {
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        503 => "Service Unavailable",
        413 => "Payload Too Large",
        415 => "Unsupported Media Type",
        _ => panic!("{status} is not expected anywhere"),
    };
    assert_eq!(reply.status, status, "{what}: {}", reply.body);
    assert_eq!(reply.header("content-type"), Some(PROBLEM), "{what}");
    assert_eq!(reply.header("retry-after").is_some(), status == 503, "{what}");
    let problem: Value = serde_json::from_str(&reply.body).unwrap();
    let detail = problem["detail"].as_str().unwrap();
    assert_ne!(detail, "", "{what}");
    let errors = match &problem["errors"] {
        Value::Null => String::new(),
        errors => format!(",\"errors\":{errors}"),
    };
    let text = format!(
        r#"{{"type":"about:blank","title":"{title}","status":{status},"detail":{},"code":"{code}"{errors}}}"#,
        problem["detail"]
    );
    assert_eq!(reply.body, text, "{what}");
    problem
}

/// Checks that the answer is 400 and names exactly these fields, each with exactly this message.
pub(crate) fn check_errors(reply: &Reply, code: &str, errors: &[(&str, &str)], what: &str) {
    let problem = check_problem(reply, 400, code, what);
    let expected: Value = errors
        .iter()
        .map(|(field, message)| ((*field).to_owned(), Value::from(vec![*message])))
        .collect::<serde_json::Map<_, _>>()
        .into();
    assert_eq!(problem["errors"], expected, "{what}");
}
