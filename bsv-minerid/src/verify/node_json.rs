//! JSON as nodes read and print it. This JSON differs from the standard: nodes accept some texts
//! that are not Unicode, refuse others, and limit the depth of arrays and objects.

use std::borrow::Cow;

use thiserror::Error;

use super::node_text::decode;
use crate::json::write_escaped;

/// The deepest nesting of arrays and objects that nodes read, including the outermost one.
pub(super) const MOST_DEPTH: usize = 2049;

/// Why nodes cannot read a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum NodeJsonError {
    #[error("not JSON")]
    Syntax,
    #[error("a string in it is not Unicode in the form that nodes require")]
    Text,
    #[error("nested deeper than {MOST_DEPTH} levels, which JSON allows and nodes do not read")]
    TooDeep,
}

pub(super) const NOT_STANDARD: &str =
    "a string in it is not standard Unicode: nodes and other readers read it differently";

/// What can come next in a text.
#[derive(Clone, Copy)]
enum Next {
    Value,
    /// A value, or the end of the array that has just begun.
    FirstValue,
    Name,
    /// A name, or the end of the object that has just begun.
    FirstName,
    Colon,
    /// A comma, or the end of the current array or object.
    Rest,
}

/// Checks that nodes can read a text.
pub(super) fn check(text: &[u8]) -> Result<(), NodeJsonError> {
    let mut tokens = Tokens::of(text);
    let (mut closing, mut next) = (Vec::new(), Next::Value);
    while let Some(token) = tokens.next()? {
        if let Token::String(content) = token {
            decode(content).ok_or(NodeJsonError::Text)?;
        }
        next = match (next, token) {
            (Next::Value | Next::FirstValue, Token::Mark(open @ (b'{' | b'['))) => {
                if closing.len() == MOST_DEPTH {
                    return Err(NodeJsonError::TooDeep);
                }
                let is_object = open == b'{';
                closing.push(if is_object { b'}' } else { b']' });
                if is_object { Next::FirstName } else { Next::FirstValue }
            }
            (Next::Value | Next::FirstValue, Token::Word(_) | Token::String(_)) => Next::Rest,
            (Next::Name | Next::FirstName, Token::String(_)) => Next::Colon,
            (Next::Colon, Token::Mark(b':')) => Next::Value,
            (Next::Rest, Token::Mark(b',')) => match closing.last() {
                Some(b'}') => Next::Name,
                Some(_) => Next::Value,
                None => return Err(NodeJsonError::Syntax),
            },
            (
                Next::Rest | Next::FirstValue | Next::FirstName,
                Token::Mark(mark @ (b'}' | b']')),
            ) if closing.pop() == Some(mark) => Next::Rest,
            _ => return Err(NodeJsonError::Syntax),
        };
    }
    match next {
        Next::Rest if closing.is_empty() => Ok(()),
        _ => Err(NodeJsonError::Syntax),
    }
}

/// A text that nodes can read, as they print it: compact, with only the necessary escapes.
pub(super) fn printed(text: &[u8]) -> Cow<'_, [u8]> {
    if is_printed(text) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut tokens = Tokens::of(text);
    while let Ok(Some(token)) = tokens.next() {
        match token {
            Token::Mark(mark) => out.push(mark),
            Token::Word(word) => out.extend(word),
            Token::String(content) => {
                out.push(b'"');
                for chunk in decode(content).unwrap_or_default().utf8_chunks() {
                    let mut escaped = String::new();
                    write_escaped(&mut escaped, chunk.valid());
                    out.extend(escaped.as_bytes());
                    out.extend(chunk.invalid());
                }
                out.push(b'"');
            }
        }
    }
    Cow::Owned(out)
}

/// Whether a text that nodes can read is certainly printed unchanged: it has no escapes, needs
/// none, and has white space only in strings. Nearly all documents are like that.
fn is_printed(text: &[u8]) -> bool {
    let mut is_in_string = false;
    std::str::from_utf8(text).is_ok()
        && text.iter().all(|byte| {
            is_in_string ^= *byte == b'"';
            !matches!(byte, b'\\' | 0x7f) && (is_in_string || !byte.is_ascii_whitespace())
        })
}

