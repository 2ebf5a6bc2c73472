use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{Exchange, LISTENERS};
use crate::build::workspace;
use crate::http::Reply;

/// The content of an OpenAPI file.
#[derive(Debug)]
pub struct Description {
    document: Value,
    /// The validators, by the path of their schema in the file.
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// The reason why an answer does not match its description.
#[derive(Debug)]
pub struct Undescribed(String);

impl fmt::Display for Undescribed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The headers that any answer may have: those of HTTP, and `Cache-Control` and `X-Request-Id`,
/// which the introductions of the files describe.
const USUAL_HEADERS: [&str; 7] = [
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "date",
    "transfer-encoding",
    "x-request-id",
];

/// The additional headers of the listener that pages of all origins may use.
const PAYMENTS_HEADERS: [&str; 5] = [
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-max-age",
];

static DESCRIPTIONS: LazyLock<HashMap<&str, Description>> = LazyLock::new(|| {
    let read = |listener| {
        let path = workspace().join(format!("bsv-server/openapi/{listener}.json"));
        let document = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        (listener, Description::new(document))
    };
    LISTENERS.map(read).into()
});

impl Description {
    /// The description of a listener.
    ///
    /// # Panics
    /// If the listener has none.
    pub fn of(listener: &str) -> &'static Self {
        &DESCRIPTIONS[listener]
    }

    pub(super) fn new(document: Value) -> Self {
        Self { document, validators: Mutex::default() }
    }

    /// The file.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Checks that an answer matches its description, and the request's body as well if the server
    /// could read it.
    pub fn check(&self, exchange: &Exchange) -> Result<(), Undescribed> {
        let Exchange { method, reply, .. } = exchange;
        let place = self
            .response(exchange)
            .ok_or_else(|| Undescribed(format!("it tells of no status {} there", reply.status)))?;
        let response = self.at(&place);
        self.check_headers(response, exchange)?;
        if is_no_http(reply) {
            return Ok(());
        }
        let may_be_kept = response["headers"].get("Cache-Control").is_some();
        if !may_be_kept && reply.header("cache-control") != Some("no-store") {
            return Err(Undescribed("the answer may be kept".to_owned()));
        }
        if has_taken_body(exchange) {
            self.check_sent(exchange)?;
        }
        match method.as_str() {
            "HEAD" if reply.body.is_empty() => Ok(()),
            "HEAD" => Err(Undescribed("there is a body".to_owned())),
            _ => self.check_body(&place, reply),
        }
    }

    /// The path in the file to the description of an answer.
    pub(super) fn response(&self, exchange: &Exchange) -> Option<String> {
        let (responses, reply) = (self.place(exchange), &exchange.reply);
        let of_status = format!("{responses}/{}", reply.status);
        if self.document.pointer(&of_status).is_some() {
            return Some(self.resolved(of_status));
        }
        let default = self.resolved(format!("{responses}/default"));
        let statuses = self.document.pointer(&format!("{default}/x-statuses"))?.as_array()?;
        statuses.contains(&json!(reply.status)).then_some(default)
    }

    /// The path in the file to the answers of a request.
    pub(super) fn place(&self, exchange: &Exchange) -> String {
        let operation = self.operation(exchange).filter(|_| !is_no_http(&exchange.reply));
        operation.map_or_else(|| "/x-other-requests".to_owned(), |path| path + "/responses")
    }

    /// The paths in the file to the descriptions of an exchange.
    pub(super) fn places(&self, exchange: &Exchange) -> Vec<String> {
        let of_status = format!("{}/{}", self.place(exchange), exchange.reply.status);
        let sent = self.body_schema(exchange).filter(|_| has_taken_body(exchange));
        [Some(of_status), self.response(exchange), sent].into_iter().flatten().collect()
    }

    /// The path in the file to the description of a request's body.
    fn body_schema(&self, exchange: &Exchange) -> Option<String> {
        let body =
            format!("{}/requestBody/content/application~1json/schema", self.operation(exchange)?);
        self.document.pointer(&body)?;
        Some(body)
    }

    fn check_sent(&self, exchange: &Exchange) -> Result<(), Undescribed> {
        let schema = self.body_schema(exchange);
        match (schema, serde_json::from_str(&exchange.sent)) {
            (Some(schema), Ok(sent)) => self.check_value(&schema, &sent),
            // Chunked bodies are not assembled here.
            _ => Ok(()),
        }
    }

    /// The path in the file to the description of a request, if the file has it.
    fn operation(&self, exchange: &Exchange) -> Option<String> {
        let Exchange { listener, method, target, .. } = exchange;
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let path = match path.strip_prefix("http://") {
            Some(rest) => rest.find('/').map_or("/", |slash| &rest[slash..]),
            None => path,
        };
        let paths = self.document["paths"].as_object()?;
        let fitting = paths.iter().filter(|(pattern, item)| match listener.as_str() {
            "minerid" => fits(pattern, &as_older_generator(path, item)),
            _ => fits(pattern, path),
        });
        // If several patterns match, the one with the most fixed parts counts.
        let (pattern, item) = fitting.min_by_key(|(pattern, _)| pattern.matches('{').count())?;
        let name = match method.as_str() {
            "GET" => "get",
            "HEAD" => "head",
            "POST" => "post",
            "PATCH" => "patch",
            "DELETE" => "delete",
            _ => return None,
        };
        item.get(name)?;
        Some(format!("/paths/{}/{name}", pattern.replace('/', "~1")))
    }

