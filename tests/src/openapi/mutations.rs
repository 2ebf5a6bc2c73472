use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::{Description, Exchange};

/// A part that is removed from an OpenAPI file: a status, a header, a content type or a member of a
/// closed schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mutation {
    /// The path of the list or object that it is removed from.
    parent: String,
    /// Its name there, or its index in a list.
    name: String,
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.parent, escaped(&self.name))
    }
}

impl Mutation {
    /// All parts of a file, except the descriptions of webhooks.
    fn all(document: &Value) -> Vec<Self> {
        let mut found = Vec::new();
        collect(document, String::new(), &mut found);
        let roots = ["/paths", "/x-other-requests"].map(str::to_owned);
        let reached = reached(document, roots.to_vec());
        found.retain(|it| reached.iter().any(|path| is_within(&it.parent, path)));
        found
    }

    /// The file without this part.
    fn apply(&self, document: &Value) -> Value {
        let mut document = document.clone();
        match document.pointer_mut(&self.parent) {
            Some(Value::Object(members)) => drop(members.remove(&self.name)),
            Some(Value::Array(elements)) => {
                elements.retain(|it| it.to_string().as_str() != self.name);
            }
            _ => unreachable!("it was found there"),
        }
        document
    }

    /// Whether it is within the value at a path, or contains that value.
    fn touches(&self, path: &str) -> bool {
        let own = self.to_string();
        is_within(&own, path) || is_within(path, &own)
    }
}

/// Whether a path equals another one or continues it.
fn is_within(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn collect(value: &Value, path: String, found: &mut Vec<Mutation>) {
    let members = match value {
        Value::Object(members) => members,
        Value::Array(elements) => {
            for (place, element) in elements.iter().enumerate() {
                collect(element, format!("{path}/{place}"), found);
            }
            return;
        }
        _ => return,
    };
    let mut take = |name: &str, is_wanted: &dyn Fn(&str) -> bool| {
        let parent = format!("{path}/{name}");
        let names: Vec<String> = match &members[name] {
            Value::Object(members) => members.keys().filter(|it| is_wanted(it)).cloned().collect(),
            Value::Array(elements) => elements.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        found.extend(names.into_iter().map(|name| Mutation { parent: parent.clone(), name }));
    };
    for name in members.keys() {
        match name.as_str() {
            "responses" | "x-other-requests" => {
                take(name, &|status| status.bytes().all(|c| c.is_ascii_digit()));
            }
            "headers" if members.contains_key("description") => take(name, &|_| true),
            "content" if members.contains_key("description") => take(name, &|_| true),
            "x-statuses" => take(name, &|_| true),
            "properties" if is_closed(members) => take(name, &|_| true),
            _ => {}
        }
    }
    for (name, member) in members {
        if !matches!(name.as_str(), "example" | "examples") {
            collect(member, format!("{path}/{}", escaped(name)), found);
        }
    }
}

/// Whether a schema allows no other members.
fn is_closed(schema: &serde_json::Map<String, Value>) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
}

/// The parts that can be removed from a file without an exchange failing, and the number of parts
/// that were tried. If several exchanges have the same description and look, one of them is tried.
/// All exchanges must match the whole file.
pub fn survivors(description: &Description, exchanges: &[Exchange]) -> (Vec<Mutation>, usize) {
    let mut alike = BTreeMap::new();
    for exchange in exchanges {
        let uses = reached(description.document(), description.places(exchange));
        alike.entry((uses, exchange.looks())).or_insert(exchange);
    }
    let document = description.document();
    let all = Mutation::all(document);
    let tried = all.len();
    let survives = |mutation: &Mutation| {
        let mutated = Description::new(mutation.apply(document));
        let mut touched =
            alike.iter().filter(|((uses, _), _)| uses.iter().any(|path| mutation.touches(path)));
        touched.all(|(_, exchange)| mutated.check(exchange).is_ok())
    };
    (all.into_iter().filter(survives).collect(), tried)
}

/// Some paths in a file, and everything that references lead to from there.
fn reached(document: &Value, mut open: Vec<String>) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    while let Some(path) = open.pop() {
        if reached.contains(&path) {
            continue;
        }
        if let Some(value) = document.pointer(&path) {
            references(value, &mut open);
        }
        reached.insert(path);
    }
    reached
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(path) = members.get("$ref").and_then(|it| it.as_str()?.strip_prefix('#')) {
                found.push(path.to_owned());
            }
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(elements) => elements.iter().for_each(|it| references(it, found)),
        _ => {}
    }
}
