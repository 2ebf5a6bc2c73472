//! The JSON of requests to pay, and of their answers.

use reqwest::Url;

use super::link::Link;

use crate::error::Error;
use crate::model::fields::{FieldErrors, Members};
use crate::model::invoice_id::InvoiceId;
use crate::model::outgoing::OutgoingPayment;

/// The longest payment URL, in bytes.
pub(super) const MAX_URL_LEN: usize = 2048;

/// A request to pay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayDraft {
    /// The payment URL, or a link with one, such as `bitcoin:?sv&r=URL` and `pay:?r=URL`. The
    /// payment URL identifies the payment.
    pub pay_to_url: String,
    /// The most that a new payment may cost, in satoshis, its fee included.
    pub max_satoshis: Option<u64>,
}

impl PayDraft {
    /// Reads the body of `POST /api/v1/pay`: `payToURL`, and optionally `maxSatoshis`.
    pub fn from_json(body: &[u8]) -> Result<Self, Error> {
        let mut members = Members::parse(body)?;
        let url = members.text(PAY_TO_URL);
        let max_satoshis = members.integer("maxSatoshis");
        let mut errors = members.into_errors();
        if url.is_none() && !errors.has(PAY_TO_URL) {
            errors.add(PAY_TO_URL, "is required");
        }
        errors.into_result()?;
        let draft = Self { pay_to_url: url.unwrap_or_default(), max_satoshis };
        payment_url(&draft.pay_to_url)?;
        Ok(draft)
    }
}

const PAY_TO_URL: &str = "payToURL";

/// Reads a URL that can be paid to, or a link that holds one.
pub(super) fn payment_url(text: &str) -> Result<Url, Error> {
    if text.len() > MAX_URL_LEN {
        return Err(bad_url(format!("must have at most {MAX_URL_LEN} bytes")));
    }
    let url = parse_url(text)?;
    match Link::of(&url) {
        None => check_url(url),
        Some(Link { payment_url: Some(url), .. }) => check_url(parse_url(&url)?),
        Some(_) => Err(bad_url(
            "is a link without a payment URL (r=), and only a payment URL can be paid here"
                .to_owned(),
        )),
    }
}

/// The amount that a link names, in satoshis.
pub(super) fn amount_of_link(text: &str) -> Option<u64> {
    Link::of(&parse_url(text).ok()?)?.satoshis
}

fn parse_url(text: &str) -> Result<Url, Error> {
    Url::parse(text).map_err(|error| {
        bad_url(format!("must be a URL such as https://shop.example/api/v1/payment/id: {error}"))
    })
}

fn check_url(mut url: Url) -> Result<Url, Error> {
    // A fragment is never sent to the payee.
    url.set_fragment(None);
    let problem = if !matches!(url.scheme(), "http" | "https") {
        "must begin with http:// or https://"
    } else if !url.username().is_empty() || url.password().is_some() {
        "must not hold a user name or a password"
    } else if reference(&url).is_empty() {
        "must end with the id of what is paid"
    } else {
        return Ok(url);
    };
    Err(bad_url(problem.to_owned()))
}

pub(super) fn bad_url(reason: String) -> Error {
    let mut errors = FieldErrors::default();
    errors.add(PAY_TO_URL, reason);
    Error::Invalid(errors)
}

/// The payment URL of the invoice that a URL of a payment page shows.
pub(super) fn payment_url_of_page(url: &Url) -> Option<String> {
    let (public_url, id) = url.as_str().rsplit_once("/pay/")?;
    let id: InvoiceId = id.split('?').next()?.parse().ok()?;
    Some(url_of_invoice(public_url, id.as_str()))
}

/// The last segment of a payment URL: the payee's name for the payment.
fn reference(url: &Url) -> &str {
    url.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default()
}

impl OutgoingPayment {
    /// The payment as the wallet specification writes the result of `POST /api/v1/pay`.
    pub fn to_json(&self) -> String {
        let url = self.purpose.url().and_then(|url| Url::parse(url).ok());
        let scheme = url.as_ref().map_or("https", Url::scheme);
        let empty = PeerChannelJson { host: String::new(), path: "", id: "", token: "" };
        let result = PaymentResultJson {
            id: url.as_ref().map(reference).unwrap_or_default(),
            tx_id: self.txid.to_string(),
            memo: &self.memo,
            peer_channel: self.channel.as_ref().map_or(empty, |channel| PeerChannelJson {
                host: format!("{scheme}://{}", channel.host),
                path: &channel.path,
                id: &channel.channel_id,
                token: &channel.token,
            }),
        };
        serde_json::to_string(&result).expect("texts always serialise")
    }
}

#[derive(serde::Serialize)]
struct PaymentResultJson<'a> {
    id: &'a str,
    tx_id: String,
    memo: &'a str,
    peer_channel: PeerChannelJson<'a>,
}

#[derive(serde::Serialize)]
struct PeerChannelJson<'a> {
    host: String,
    path: &'a str,
    id: &'a str,
    token: &'a str,
}

/// The payment URL of an invoice of a wallet with this public URL.
pub(in crate::wallet) fn url_of_invoice(public_url: &str, id: &str) -> String {
    [public_url, "/dpp/api/v1/payment/", id].concat()
}