    /// The target of the reference at a path, or the path itself if there is no reference.
    fn resolved(&self, path: String) -> String {
        let reference = self.document.pointer(&path).and_then(|value| value["$ref"].as_str());
        reference.and_then(|it| it.strip_prefix('#')).map_or(path, str::to_owned)
    }

    fn at(&self, path: &str) -> &Value {
        self.document.pointer(path).unwrap_or_else(|| panic!("the file has no {path}"))
    }

    fn check_headers(&self, response: &Value, exchange: &Exchange) -> Result<(), Undescribed> {
        let Exchange { listener, reply, .. } = exchange;
        let empty = serde_json::Map::new();
        let described = response["headers"].as_object().unwrap_or(&empty);
        for (name, _) in &reply.headers {
            let is_described = described.keys().any(|known| known.eq_ignore_ascii_case(name));
            let is_of_payments =
                listener == "payments" && PAYMENTS_HEADERS.contains(&name.as_str());
            if !is_described && !is_of_payments && !USUAL_HEADERS.contains(&name.as_str()) {
                return Err(Undescribed(format!("it tells of no header {name} there")));
            }
        }
        for (name, header) in described {
            let path = header["$ref"].as_str().and_then(|it| it.strip_prefix('#')).unwrap();
            let is_required = self.at(path)["required"] == true;
            match reply.header(&name.to_ascii_lowercase()) {
                None if is_required => {
                    return Err(Undescribed(format!("the header {name} is missing")));
                }
                None => {}
                Some(value) => {
                    let value = match value.parse::<u64>() {
                        Ok(number) => json!(number),
                        Err(_) => json!(value),
                    };
                    self.check_value(&format!("{path}/schema"), &value)?;
                }
            }
        }
        Ok(())
    }

    fn check_body(&self, place: &str, reply: &Reply) -> Result<(), Undescribed> {
        let Some(content) = self.at(place)["content"].as_object() else {
            return match reply.body.as_str() {
                "" => Ok(()),
                _ => Err(Undescribed("there is a body".to_owned())),
            };
        };
        let kind = reply.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default();
        if !content.contains_key(kind) {
            return Err(Undescribed(format!("it tells of no content {kind:?} there")));
        }
        let is_text = kind.starts_with("text/")
            || ["application/openmetrics-text", "image/svg+xml"].contains(&kind);
        let value = match is_text {
            true => json!(reply.body),
            false => serde_json::from_str(&reply.body)
                .map_err(|error| Undescribed(format!("the body is no JSON: {error}")))?,
        };
        if kind == "application/problem+json" && value["status"] != reply.status {
            return Err(Undescribed(format!("the body tells of status {}", value["status"])));
        }
        self.check_value(&format!("{place}/content/{}/schema", kind.replace('/', "~1")), &value)
    }

    /// Checks a value with the schema at a path.
    pub fn check_value(&self, path: &str, value: &Value) -> Result<(), Undescribed> {
        let validator = self.validator(path);
        let mut errors = validator.iter_errors(value);
        errors.next().map_or(Ok(()), |error| {
            Err(Undescribed(format!("{error}, at {:?}", error.instance_path().to_string())))
        })
    }

    fn validator(&self, path: &str) -> Arc<Validator> {
        let mut validators = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        let validator = validators.entry(path.to_owned()).or_insert_with(|| {
            // References start at the root of the schema, as they do at the root of the file.
            let schemas = &self.document["components"]["schemas"];
            let schema = json!({"allOf": [self.at(path)], "components": {"schemas": schemas}});
            let options = jsonschema::options().should_validate_formats(true);
            Arc::new(options.build(&schema).unwrap_or_else(|error| panic!("{path}: {error}")))
        });
        Arc::clone(validator)
    }
}

/// Whether this is the answer to an unreadable head of a request. No route has made such an answer.
fn is_no_http(reply: &Reply) -> bool {
    matches!(reply.status, 400 | 414 | 431)
        && reply.header("content-type").is_none()
        && reply.body.is_empty()
}

/// Whether the answer shows that the server could read the request's body. The wallet reads the
/// body before everything else.
fn has_taken_body(exchange: &Exchange) -> bool {
    match exchange.reply.status {
        200..300 => true,
        409 | 422 => exchange.listener == "wallet",
        _ => false,
    }
}

/// Whether a path matches a pattern such as `/minerid/{alias}`.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<_>, Vec<_>) =
        (pattern.split('/').collect(), path.split('/').collect());
    let mut pairs = pattern.iter().zip(&path);
    pattern.len() == path.len()
        && pairs.all(|(part, given)| match part.starts_with('{') {
            true => !given.is_empty(),
            false => part == given,
        })
}

/// The path in the form of the older generator's routes: in lower case except the alias, and
/// without a slash at its end. The service's additional routes keep their form.
fn as_older_generator(path: &str, item: &Value) -> String {
    let is_ours = item["get"]["tags"][0] == "service";
    let path = match path.strip_suffix('/') {
        Some(path) if !is_ours => path,
        _ => path,
    };
    let parts = path.split('/').enumerate().map(|(place, part)| match place {
        2 => part.to_owned(),
        _ => part.to_ascii_lowercase(),
    });
    parts.collect::<Vec<_>>().join("/")
}
