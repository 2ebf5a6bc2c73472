//! Webhooks: endpoints that events are sent to.

mod draft;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use minicbor::{Decode, Encode};

pub use self::draft::{ReplayDraft, SecretDraft, TestDraft, WebhookChange, WebhookDraft};
use crate::model::time::Timestamp;

/// How many webhooks a wallet has at most.
pub const MAX_WEBHOOKS: usize = 16;
/// The longest time for which a former secret still signs.
pub const MAX_SECRET_GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The id of a webhook: a random number, shown as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebhookId(u64);

impl WebhookId {
    /// A random id.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes)?;
        Ok(Self(u64::from_be_bytes(bytes)))
    }

    /// The id of this number.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The number, as it is stored.
    pub const fn to_number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for WebhookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for WebhookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookId({self})")
    }
}

/// A text is not the id of a webhook, so no webhook has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 16 hexadecimal digits in small letters")]
pub struct WebhookIdParseError;

impl FromStr for WebhookId {
    type Err = WebhookIdParseError;

    fn from_str(text: &str) -> Result<Self, WebhookIdParseError> {
        let is_digit = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 16 || !text.bytes().all(is_digit) {
            return Err(WebhookIdParseError);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| WebhookIdParseError)
    }
}

/// Whether events are sent to a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum WebhookState {
    /// They are sent.
    #[n(0)]
    Enabled,
    /// They are not sent: the owner disabled the webhook, its endpoint accepted nothing for 120
    /// hours, or a backup was restored. The cursor stays where it is.
    #[n(1)]
    Disabled,
    /// They are not sent: the endpoint answered 410. The cursor stays where it is.
    #[n(2)]
    Gone,
}

impl WebhookState {
    /// The name that the API uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::Gone => "gone",
        }
    }
}

/// A webhook as it is stored.
///
/// Each event up to the cursor whose type the webhook takes was delivered at the first attempt, or
/// has a [`Delivery`](crate::webhooks::Delivery) that records its state.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Webhook {
    /// The URL that events are posted to.
    #[n(0)]
    pub url: String,
    /// Which events are sent: the text of an [`EventFilter`](crate::events::EventFilter).
    #[n(1)]
    pub types: String,
    /// What its owner says about it.
    #[n(2)]
    pub description: String,
    /// Whether each event waits until the previous one is delivered or has finally failed.
    #[n(3)]
    pub in_order: bool,
    /// Whether events are sent.
    #[n(4)]
    pub state: WebhookState,
    /// When it was made.
    #[n(5)]
    pub created_at: Timestamp,
    /// The number of the event up to which the webhook is done.
    #[n(6)]
    pub cursor: u64,
    /// The number of the last event up to the cursor that was sent; 0 before the first.
    #[n(7)]
    pub last_sent: u64,
    /// The number of the event that later ones wait for, if the webhook takes events in order.
    #[n(8)]
    pub holding: Option<u64>,
    /// The secret, sealed.
    #[cbor(n(9), with = "minicbor::bytes")]
    pub secret: Vec<u8>,
    /// The previous secret, which still signs too.
    #[n(10)]
    pub former_secret: Option<FormerSecret>,
    /// When its endpoint last accepted an event.
    #[n(11)]
    pub last_success_at: Option<Timestamp>,
    /// Since when its endpoint has accepted nothing, if the last attempt failed.
    #[n(12)]
    pub failing_since: Option<Timestamp>,
    /// How many attempts have failed in a row.
    #[n(13)]
    pub failures: u32,
}

/// A secret that another one has replaced.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FormerSecret {
    /// The secret, sealed.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub sealed: Vec<u8>,
    /// Until when it signs.
    #[n(1)]
    pub until: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written_and_other_texts_are_refused() {
        let id = WebhookId::from_number(0x0012_ab00_0000_00ff);
        assert_eq!(id.to_string(), "0012ab00000000ff");
        assert_eq!("0012ab00000000ff".parse(), Ok(id));
        for text in
            ["", "12ab00000000ff", "0012AB00000000ff", "+012ab00000000ff", "0012ab00000000fg"]
        {
            assert_eq!(text.parse::<WebhookId>(), Err(WebhookIdParseError), "{text}");
        }
        assert_ne!(WebhookId::random(), WebhookId::random());
    }
}
