use std::time::Duration;

use thiserror::Error;

/// Why a source gives no headers.
#[derive(Debug, Error)]
pub enum SourceError {
    /// There is no complete answer.
    #[error("{name} does not answer: {reason}")]
    Unreachable {
        /// The source.
        name: String,
        /// What happened.
        reason: String,
        /// How long the source asks to be left alone, an hour at most.
        retry_after: Option<Duration>,
    },
    /// The answer is not what the question asks for.
    #[error("{name} answers nonsense: {reason}")]
    Nonsense {
        /// The source.
        name: String,
        /// What is wrong with the answer, and its first bytes.
        reason: String,
    },
}

impl SourceError {
    /// There is no complete answer, and the source does not say when it would give one.
    pub(super) fn unreachable(name: &str, reason: String) -> Self {
        Self::Unreachable { name: name.to_owned(), reason, retry_after: None }
    }

    /// How long the source asks to be left alone.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unreachable { retry_after, .. } => *retry_after,
            Self::Nonsense { .. } => None,
        }
    }

    /// What is wrong with an answer.
    pub(super) fn nonsense(name: &str, reason: &str, answer: &[u8]) -> Self {
        Self::Nonsense { name: name.to_owned(), reason: format!("{reason}: {}", shown(answer)) }
    }
}

/// The first bytes of an answer, for a log. The text has 200 bytes at most.
pub(super) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_SHOWN)]);
    let mut shown = String::new();
    for char in text.chars() {
        let escaped = char.escape_debug();
        if shown.len() + escaped.clone().map(char::len_utf8).sum::<usize>() > MOST_SHOWN {
            break;
        }
        shown.extend(escaped);
    }
    shown
}

/// How many bytes of an answer are shown.
const MOST_SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_are_shown_in_a_line_of_limited_length() {
        assert_eq!(shown(b"no \x1b[1m\n"), r"no \u{1b}[1m\n");
        for byte in [0, 7, b'a', b'"', 0xff] {
            let shown = shown(&[byte; 1_000]);
            assert!((190..=200).contains(&shown.len()), "{byte}: {}", shown.len());
            assert!(!shown.contains(char::is_control));
        }
    }
}
