//! The headers that limit what a payment page can do in a browser.

use hyper::header::{
    CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};

use crate::config::PageConfig;
use crate::http::Answer;

const CROSS_ORIGIN_OPENER_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-opener-policy");
/// The addresses of BRC-100 wallets on the payer's machine.
const BROWSER_WALLETS: &str = " https://localhost:2121 http://localhost:3321";

/// The content security policy of pages: they load nothing from elsewhere and run no inline code.
pub(super) fn content_policy(config: &PageConfig) -> HeaderValue {
    let wallets = if config.browser_wallets { BROWSER_WALLETS } else { "" };
    let embedders = match config.embedders.as_slice() {
        [] => "'none'".to_owned(),
        embedders => embedders.join(" "),
    };
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self'{wallets}; base-uri 'none'; form-action 'none'; \
         frame-ancestors {embedders}"
    );
    HeaderValue::try_from(policy).expect("origins are printable")
}

/// Adds the headers that protect a page, or a picture that is opened like a page.
pub(super) fn protect(answer: &mut Answer, policy: HeaderValue) {
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CROSS_ORIGIN_OPENER_POLICY, HeaderValue::from_static("same-origin"));
}
