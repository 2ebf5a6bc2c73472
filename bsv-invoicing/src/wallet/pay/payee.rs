use std::time::Duration;

use bsv_tx::Network;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Url};
use tokio::time::timeout;

use super::draft::{MAX_URL_LEN, bad_url, payment_url_of_page};
use crate::dpp::{
    Dialect, MAX_ACKNOWLEDGEMENT_LEN, MAX_MESSAGE_LEN, ReceivedTerms, TermsError, refusal,
};
use crate::error::Error;
use crate::model::outgoing::OutgoingPayment;
use crate::wallet::outbound::{
    Outbound, OwnListeners, Reach, channel_url, is_blocked, posting_reach,
};

/// How long a payee may take to answer, from the first byte sent to the last byte received.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Talks to payees, without trusting them.
#[derive(Debug)]
pub(crate) struct Payee(Outbound);

impl Payee {
    /// For a process with these listeners.
    pub(crate) fn new(own: OwnListeners) -> Self {
        Self(Outbound::new(own))
    }

    /// Asks for the terms of a payment. Returns the terms, and the URL that their payment is posted
    /// to.
    pub(crate) async fn terms(
        &self,
        url: &Url,
        network: Network,
    ) -> Result<(ReceivedTerms, Url), Error> {
        let client = self.0.client(url, Reach::Chosen).map_err(|_| leads_to_us())?;
        let request = client.get(url.clone()).header(ACCEPT, "application/json");
        let Answer { status, from, body } =
            exchange(request, MAX_MESSAGE_LEN).await.map_err(Error::from)?;
        match status {
            200 => {
                let terms = ReceivedTerms::from_json(&body, network);
                let terms = terms.map_err(|error| match (error, payment_url_of_page(url)) {
                    (TermsError::Malformed(_), Some(named)) => {
                        bad_url(format!("is the URL of a payment page: pay {named} instead"))
                    }
                    (error, _) => error.into(),
                })?;
                let posting_url = self.posting_url(url, &from, &terms)?;
                Ok((terms, posting_url))
            }
            408 | 425 | 429 | 500.. => Err(Error::PayeeAway(refusal(status, &body))),
            400..=499 => Err(Error::PayeeRefuses(format!(
                "the payee offers no terms: {}",
                refusal(status, &body)
            ))),
            _ => Err(Failure::Nonsense(refusal(status, &body)).into()),
        }
    }

    /// The URL that the payment of these terms is posted to. They came from the URL `from`.
    fn posting_url(&self, paid: &Url, from: &Url, terms: &ReceivedTerms) -> Result<Url, Error> {
        let named = terms.terms.payment_url.as_str();
        if named.is_empty() {
            return Ok(paid.clone());
        }
        let joined = Some(named).filter(|named| named.len() <= MAX_URL_LEN);
        let mut url = joined.and_then(|named| from.join(named).ok()).ok_or_else(|| {
            Error::PayeeNonsense("the paymentUrl of the terms is not a URL".to_owned())
        })?;
        url.set_fragment(None);
        self.client_to(paid, &url)?;
        Ok(url)
    }

    /// A client for posting a payment of the URL `paid` to `url`.
    fn client_to(&self, paid: &Url, url: &Url) -> Result<Client, Error> {
        let client = posting_reach(paid, url).and_then(|reach| self.0.client(url, reach).ok());
        client.ok_or_else(|| {
            Error::UnpayableTerms(format!(
                "their paymentUrl {url} must be on the host of {paid}, must not be http where that \
                 is https, and must not lead to a listener of this service"
            ))
        })
    }

    /// Posts a payment of the URL `paid` to `url`. Returns the status and the body of the answer.
    pub(crate) async fn post(
        &self,
        paid: &Url,
        url: &Url,
        dialect: Dialect,
        message: Vec<u8>,
    ) -> Result<(u16, Vec<u8>), Error> {
        let request = self
            .client_to(paid, url)?
            .post(url.clone())
            .header(CONTENT_TYPE, dialect.payment_type())
            .header(ACCEPT, dialect.acknowledgement_type())
            .body(message);
        let answer = exchange(request, MAX_ACKNOWLEDGEMENT_LEN).await;
        let Answer { status, body, .. } = answer.map_err(|failure| match failure {
            Failure::Away(_) => Error::OutcomeUnknown(Error::from(failure).to_string()),
            Failure::Nonsense(reason) => outcome_unclear(&reason),
        })?;
        Ok((status, body))
    }

    /// Reads the messages in the channel that the payee has named, if there is one and it can be
    /// read.
    pub(crate) async fn messages(&self, payment: &OutgoingPayment) -> Option<Vec<u8>> {
        let channel = payment.channel.as_ref()?;
        let (url, reach) = channel_url(payment.purpose.url()?, channel)?;
        let client = self.0.client(&url, reach).ok()?;
        let token = format!("Bearer {}", channel.token);
        let request = client.get(url).header(AUTHORIZATION, token);
        match exchange(request, MAX_MESSAGE_LEN).await {
            Ok(Answer { status: 200, body, .. }) => Some(body),
            // The payee may never answer.
            _ => None,
        }
    }
}

fn leads_to_us() -> Error {
    bad_url("must not lead to a listener for the owner of this service".to_owned())
}

/// What came back.
struct Answer {
    status: u16,
    /// The URL that answered, after redirects.
    from: Url,
    body: Vec<u8>,
}

/// Why there is no answer that can be read.
enum Failure {
    Away(String),
    Nonsense(String),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Away(reason) => Self::PayeeAway(reason),
            Failure::Nonsense(reason) => {
                Self::PayeeNonsense(format!("the payee's answer cannot be understood: {reason}"))
            }
        }
    }
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        let is_nonsense = error.is_redirect() || is_blocked(&error);
        let kind = if is_nonsense { Self::Nonsense } else { Self::Away };
        kind(innermost(&error))
    }
}

/// The error after a payment was posted and the payee's answer cannot be understood.
pub(super) fn outcome_unclear(reason: &str) -> Error {
    Error::PayeeNonsense(format!(
        "the payee's answer cannot be understood, so it is not known whether the payee accepts the \
         payment ({reason}): the wallet follows it, and you may send it again"
    ))
}

/// Sends a request and reads the whole answer, of at most `max_len` bytes.
async fn exchange(request: RequestBuilder, max_len: usize) -> Result<Answer, Failure> {
    let answer = async {
        let mut answer = request.send().await?;
        let mut body = Vec::new();
        while let Some(part) = answer.chunk().await? {
            if body.len() + part.len() > max_len {
                return Err(Failure::Nonsense(format!("it is longer than {max_len} bytes")));
            }
            body.extend_from_slice(&part);
        }
        Ok(Answer { status: answer.status().as_u16(), from: answer.url().clone(), body })
    };
    let too_slow = || Failure::Away(format!("it took longer than {} seconds", TIMEOUT.as_secs()));
    timeout(TIMEOUT, answer).await.unwrap_or_else(|_| Err(too_slow()))
}

/// The text of the innermost error, which says what happened. The outer errors say where.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
