//! Invoices for people, and lists of any length.

use std::io;

use bsv_invoicing::InvoiceState;
use hyper::Method;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::output::{self, field, printable};
use crate::reach::{Request, Service};
use crate::{CliError, ask};

/// Which invoices are listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InvoiceList {
    pub(crate) state: Option<InvoiceState>,
    pub(crate) limit: Option<u64>,
    pub(crate) newest_first: bool,
}

/// How many invoices are asked for at once.
const PAGE: u64 = 1000;

impl InvoiceList {
    /// The request for the first page.
    fn request(&self) -> Request {
        let mut path = format!("/api/v1/invoices?limit={}", self.limit.unwrap_or(PAGE).min(PAGE));
        if let Some(state) = self.state {
            path.push_str(&format!("&state={state}"));
        }
        if self.newest_first {
            path.push_str("&order=desc");
        }
        Request { method: Method::GET, path, body: None }
    }

    /// Prints page by page, so that a list of any length takes little memory.
    pub(crate) async fn print(&self, service: &mut Service, is_json: bool) -> Result<(), CliError> {
        let limit = self.limit.unwrap_or(u64::MAX);
        let mut request = self.request();
        let mut count = 0;
        loop {
            let answer = ask(service, &request).await?;
            let invoices: Vec<&RawValue> =
                serde_json::from_str(&answer.body).map_err(io::Error::other)?;
            let mut text = String::new();
            for invoice in invoices {
                if count == limit {
                    break;
                }
                text.push_str(&row(invoice.get(), count == 0, is_json));
                count += 1;
            }
            output::print(&text)?;
            match answer.next {
                Some(path) if count < limit => request.path = path,
                _ => break,
            }
        }
        Ok(output::print(match (is_json, count) {
            (true, 0) => "[]\n",
            (true, _) => "\n]\n",
            (false, 0) => "There is no such invoice\n",
            (false, _) => "",
        })?)
    }
}

fn row(invoice: &str, is_first: bool, is_json: bool) -> String {
    if is_json {
        return format!("{}{invoice}", if is_first { "[\n" } else { ",\n" });
    }
    let invoice: Value = serde_json::from_str(invoice).unwrap_or_default();
    let text = |name: &str| printable(invoice[name].as_str().unwrap_or_default());
    let header = match is_first {
        true => row_of("id", "state", "satoshis", "expires", "reference and description"),
        false => String::new(),
    };
    let words = [text("reference"), text("description")];
    let words: Vec<_> =
        words.iter().filter(|words| !words.is_empty()).map(String::as_str).collect();
    let satoshis = invoice["satoshis"].to_string();
    header + &row_of(&text("id"), &text("state"), &satoshis, &text("expiresAt"), &words.join("  "))
}

fn row_of(id: &str, state: &str, satoshis: &str, expires: &str, words: &str) -> String {
    let row = format!("{id:<12}  {state:<7}  {satoshis:>16}  {expires:<27}  {words}");
    format!("{}\n", row.trim_end())
}

/// An invoice, a line per field.
pub(crate) fn describe(invoice: &Value, payment_url: Option<&str>) -> String {
    let state = invoice["state"].as_str().unwrap_or_default();
    let mut text = format!(
        "Invoice {} of {} satoshis, {state}\n",
        invoice["id"].as_str().unwrap_or_default(),
        invoice["satoshis"]
    );
    for (name, value) in [
        ("description", &invoice["description"]),
        ("reference", &invoice["reference"]),
        ("created", &invoice["createdAt"]),
        (if state == "expired" { "expired" } else { "expires" }, &invoice["expiresAt"]),
        ("paid", &invoice["paymentReceivedAt"]),
    ] {
        text.push_str(&field(name, value));
    }
    if let Some(url) = payment_url {
        text.push_str(&field("pay to", &url.into()));
    }
    text
}
