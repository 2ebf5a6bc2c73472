//! The tokens of JSON as nodes split it.

use super::node_json_error::NodeJsonError;

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
