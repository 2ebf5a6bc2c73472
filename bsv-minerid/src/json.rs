use std::borrow::Cow;
use std::fmt::Write;

use serde::de::IgnoredAny;
use thiserror::Error;

/// JSON text spelled exactly as a node prints it: compact, with members in their order and numbers
/// as they were, and with only the necessary escapes in strings.
///
/// A node parses an identity document, prints it, and verifies the signature over the printed text.
/// So a document in any other spelling does not verify.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CanonicalJson(String);

/// Why text is not JSON that a node can reproduce.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JsonError {
    /// Not JSON.
    #[error("not JSON: {0}")]
    Syntax(String),
    /// Objects and arrays are nested too deep.
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// The deepest nesting of objects and arrays that is accepted.
const MAX_DEPTH: usize = 64;

impl CanonicalJson {
    /// Converts any JSON text to the spelling of nodes.
    pub fn from_text(text: &str) -> Result<Self, JsonError> {
        let syntax = |error: serde_json::Error| JsonError::Syntax(error.to_string());
        serde_json::from_str::<IgnoredAny>(text).map_err(syntax)?;
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        let mut depth = 0;
        while let Some(next) = rest.chars().next() {
            let taken = match next {
                '"' => {
                    let end = string_end(rest);
                    let string: Cow<'_, str> =
                        serde_json::from_str(&rest[..end]).map_err(syntax)?;
                    write_string(&mut out, &string);
                    end
                }
                ' ' | '\t' | '\n' | '\r' => 1,
                other => {
                    match other {
                        '{' | '[' => depth += 1,
                        '}' | ']' => depth -= 1,
                        _ => {}
                    }
                    if depth > MAX_DEPTH {
                        return Err(JsonError::TooDeep);
                    }
                    out.push(other);
                    other.len_utf8()
                }
            };
            rest = &rest[taken..];
        }
        Ok(Self(out))
    }

    /// The JSON string that holds `text`.
    pub fn string(text: &str) -> Self {
        let mut out = String::with_capacity(text.len() + 2);
        write_string(&mut out, text);
        Self(out)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }
}

/// The length of the string literal at the start of `text`, which must be valid JSON.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    let closing = text.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    closing.map_or(text.len(), |place| place + 2)
}

/// Appends a string literal as a node prints it: it escapes `"`, `\` and control characters,
/// including 0x7f, but not `/` and any other character.
pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    write_escaped(out, text);
    out.push('"');
}

/// Appends the contents of a string literal.
pub(crate) fn write_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' | '\u{7f}' => {
                write!(out, "\\u{:04x}", u32::from(c)).expect("a String takes any text");
            }
            _ => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn respell(text: &str) -> Result<String, JsonError> {
        CanonicalJson::from_text(text).map(|json| json.as_str().to_owned())
    }

    #[test]
    fn spaces_go_and_order_and_numbers_stay() {
        let text = " { \"b\" : [ 1.0 , -0e+5,1E400 ,9223372036854775808 ] ,\r\n\t\"a\" : null,\"a\":true } ";
        let compact = r#"{"b":[1.0,-0e+5,1E400,9223372036854775808],"a":null,"a":true}"#;
        assert_eq!(respell(text).unwrap(), compact);
        assert_eq!(respell(compact).unwrap(), compact);
    }

    #[test]
    fn strings_are_escaped_as_the_node_escapes_them() {
        for (text, spelled) in [
            (r#""\/ \u002f / é \u00e9 \ud83d\ude00""#, r#""/ / / é é 😀""#),
            (r#""\b\t\n\f\r\u0000\u001F\u007f\"\\""#, r#""\b\t\n\f\r\u0000\u001f\u007f\"\\""#),
            ("\"\u{7f}\u{80}\"", "\"\\u007f\u{80}\""),
            (r#""a \" b \\""#, r#""a \" b \\""#),
            (r#"{"\u0041 b":" c "}"#, r#"{"A b":" c "}"#),
        ] {
            assert_eq!(respell(text).unwrap(), spelled);
        }
    }

    #[test]
    fn what_a_node_cannot_print_again_is_refused() {
        for bad in
            ["", "{", "[1,]", "01", "nul", "{} {}", r#""\ud800""#, r#""\x""#, "\"\t\"", "'a'"]
        {
            assert!(matches!(respell(bad), Err(JsonError::Syntax(_))), "{bad}");
        }
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(respell(&nested(MAX_DEPTH)), Ok(nested(MAX_DEPTH)));
        assert_eq!(respell(&nested(MAX_DEPTH + 1)), Err(JsonError::TooDeep));
        assert!(respell(&"[".repeat(1_000_000)).is_err());
    }
}
