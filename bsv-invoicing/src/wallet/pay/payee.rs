use std::sync::OnceLock;
use std::time::Duration;

use bsv_tx::Network;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, ClientBuilder, RequestBuilder, Url, redirect};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

use crate::dpp::{Dialect, MAX_ACKNOWLEDGEMENT_LEN, MAX_MESSAGE_LEN, ReceivedTerms, refusal};
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
        let (status, body) = exchange(request, MAX_MESSAGE_LEN).await.map_err(Error::from)?;
        match status {
            200 => Ok(ReceivedTerms::from_json(&body, network)?),
            408 | 425 | 429 | 500.. => Err(Error::PayeeAway(refusal(status, &body))),
            400..=499 => Err(Error::PayeeRefuses(format!(
                "the payee offers no terms: {}",
                refusal(status, &body)
            ))),
            _ => Err(Failure::Nonsense(refusal(status, &body)).into()),
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
        exchange(request, MAX_ACKNOWLEDGEMENT_LEN).await.map_err(|failure| match failure {
            Failure::Away(_) => Error::OutcomeUnknown(Error::from(failure).to_string()),
            Failure::Nonsense(reason) => outcome_unclear(&reason),
        })
    }

    /// Reads the messages in a channel of a payee.
    pub(crate) async fn messages(&self, url: Url, token: &str) -> Result<Vec<u8>, Error> {
        let request = self.client().get(url).header(AUTHORIZATION, format!("Bearer {token}"));
        let (status, body) = exchange(request, MAX_MESSAGE_LEN).await.map_err(Error::from)?;
        match status {
            200 => Ok(body),
            _ => Err(Error::PayeeAway(refusal(status, &body))),
        }
    }

    fn client(&self) -> &Client {
        self.client.get_or_init(|| {
            // Fails if the process has one already, which will do.
            let _ = ring::default_provider().install_default();
            client().build().unwrap_or_else(|error| {
                let reason = innermost(&error);
                tracing::warn!("payees cannot be paid over https, no certificates: {reason}");
                client()
                    .tls_backend_preconfigured(trusts_nobody())
                    .build()
                    .expect("a client that loads nothing is built from constants")
            })
        })
    }
}

fn client() -> ClientBuilder {
    Client::builder().redirect(redirect::Policy::custom(follow)).connect_timeout(TIMEOUT)
}

fn trusts_nobody() -> ClientConfig {
    ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
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

/// Why there is no answer to read.
enum Failure {
    Away(String),
    Nonsense(String),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Away(reason) => Self::PayeeAway(reason),
            Failure::Nonsense(reason) => {
                Self::PayeeNonsense(format!("the payee's answer makes no sense: {reason}"))
            }
        }
    }
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        let kind = if error.is_redirect() { Self::Nonsense } else { Self::Away };
        kind(innermost(&error))
    }
}

/// That a payee was sent a payment, and answers what makes no sense.
pub(super) fn outcome_unclear(reason: &str) -> Error {
    Error::PayeeNonsense(format!(
        "the payee's answer makes no sense, so that it is not known whether it takes the payment \
         ({reason}): it is looked after, and may be sent again"
    ))
}

/// Sends a request and reads the whole answer, of at most `max_len` bytes.
async fn exchange(request: RequestBuilder, max_len: usize) -> Result<(u16, Vec<u8>), Failure> {
    let answer = async {
        let mut answer = request.send().await?;
        let mut body = Vec::new();
        while let Some(part) = answer.chunk().await? {
            if body.len() + part.len() > max_len {
                return Err(Failure::Nonsense(format!("it is longer than {max_len} bytes")));
            }
            body.extend_from_slice(&part);
        }
        Ok((answer.status().as_u16(), body))
    };
    let too_slow = || Failure::Away(format!("it took longer than {} seconds", TIMEOUT.as_secs()));
    timeout(TIMEOUT, answer).await.unwrap_or_else(|_| Err(too_slow()))
}

/// What happened; the errors above it say where.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
