use std::sync::OnceLock;
use std::time::Duration;

use bsv_tx::Network;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Url, redirect};
use rustls::crypto::ring;
use tokio::time::timeout;

use crate::dpp::{Dialect, MAX_ACKNOWLEDGEMENT_LEN, MAX_MESSAGE_LEN, ReceivedTerms};
use crate::error::Error;

/// For how long a payee may take to answer, from the first byte sent to the last byte received.
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 5;

/// Talks to payees, whom nobody has to trust.
#[derive(Debug, Default)]
pub(crate) struct Payee {
    /// Made when first needed: it loads the system's certificates.
    client: OnceLock<Client>,
}

impl Payee {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Asks for the terms of a payment.
    pub(crate) async fn terms(&self, url: &Url, network: Network) -> Result<ReceivedTerms, Error> {
        let request = self.client().get(url.clone()).header(ACCEPT, "application/json");
        let (status, body) = exchange(request, MAX_MESSAGE_LEN).await.map_err(Error::PayeeAway)?;
        match status {
            200 => Ok(ReceivedTerms::from_json(&body, network)?),
            500.. => Err(Error::PayeeAway(format!("it answers with status {status}"))),
            _ => Err(Error::PayeeRefuses(format!(
                "the payee offers no terms: it answers with status {status}{}",
                words(&body)
            ))),
        }
    }

    /// Posts a payment. Answers the status and the body of the answer.
    pub(crate) async fn post(
        &self,
        url: &Url,
        dialect: Dialect,
        message: Vec<u8>,
    ) -> Result<(u16, Vec<u8>), Error> {
        let request = self
            .client()
            .post(url.clone())
            .header(CONTENT_TYPE, dialect.payment_type())
            .header(ACCEPT, dialect.acknowledgement_type())
            .body(message);
        exchange(request, MAX_ACKNOWLEDGEMENT_LEN)
            .await
            .map_err(|reason| Error::OutcomeUnknown(format!("the payee does not answer: {reason}")))
    }

    /// Reads the messages in a channel of a payee.
    pub(crate) async fn messages(&self, url: Url, token: &str) -> Result<Vec<u8>, Error> {
        let request = self.client().get(url).header(AUTHORIZATION, format!("Bearer {token}"));
        let (status, body) = exchange(request, MAX_MESSAGE_LEN).await.map_err(Error::PayeeAway)?;
        match status {
            200 => Ok(body),
            _ => Err(Error::PayeeAway(format!("its channel answers with status {status}"))),
        }
    }

    fn client(&self) -> &Client {
        self.client.get_or_init(|| {
            // Fails if the process has one already, which will do.
            let _ = ring::default_provider().install_default();
            Client::builder()
                .redirect(redirect::Policy::custom(follow))
                .connect_timeout(TIMEOUT)
                .build()
                .expect("a client is built from constants and the system's certificates")
        })
    }
}

/// Redirects lead to the same scheme only, so that nobody is sent out of TLS or to a file.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let is_same_scheme =
        attempt.previous().iter().all(|url| url.scheme() == attempt.url().scheme());
    if !is_same_scheme {
        attempt.error("it redirects to another scheme")
    } else if attempt.previous().len() > MAX_REDIRECTS {
        attempt.error("it redirects too often")
    } else {
        attempt.follow()
    }
}

/// Sends a request and reads the whole answer, of at most `max_len` bytes.
async fn exchange(request: RequestBuilder, max_len: usize) -> Result<(u16, Vec<u8>), String> {
    let answer = async {
        let mut answer = request.send().await.map_err(|error| innermost(&error))?;
        let mut body = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(|error| innermost(&error))? {
            if body.len() + part.len() > max_len {
                return Err(format!("its answer is longer than {max_len} bytes"));
            }
            body.extend_from_slice(&part);
        }
        Ok((answer.status().as_u16(), body))
    };
    let too_slow = || Err(format!("it took longer than {} seconds", TIMEOUT.as_secs()));
    timeout(TIMEOUT, answer).await.unwrap_or_else(|_| too_slow())
}

/// What happened; the errors above it say where.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// The beginning of what somebody says, if it is something to show.
fn words(body: &[u8]) -> String {
    const MAX_WORDS: usize = 200;
    let text = String::from_utf8_lossy(body);
    let text: String = text.chars().filter(|c| !c.is_control()).take(MAX_WORDS).collect();
    if text.is_empty() { text } else { format!(": {text}") }
}
