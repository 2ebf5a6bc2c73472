//! The messages that are sent to an endpoint.

use crate::model::event::{EventKind, LogName, WrittenEvent};
use crate::model::time::Timestamp;
use crate::model::webhook::WebhookId;
use crate::webhooks::client::WebhookRequest;
use crate::webhooks::sample::sample_data;
use crate::webhooks::secret::{WebhookSecret, signatures};

const MICROS_PER_SECOND: u64 = 1_000_000;

/// The secrets of an endpoint.
pub(crate) struct Secrets {
    pub(crate) current: WebhookSecret,
    /// The previous one, and until when it signs.
    pub(crate) former: Option<(WebhookSecret, Timestamp)>,
}

/// An event as it is sent. It is the same each time.
pub(super) struct Message {
    pub(super) id: String,
    pub(super) body: Vec<u8>,
}

impl Message {
    /// The event, with the number of the previous event that was sent as its last member; 0 stands
    /// for none.
    pub(super) fn of(event: &WrittenEvent, previous: u64, log: LogName) -> Self {
        let previous = match previous {
            0 => "null".to_owned(),
            number => number.to_string(),
        };
        let last = format!(r#","previous":{previous}}}"#).into_bytes();
        let members = event.json.strip_suffix(b"}").unwrap_or(&event.json);
        Self { id: log.event_id(event.number), body: [members, &last].concat() }
    }

    /// A test message for an endpoint. `random` is part of its id.
    pub(super) fn test(webhook: WebhookId, log: LogName, random: u32, now: Timestamp) -> Self {
        let id = format!("evt_{log}_test_{random:08x}");
        let body =
            format!(r#"{{"id":"{id}","number":0,"type":"webhook.test","timestamp":"{now}","#)
                + &format!(r#""data":{{"webhookId":"{webhook}"}},"previous":null}}"#);
        Self { id, body: body.into_bytes() }
    }

    /// A sample event of a kind, which is in no log. `random` is part of its id.
    pub(super) fn sample(kind: EventKind, random: u32, now: Timestamp) -> Self {
        let id = format!("test_{random:08x}");
        let (name, data) = (kind.name(), sample_data(kind, now));
        let body = format!(r#"{{"id":"{id}","number":0,"type":"{name}","timestamp":"{now}","#)
            + &format!(r#""data":{data},"previous":null}}"#);
        Self { id, body: body.into_bytes() }
    }

    /// The request of an attempt that begins now.
    pub(super) fn request(self, url: String, secrets: &Secrets, now: Timestamp) -> WebhookRequest {
        let Self { id, body } = self;
        let timestamp = now.as_micros() / MICROS_PER_SECOND;
        let former = secrets.former.as_ref().filter(|(_, until)| now < *until);
        let secrets = [&secrets.current].into_iter().chain(former.map(|(secret, _)| secret));
        let signature = signatures(secrets, &id, timestamp, &body);
        WebhookRequest { url, id, timestamp, signature, body }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::event::{Event, EventData};

    const LOG: LogName = LogName::from_bytes([0x3f, 0x9a, 0x1c, 0x02]);

    #[test]
    fn the_body_is_the_event_and_the_previous_number() {
        let (kind, data) = (EventKind::UserCreated, EventData::User { user_id: 7 });
        let event = Event { number: 9, at: Timestamp::from_micros(5), kind, subject: 7, data };
        for (previous, expected) in [(0, Value::Null), (8, json!(8))] {
            let message = Message::of(&WrittenEvent::new(&event, LOG), previous, LOG);
            let mut body: Value = serde_json::from_slice(&message.body).unwrap();
            assert_eq!(body["previous"], expected);
            body.as_object_mut().unwrap().remove("previous");
            assert_eq!(body, serde_json::from_str::<Value>(&event.to_json(LOG)).unwrap());
            assert_eq!(message.id, "evt_3f9a1c02_9");
        }
    }

    #[test]
    fn a_test_is_an_event_that_is_not_in_the_log() {
        let webhook = WebhookId::from_number(0xab);
        let message = Message::test(webhook, LOG, 0x1f, Timestamp::from_micros(5));
        let body: Value = serde_json::from_slice(&message.body).unwrap();
        let expected = json!({
            "id": "evt_3f9a1c02_test_0000001f", "number": 0, "type": "webhook.test",
            "timestamp": "1970-01-01T00:00:00.000005Z",
            "data": { "webhookId": "00000000000000ab" }, "previous": null,
        });
        assert_eq!((body["id"].as_str().unwrap(), &body), (message.id.as_str(), &expected));
    }

    #[test]
    fn a_sample_has_an_id_of_its_own() {
        let message = Message::sample(EventKind::InvoicePaid, 0x1f, Timestamp::from_micros(5));
        let body: Value = serde_json::from_slice(&message.body).unwrap();
        assert_eq!(message.id, "test_0000001f");
        assert_eq!((&body["id"], &body["type"]), (&json!(message.id), &json!("invoice.paid")));
        assert_eq!(body["data"]["invoiceId"], "__test__");
    }

    #[test]
    fn the_former_secret_signs_until_its_time() {
        let [current, former] = [(); 2].map(|()| WebhookSecret::random().unwrap());
        let until = Timestamp::from_micros(7_000_000);
        let secrets = Secrets { current, former: Some((former, until)) };
        for (micros, signatures) in [(6_999_999, 2), (7_000_000, 1)] {
            let message = Message { id: "evt".to_owned(), body: b"{}".to_vec() };
            let now = Timestamp::from_micros(micros);
            let request = message.request("https://a.example".to_owned(), &secrets, now);
            assert_eq!(request.signature.split(' ').count(), signatures);
            assert_eq!(request.timestamp, micros / 1_000_000);
        }
    }
}
