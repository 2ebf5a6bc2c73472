//! The texts of payment pages in each language. To add a language, add a file like `en.rs`, and its
//! name here.

mod de;
mod en;

use std::cmp::Reverse;

use hyper::HeaderMap;
use hyper::header::{ACCEPT_LANGUAGE, HeaderValue};
use hyper::http::request::Parts;

use super::texts::Texts;
use crate::http::parameters;

/// The languages. The first is the default.
const ALL: [&Texts; 2] = [&en::TEXTS, &de::TEXTS];

impl Texts {
    /// The texts for a request.
    pub(super) fn asked(head: &Parts) -> &'static Self {
        let asked = parameters(&head.uri).find(|(name, _)| name == "lang");
        Self::choose(asked.as_ref().map(|(_, tag)| tag.as_ref()), &head.headers)
    }

    /// The texts in the requested language, if there is one with that tag, otherwise in the
    /// language that the browser prefers.
    fn choose(asked: Option<&str>, headers: &HeaderMap) -> &'static Self {
        let accepted =
            headers.get(ACCEPT_LANGUAGE).and_then(|value: &HeaderValue| value.to_str().ok());
        asked
            .and_then(Self::of_tag)
            .unwrap_or_else(|| Self::preferred(accepted.unwrap_or_default()))
    }

    /// The texts for a tag such as `de` or `de-AT`.
    fn of_tag(tag: &str) -> Option<&'static Self> {
        let language = tag.split('-').next().unwrap_or_default().trim();
        ALL.into_iter().find(|texts| texts.tag.eq_ignore_ascii_case(language))
    }

    /// The texts that `Accept-Language` prefers (RFC 9110, 12.5.4).
    fn preferred(accepted: &str) -> &'static Self {
        let ranges = accepted.split(',').filter_map(|range| {
            let (tag, parameters) = range.split_once(';').unwrap_or((range, "q=1"));
            let weight = parameters.trim().strip_prefix("q=")?.parse::<f32>().ok()?;
            let texts = Self::of_tag(tag)?;
            (weight > 0.0 && weight <= 1.0).then_some(((weight * 1000.0) as u32, texts))
        });
        // Among equal weights the first counts. `max_by_key` would take the last.
        ranges.min_by_key(|(weight, _)| Reverse(*weight)).map_or(ALL[0], |(_, texts)| texts)
    }

    /// All languages.
    pub(super) fn all() -> impl Iterator<Item = &'static Self> {
        ALL.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_gets_the_language_that_it_prefers() {
        for (accepted, tag) in [
            ("", "en"),
            ("de", "de"),
            ("de-AT,de;q=0.9,en;q=0.8", "de"),
            ("fr,de;q=0.5", "de"),
            ("en;q=0.5, de;q=0.7", "de"),
            ("en,de", "en"),
            ("DE", "de"),
            ("de;q=0", "en"),
            ("de;q=x", "en"),
            ("*", "en"),
            (";;;,,;q=", "en"),
        ] {
            assert_eq!(Texts::preferred(accepted).tag, tag, "{accepted}");
        }
    }

    #[test]
    fn who_names_a_language_gets_it() {
        let headers: HeaderMap =
            [(ACCEPT_LANGUAGE, HeaderValue::from_static("de"))].into_iter().collect();
        for (asked, tag) in
            [(Some("en"), "en"), (Some("de-CH"), "de"), (Some("xx"), "de"), (None, "de")]
        {
            assert_eq!(Texts::choose(asked, &headers).tag, tag, "{asked:?}");
        }
    }
}