/// Whether a text that nodes can read means the same to everybody else: it is Unicode, and each
/// string is standard JSON.
pub(super) fn is_standard(text: &[u8]) -> bool {
    if std::str::from_utf8(text).is_err() {
        return false;
    }
    let mut tokens = Tokens::of(text);
    while let Ok(Some(token)) = tokens.next() {
        let Token::String(content) = token else { continue };
        if content.contains(&b'\\') {
            let quoted = [b"\"", content, b"\""].concat();
            let standard = serde_json::from_slice::<String>(&quoted).ok();
            if standard.map(String::into_bytes) != decode(content).map(Cow::into_owned) {
                return false;
            }
        }
    }
    true
}

/// A token of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// One of `{}[]:,`.
    Mark(u8),
    /// A number, `null`, `true` or `false`.
    Word(&'a [u8]),
    /// A string, without its quotation marks.
    String(&'a [u8]),
}

/// The tokens of a text, without white space.
pub(super) struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// The next token, or `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Token<'a>>, NodeJsonError> {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.text[self.at..].iter().take_while(|byte| is_space(byte)).count();
        let rest = &self.text[self.at..];
        let Some(&first) = rest.first() else { return Ok(None) };
        let (token, length) = match first {
            b'{' | b'}' | b'[' | b']' | b':' | b',' => (Token::Mark(first), 1),
            b'"' => {
                let content = &rest[1..];
                let length = content_length(content).ok_or(NodeJsonError::Syntax)?;
                (Token::String(&content[..length]), length + 2)
            }
            _ => {
                let length = word_length(rest).ok_or(NodeJsonError::Syntax)?;
                (Token::Word(&rest[..length]), length)
            }
        };
        self.at += length;
        Ok(Some(token))
    }

    /// The text of the next value. The caller handles what precedes and follows it.
    pub(super) fn value(&mut self) -> Result<&'a [u8], NodeJsonError> {
        let mut start = None;
        let mut depth = 0_usize;
        loop {
            let before = self.at;
            let token = self.next()?.ok_or(NodeJsonError::Syntax)?;
            let start = *start.get_or_insert(before);
            match token {
                Token::Mark(b'{' | b'[') => depth += 1,
                Token::Mark(b'}' | b']') => {
                    depth = depth.checked_sub(1).ok_or(NodeJsonError::Syntax)?;
                }
                _ => {}
            }
            if depth == 0 {
                return Ok(self.text[start..self.at].trim_ascii_start());
            }
        }
    }
}

/// The bytes at which a string ends, an escape begins or a string is malformed. Documents consist
/// mostly of strings, and a table is the fastest way through them.
const ENDS_PLAIN: [bool; 256] = {
    let mut ends = [false; 256];
    let mut control = 0;
    while control < 0x20 {
        ends[control] = true;
        control += 1;
    }
    ends[b'"' as usize] = true;
    ends[b'\\' as usize] = true;
    ends
};

/// The length of a string up to its closing quotation mark.
fn content_length(content: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += content.get(at..)?.iter().position(|byte| ENDS_PLAIN[usize::from(*byte)])?;
        match content[at] {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => return None,
        }
    }
}

