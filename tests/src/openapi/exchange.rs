use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::http::Reply;

/// A request and its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The listener: `wallet`, `payments` or `minerid`.
    pub listener: String,
    /// The method. Empty if it cannot be read.
    pub method: String,
    /// The path and the query.
    pub target: String,
    /// The body of the request, if it was sent in one piece.
    pub sent: String,
    /// The answer.
    pub reply: Reply,
}

/// The environment variable that names the file to which exchanges are appended, a line of JSON for each.
const RECORD: &str = "BSV_TEST_EXCHANGES";
/// Longer bodies than this are not recorded, in bytes.
const MAX_RECORDED: usize = 256 << 10;
/// The looks of what this process has recorded.
static RECORDED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

impl Exchange {
    /// The exchange that begins with the bytes of this request.
    pub(super) fn of(listener: &str, request: &[u8], reply: &Reply) -> Self {
        // An empty line may come before it.
        let lines = request.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let line = lines.into_iter().find(|line| !line.is_empty()).unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split(' ').map(str::to_owned);
        let [method, target] = [(); 2].map(|()| words.next().unwrap_or_default());
        let end = request.windows(4).position(|window| window == b"\r\n\r\n");
        let sent = end.map_or(&b""[..], |end| &request[end + 4..]);
        let sent = String::from_utf8_lossy(sent).into_owned();
        Self { listener: listener.to_owned(), method, target, sent, reply: reply.clone() }
    }

    /// Appends it to the recording, if there is one, unless an exchange that looks the same was
    /// recorded at `place` before.
    pub(super) fn record(&self, place: &str) {
        let Some(path) = std::env::var_os(RECORD) else { return };
        let Self { listener, method, target, sent, reply } = self;
        let Reply { status, headers, body } = reply;
        let is_long = [sent, target, body].iter().any(|text| text.len() > MAX_RECORDED);
        let mut recorded = RECORDED.lock().unwrap_or_else(PoisonError::into_inner);
        if is_long || !recorded.insert(format!("{place} {}", self.looks())) {
            return;
        }
        let line = json!({
            "listener": listener, "method": method, "target": target, "sent": sent,
            "status": status, "headers": headers, "body": body,
        });
        // One write at the end of a file stays in one piece, even if others write.
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Its look: the names of its headers, and its bodies without the values of most texts and
    /// numbers.
    pub(super) fn looks(&self) -> String {
        let Self { listener, method, sent, reply, .. } = self;
        let names: BTreeSet<_> = reply.headers.iter().map(|(name, _)| name).collect();
        let kind = reply.header("content-type");
        let [sent, body] = [sent, &reply.body].map(|body| match serde_json::from_str(body) {
            Ok(body) => shape(&body),
            Err(_) => String::new(),
        });
        format!("{listener} {method} {} {kind:?} {names:?} {sent} {body}", reply.status)
    }

    /// Reads a line of a recording.
    ///
    /// # Panics
    /// If it is not a line of a recording.
    pub fn from_line(line: &str) -> Self {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        let headers = line["headers"].as_array().unwrap().iter();
        let headers = headers.map(|header| {
            let [name, value] = [0, 1].map(|place| header[place].as_str().unwrap().to_owned());
            (name, value)
        });
        let status = u16::try_from(line["status"].as_u64().unwrap()).unwrap();
        let reply = Reply { status, headers: headers.collect(), body: text("body") };
        Self {
            listener: text("listener"),
            method: text("method"),
            target: text("target"),
            sent: text("sent"),
            reply,
        }
    }
}

fn shape(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "boolean".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(elements) => {
            format!("{:?}", elements.iter().map(shape).collect::<BTreeSet<_>>())
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| match name.as_str() {
                // The other parts depend on these.
                "type" | "code" => format!("{name}:{value}"),
                _ => format!("{name}:{}", shape(value)),
            };
            format!("{:?}", members.iter().map(member).collect::<Vec<_>>())
        }
    }
}
