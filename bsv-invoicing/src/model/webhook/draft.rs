//! What owners ask for with webhooks: the bodies of requests.

use std::time::Duration;

use super::MAX_SECRET_GRACE;
use crate::model::event::EventKind;
use crate::model::fields::{BodyError, FieldErrors, Members};

/// How long a former secret signs if the owner does not say.
const SECRET_GRACE: Duration = Duration::from_secs(24 * 60 * 60);
/// The types of a webhook that takes all events.
const ALL_TYPES: &str = "*";

/// A new webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookDraft {
    /// The URL that events are posted to.
    pub url: String,
    /// Which events are sent: the text of an [`EventFilter`](crate::events::EventFilter).
    pub types: String,
    /// What its owner says about it.
    pub description: String,
    /// Whether each event waits until the previous one is delivered or has finally failed.
    pub in_order: bool,
    /// The number of the event after which sending begins. `None` stands for the last event.
    pub after: Option<u64>,
}

impl WebhookDraft {
    /// Reads the body of `POST /api/v1/webhooks`: `url`, and optionally `types` (default: all),
    /// `description`, `inOrder` and `after` (default: `latest`).
    pub fn from_json(body: &[u8]) -> Result<Self, BodyError> {
        let mut members = Members::parse(body)?;
        let url = members.text("url");
        let types = members.text("types");
        let description = members.text("description");
        let in_order = members.boolean("inOrder");
        let after = members.integer_or("after", "latest");
        let mut errors = members.into_errors();
        require(&mut errors, "url", url.is_some());
        errors.into_result()?;
        Ok(Self {
            url: url.unwrap_or_default(),
            types: types.unwrap_or_else(|| ALL_TYPES.to_owned()),
            description: description.unwrap_or_default(),
            in_order: in_order.unwrap_or_default(),
            after,
        })
    }
}

/// A change of a webhook. `None` leaves a value as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookChange {
    /// The new URL that events are posted to.
    pub url: Option<String>,
    /// Which events are sent from now on: the text of an [`EventFilter`](crate::events::EventFilter).
    pub types: Option<String>,
    /// What its owner says about it.
    pub description: Option<String>,
    /// Whether each event waits for the previous one.
    pub in_order: Option<bool>,
    /// Whether events are sent. Sending starts again at the cursor.
    pub is_enabled: Option<bool>,
}

impl WebhookChange {
    /// Reads the body of `PATCH /api/v1/webhooks/{id}`: any of `url`, `types`, `description`, `inOrder` and `state`
    /// (`enabled` or `disabled`).
    pub fn from_json(body: &[u8]) -> Result<Self, BodyError> {
        let mut members = Members::parse(body)?;
        let mut change = Self {
            url: members.text("url"),
            types: members.text("types"),
            description: members.text("description"),
            in_order: members.boolean("inOrder"),
            is_enabled: None,
        };
        match members.text("state").as_deref() {
            Some("enabled") => change.is_enabled = Some(true),
            Some("disabled") => change.is_enabled = Some(false),
            Some(_) => members.reject("state", "must be enabled or disabled"),
            None => {}
        }
        members.into_errors().into_result()?;
        Ok(change)
    }
}

/// A request for a new secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretDraft {
    /// How long the previous secret still signs, at most [`MAX_SECRET_GRACE`].
    pub grace: Duration,
}

impl SecretDraft {
    /// Reads the body of `POST /api/v1/webhooks/{id}/secret`: optionally `graceSeconds` (default:
    /// 86,400).
    pub fn from_json(body: &[u8]) -> Result<Self, BodyError> {
        let mut members = Members::parse(body)?;
        let grace = members.integer("graceSeconds").map(Duration::from_secs);
        let grace = grace.unwrap_or(SECRET_GRACE);
        if grace > MAX_SECRET_GRACE {
            let most = MAX_SECRET_GRACE.as_secs();
            members.reject("graceSeconds", format!("must be from 0 to {most}"));
        }
        members.into_errors().into_result()?;
        Ok(Self { grace })
    }
}

/// A request for a test of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestDraft {
    /// The kind of the sample event to send. `None` stands for the test message.
    pub sample: Option<EventKind>,
}

impl TestDraft {
    /// Reads the body of `POST /api/v1/webhooks/{id}/test`: optionally `type`. An empty body is an
    /// empty object.
    pub fn from_json(body: &[u8]) -> Result<Self, BodyError> {
        if body.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        let mut members = Members::parse(body)?;
        let mut draft = Self::default();
        if let Some(name) = members.text("type").filter(|name| name != "webhook.test") {
            draft.sample = EventKind::ALL.iter().copied().find(|kind| kind.name() == name);
            if draft.sample.is_none() {
                members.reject("type", "must be a type of event, such as invoice.paid");
            }
        }
        members.into_errors().into_result()?;
        Ok(draft)
    }
}