/// The length of the number, `null`, `true` or `false` at the start of a text.
fn word_length(text: &[u8]) -> Option<usize> {
    let is_there = |word: &&[u8]| text.starts_with(word);
    if let Some(word) = [&b"null"[..], b"true", b"false"].iter().find(|word| is_there(word)) {
        return Some(word.len());
    }
    let digits = |from: usize| {
        let count = text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        Some(count).filter(|count| *count > 0)
    };
    let start = usize::from(text[0] == b'-');
    let whole = digits(start)?;
    if whole > 1 && text[start] == b'0' {
        return None;
    }
    let mut end = start + whole;
    if text.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1)?;
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        end += 1 + usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        end += digits(end)?;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_json_is_read_and_nothing_else() {
        for text in [
            "null",
            " [ ] ",
            "{}",
            "[1,-0,0.5,1e5,-1.5E-3,1E+9]",
            r#"{"a":[{"b":null},true,false]}"#,
            r#"["\"\\\/\b\f\n\r\t\u00e9é"]"#,
        ] {
            assert_eq!(check(text.as_bytes()), Ok(()), "{text}");
            assert!(is_standard(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            " ",
            "{",
            "]",
            "[1,]",
            "[,1]",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            "[1 2]",
            r#"["a":1]"#,
            r#"{"a":1 "b":2}"#,
            r#"{1:2}"#,
            "[1}",
            "{}{}",
            "{},",
            "01",
            "-",
            "+1",
            "1.",
            ".5",
            "1e",
            "nul",
            "nulll",
            "True",
            "[\"\t\"]",
            r#"["a]"#,
            "\u{feff}{}",
            "[\u{a0}]",
            "'a'",
        ] {
            assert_eq!(check(text.as_bytes()), Err(NodeJsonError::Syntax), "{text}");
        }
        for text in [r#"["\x"]"#, r#"["\u12g4"]"#, r#"["\ud800"]"#] {
            assert_eq!(check(text.as_bytes()), Err(NodeJsonError::Text), "{text}");
        }
    }

    #[test]
    fn arrays_and_objects_are_read_to_some_depth() {
        let arrays = |count| [b"[".repeat(count), b"]".repeat(count)].concat();
        let objects = |count| {
            let inner = count - 1;
            [br#"{"a":"#.repeat(inner), b"{}".to_vec(), b"}".repeat(inner)].concat()
        };
        assert_eq!(check(&arrays(MOST_DEPTH)), Ok(()));
        assert_eq!(check(&arrays(MOST_DEPTH + 1)), Err(NodeJsonError::TooDeep));
        assert_eq!(check(&objects(MOST_DEPTH)), Ok(()));
        assert_eq!(check(&objects(MOST_DEPTH + 1)), Err(NodeJsonError::TooDeep));
        assert_eq!(check(format!("[{}1]", "[],".repeat(10_000)).as_bytes()), Ok(()));
    }

    #[test]
    fn what_is_taken_as_it_stands_is_what_would_be_printed() {
        for (text, print) in [
            (r#"{"a":[1.0,-0e5],"b c":"é /"}"#, r#"{"a":[1.0,-0e5],"b c":"é /"}"#),
            (" {\t\"a\" : 1 }\r\n", r#"{"a":1}"#),
            (r#"{"a":"\/\u00e9"}"#, r#"{"a":"/é"}"#),
            (r#"{"a":"\"", "b":1}"#, r#"{"a":"\"","b":1}"#),
            ("[\"\u{7f}\\u0001\"]", r#"["\u007f\u0001"]"#),
        ] {
            assert_eq!(printed(text.as_bytes()), print.as_bytes(), "{text}");
            assert_eq!(is_printed(text.as_bytes()), text == print, "{text}");
        }
        assert_eq!(*printed(b"[\"\xc1\xa1\xf4\x90\x80\x80\"]"), b"[\"a\xf4\x90\x80\x80\"]"[..]);
    }

    #[test]
    fn what_only_nodes_make_of_a_text_is_noticed() {
        for text in [
            &b"[\"\xc1\xa1\"]"[..],
            b"[\"\xf4\x90\x80\x80\"]",
            b"[\"\xed\xa0\xbd\xed\xb8\x80\"]",
            br#"["\ud83da\ude00"]"#,
            br#"["\ud840\udc00"]"#,
        ] {
            assert_eq!(check(text), Ok(()), "{text:?}");
            assert!(!is_standard(text), "{text:?}");
        }
    }
}
