//! What the clients of HTTP services have in common.

use std::error::Error;
use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Response, Url};
#[cfg(feature = "broadcasters")]
use secrecy::{ExposeSecret, SecretString};

/// How long an answer may take, with its body. Each request is given this.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of foreign words that are kept.
const MOST_WORDS: usize = 200;
/// The longest pause that a service may ask for.
const MOST_PAUSE: Duration = Duration::from_secs(3_600);
/// How deep the JSON of an answer may be.
#[cfg(feature = "broadcasters")]
const MOST_DEPTH: usize = 32;
/// Shorter parts of a URL are no secrets.
#[cfg(feature = "broadcasters")]
const SHORTEST_SECRET: usize = 8;

/// Why a body is not read to its end.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It does not come. These are the reasons.
    Cut(String),
    /// It is longer than it may be.
    TooLong,
}

/// The body of an answer, of at most so many bytes.
pub(crate) async fn read(mut answer: Response, most: usize) -> Result<Vec<u8>, Unread> {
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(|error| Unread::Cut(reasons(error)))? {
        if body.len() + part.len() > most {
            return Err(Unread::TooLong);
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

/// An error with its causes, and without the URL, which may hold a key.
pub(crate) fn reasons(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut reasons = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reasons.push_str(&format!(": {error}"));
        cause = error.source();
    }
    // A certificate is made of foreign words.
    one_line(&reasons)
}

/// The beginning of foreign words, in one line of at most 200 bytes.
pub(crate) fn one_line(words: &str) -> String {
    let mut line = String::new();
    for part in words.chars().map(char::escape_debug) {
        if line.len() + part.clone().map(char::len_utf8).sum::<usize>() > MOST_WORDS {
            break;
        }
        line.extend(part);
    }
    line
}

/// The beginning of foreign bytes, in one line of at most 200 bytes.
#[cfg(feature = "headers")]
pub(crate) fn shown(bytes: &[u8]) -> String {
    one_line(&String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_WORDS)]))
}

/// The host of a URL, and the port if it has one. Other parts of a URL may be secret.
pub(crate) fn host_of(url: &str) -> String {
    let host = Url::parse(url).ok().and_then(|url| {
        let host = url.host_str()?.to_owned();
        Some(url.port().map_or(host.clone(), |port| format!("{host}:{port}")))
    });
    host.unwrap_or_default()
}

/// The parts of a URL that may be secret: those behind the host that are long enough to be keys.
#[cfg(feature = "broadcasters")]
pub(crate) fn secrets_in(url: &str) -> Vec<SecretString> {
    let (_, behind_scheme) = url.split_once("://").unwrap_or_default();
    let parts = behind_scheme.split(['/', '?', '&', '=', '#']).skip(1);
    parts.filter(|part| part.len() >= SHORTEST_SECRET).map(SecretString::from).collect()
}

/// Foreign words without our secrets, which a service may repeat.
#[cfg(feature = "broadcasters")]
pub(crate) fn without(secrets: &[SecretString], words: &str) -> String {
    let secrets = secrets.iter().map(ExposeSecret::expose_secret);
    let secrets = secrets.filter(|secret| !secret.is_empty());
    secrets.fold(words.to_owned(), |words, secret| words.replace(secret, "***"))
}

/// How long a service wants to be left alone, for an hour at most.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(MOST_PAUSE))
}

/// Whether brackets are nested too deep outside of strings.
#[cfg(feature = "broadcasters")]
pub(crate) fn is_too_deep(json: &[u8]) -> bool {
    let mut depth = 0_usize;
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MOST_DEPTH {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_words_are_one_short_line() {
        assert_eq!(one_line("no \u{1b}[1m\n"), r"no \u{1b}[1m\n");
        for words in ["\0", "\u{7}", "a", "\"", "ä", "\n\u{1b}[31mä", "\u{fffd}"] {
            let line = one_line(&words.repeat(1_000));
            assert!((190..=200).contains(&line.len()), "{words:?}: {}", line.len());
            assert!(!line.contains(char::is_control));
        }
    }

    #[cfg(feature = "headers")]
    #[test]
    fn bytes_that_are_no_text_are_shown() {
        assert_eq!(shown(b"no \x1b[1m\n"), r"no \u{1b}[1m\n");
        assert!((190..=200).contains(&shown(&[0xff; 1_000]).len()));
    }

    #[cfg(feature = "broadcasters")]
    #[test]
    fn secrets_are_taken_out_of_foreign_words() {
        let mut secrets =
            secrets_in("https://name:pass@host.example/v1/secret-part?key=0123456789");
        secrets.extend(["", "token"].map(SecretString::from));
        let words = "no /v1/secret-part?key=0123456789 for token on host.example";
        assert_eq!(without(&secrets, words), "no /v1/***?key=*** for *** on host.example");
    }

    #[cfg(feature = "broadcasters")]
    #[test]
    fn pauses_are_bounded() {
        for (value, expected) in [
            ("7", Some(7)),
            ("3601", Some(3_600)),
            ("18446744073709551615", Some(3_600)),
            ("18446744073709551616", None),
            ("Wed, 21 Oct 2026 07:28:00 GMT", None),
            ("-1", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
            assert_eq!(retry_after(&headers), expected.map(Duration::from_secs), "{value}");
        }
    }

    #[cfg(feature = "broadcasters")]
    #[test]
    fn brackets_are_counted_outside_of_strings() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(!is_too_deep(nested(32).as_bytes()));
        assert!(is_too_deep(nested(33).as_bytes()));
        assert!(!is_too_deep(format!("[\"\\\"{}\"]", nested(40)).as_bytes()));
        assert!(!is_too_deep("{}".repeat(40).as_bytes()));
    }
}