/// Which events are sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayDraft {
    /// Only events after the one with this number.
    pub after: u64,
    /// Only events up to the one with this number, that one included.
    pub until: u64,
    /// Whether only events whose delivery has failed are sent again.
    pub only_failed: bool,
}

impl ReplayDraft {
    /// Reads the body of `POST /api/v1/webhooks/{id}/replay`: `after`, and optionally `until`
    /// (default: the last event) and `onlyFailed`.
    pub fn from_json(body: &[u8]) -> Result<Self, BodyError> {
        let mut members = Members::parse(body)?;
        let after = members.integer("after");
        let until = members.integer("until");
        let only_failed = members.boolean("onlyFailed");
        let mut errors = members.into_errors();
        require(&mut errors, "after", after.is_some());
        errors.into_result()?;
        Ok(Self {
            after: after.unwrap_or_default(),
            until: until.unwrap_or(u64::MAX),
            only_failed: only_failed.unwrap_or_default(),
        })
    }
}

fn require(errors: &mut FieldErrors, field: &'static str, is_there: bool) {
    if !is_there && !errors.has(field) {
        errors.add(field, "is required");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint<T: std::fmt::Debug>(read: Result<T, BodyError>) -> String {
        read.unwrap_err().to_string()
    }

    #[test]
    fn a_webhook_needs_a_url_and_takes_all_from_now_on() {
        let draft = WebhookDraft::from_json(br#"{"url": "https://a.example/"}"#).unwrap();
        let url = "https://a.example/".to_owned();
        let (types, description) = ("*".to_owned(), String::new());
        let expected = WebhookDraft { url, types, description, in_order: false, after: None };
        assert_eq!(draft, expected);
        for (after, expected) in
            [("0", Some(0)), ("7", Some(7)), ("\"latest\"", None), ("null", None)]
        {
            let body = format!(r#"{{"url": "", "inOrder": true, "after": {after}}}"#);
            let draft = WebhookDraft::from_json(body.as_bytes()).unwrap();
            assert_eq!((draft.in_order, draft.after), (true, expected), "{after}");
        }
        let wrong = br#"{"urls": "", "types": 1, "inOrder": 1, "after": "first"}"#;
        assert_eq!(
            complaint(WebhookDraft::from_json(wrong)),
            "after must be an integer, or latest, inOrder must be true or false, \
             types must be a string, url is required, urls is not known here"
        );
    }

    #[test]
    fn a_change_changes_only_what_it_names() {
        assert_eq!(WebhookChange::from_json(b"{}").unwrap(), WebhookChange::default());
        for (state, is_enabled) in [("enabled", true), ("disabled", false)] {
            let body = format!(r#"{{"state": "{state}", "url": null}}"#);
            let change = WebhookChange::from_json(body.as_bytes()).unwrap();
            let expected =
                WebhookChange { is_enabled: Some(is_enabled), ..WebhookChange::default() };
            assert_eq!(change, expected);
        }
        for state in ["\"gone\"", "1", "\"\""] {
            let body = format!(r#"{{"state": {state}}}"#);
            assert!(complaint(WebhookChange::from_json(body.as_bytes())).starts_with("state "));
        }
        let wrong = br#"{"secret": "whsec_", "cursor": 1}"#;
        let expected = "cursor is not known here, secret is not known here";
        assert_eq!(complaint(WebhookChange::from_json(wrong)), expected);
    }

    #[test]
    fn a_former_secret_signs_for_a_day_and_for_a_week_at_most() {
        for (body, seconds) in [
            ("{}", 86_400),
            (r#"{"graceSeconds": 0}"#, 0),
            (r#"{"graceSeconds": 604800}"#, 604_800),
        ] {
            let draft = SecretDraft::from_json(body.as_bytes()).unwrap();
            assert_eq!(draft.grace.as_secs(), seconds, "{body}");
        }
        for grace in ["-1", "604801", "1e999", "\"1\"", "99999999999999999999"] {
            let body = format!(r#"{{"graceSeconds": {grace}}}"#);
            let complaint = complaint(SecretDraft::from_json(body.as_bytes()));
            assert!(complaint.starts_with("graceSeconds must "), "{complaint}");
        }
    }

    #[test]
    fn a_replay_says_where_it_begins() {
        let replay = ReplayDraft::from_json(br#"{"after": 5}"#).unwrap();
        let expected = ReplayDraft { after: 5, until: u64::MAX, only_failed: false };
        assert_eq!(replay, expected);
        let replay = ReplayDraft::from_json(br#"{"after":0,"until":9,"onlyFailed":true}"#).unwrap();
        assert_eq!(replay, ReplayDraft { after: 0, until: 9, only_failed: true });
        assert_eq!(complaint(ReplayDraft::from_json(b"{}")), "after is required");
        let negative = complaint(ReplayDraft::from_json(br#"{"after":-1,"until":-2}"#));
        assert_eq!(negative, "after must not be negative, until must not be negative");
    }
}
