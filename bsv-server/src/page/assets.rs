//! The script, the style and the icon of payment pages, whose names change with their contents.

use std::fmt;
use std::sync::LazyLock;

use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use sha2::{Digest, Sha256};

use crate::http::{Answer, answer};

/// A file that pages load.
struct Asset {
    name: String,
    content_type: &'static str,
    text: &'static str,
}

/// The files that pages load.
#[derive(Debug)]
pub(super) struct Assets {
    script: Asset,
    style: Asset,
    icon: Asset,
}

static ALL: LazyLock<Assets> = LazyLock::new(Assets::new);

impl Assets {
    /// The files.
    pub(super) fn all() -> &'static Self {
        &ALL
    }

    fn new() -> Self {
        let script = include_str!("../../assets/page.js");
        let style = include_str!("../../assets/page.css");
        let icon = include_str!("../../assets/icon.svg");
        Self {
            script: Asset::new("js", "text/javascript; charset=utf-8", script),
            style: Asset::new("css", "text/css; charset=utf-8", style),
            icon: Asset::new("svg", "image/svg+xml", icon),
        }
    }

    /// The name of the script.
    pub(super) fn script(&self) -> &str {
        &self.script.name
    }

    /// The name of the style.
    pub(super) fn style(&self) -> &str {
        &self.style.name
    }

    /// The name of the icon.
    pub(super) fn icon(&self) -> &str {
        &self.icon.name
    }

    /// The file with this name.
    pub(super) fn answer(&self, name: &str) -> Option<Answer> {
        let Asset { content_type, text, .. } =
            [&self.script, &self.style, &self.icon].into_iter().find(|asset| asset.name == name)?;
        let mut answer = answer::answer(StatusCode::OK, content_type, *text);
        let forever = HeaderValue::from_static("max-age=31536000, immutable");
        let headers = answer.headers_mut();
        headers.insert(CACHE_CONTROL, forever);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Some(answer)
    }
}

impl fmt::Debug for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asset").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Asset {
    fn new(ending: &str, content_type: &'static str, text: &'static str) -> Self {
        let hash = hex::encode(&Sha256::digest(text)[..8]);
        Self { name: format!("{hash}.{ending}"), content_type, text }
    }
}
