//! Reading the log of events.

mod command_line;
mod event_source;
mod pull;
mod restored;
mod stream;
mod webhooks;

use bsv_tests::{Client, Reply, Server, Site};
use serde_json::{Value, json};

const EVENTS: &str = "/api/v1/events";

/// A wallet and its server.
struct Shop {
    site: Site,
    server: Server,
}

impl Shop {
    fn start() -> Self {
        Self::start_on(Site::new())
    }

    fn start_on(mut site: Site) -> Self {
        site.set_env("BSV_LOG", "error");
        Self { server: site.server(), site }
    }

    fn client(&self) -> &Client {
        self.server.wallet()
    }

    /// Creates an invoice, and returns its id.
    fn create_invoice(&self, reference: &str) -> String {
        create_invoice(self.client(), reference)
    }

    fn create_user(&self) {
        let reply = self.client().post("/api/v1/users", r#"{"name":"Ada"}"#);
        assert_eq!(reply.status, 201, "{}", reply.body);
    }

    fn delete_invoice(&self, id: &str) {
        let reply = self.client().request("DELETE", &format!("/api/v1/invoices/{id}"), b"");
        assert_eq!(reply.status, 204, "{}", reply.body);
    }

    /// Makes some events of several types, and returns their number.
    fn fill(&self, count: usize) -> usize {
        for number in 0..count {
            let id = self.create_invoice(&format!("order {number}"));
            match number % 3 {
                0 => self.create_user(),
                1 => self.delete_invoice(&id),
                _ => {}
            }
        }
        count + count.div_ceil(3) + (count + 1) / 3
    }
}

fn create_invoice(client: &Client, reference: &str) -> String {
    let body = json!({ "satoshis": 1000, "reference": reference }).to_string();
    let reply = client.post("/api/v1/invoices", body);
    assert_eq!(reply.status, 201, "{}", reply.body);
    read(&reply)["id"].as_str().unwrap().to_owned()
}

fn read(reply: &Reply) -> Value {
    serde_json::from_str(&reply.body).unwrap_or_else(|error| panic!("{error}: {reply:?}"))
}

/// A page. The request must succeed.
fn page(client: &Client, path: &str) -> Value {
    let reply = client.get(path);
    assert_eq!(reply.status, 200, "{path}: {}", reply.body);
    read(&reply)
}

/// The whole log.
fn log(client: &Client) -> Vec<Value> {
    let page = page(client, &format!("{EVENTS}?limit=1000"));
    assert_eq!(page["next"], page["last"], "it is on one page");
    page["events"].as_array().unwrap().clone()
}

fn check_problem(reply: &Reply, status: u16, code: &str) -> Value {
    assert_eq!(reply.status, status, "{}", reply.body);
    assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    let problem = read(reply);
    assert_eq!(problem["code"], code, "{problem}");
    problem
}
