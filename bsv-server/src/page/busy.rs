//! What a browser shows while a payment page cannot be answered.

use askama::Template;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use super::api::describe_language;
use super::assets::Assets;
use super::headers::{content_policy, protect};
use super::texts::Texts;
use crate::config::PageConfig;
use crate::http::{Answer, AnswerBody};

#[derive(Template)]
#[template(path = "busy.html")]
struct BusyHtml<'a> {
    t: &'a Texts,
    frame: Files<'a>,
    /// When the page loads itself again.
    seconds: &'a str,
}

/// The files that the page loads.
struct Files<'a> {
    style: &'a str,
    icon: &'a str,
}

/// Makes a page of the answer if a browser asks for a payment page, and has to ask again later. The
/// status and the other headers stay.
pub(crate) fn show_in_browser(config: &PageConfig, head: &Parts, answer: &mut Answer) {
    let is_page = head.uri.path().strip_prefix("/pay/").is_some_and(|id| !id.contains('/'));
    let is_for_now =
        matches!(answer.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    if !is_for_now || !is_page || !matches!(head.method, Method::GET | Method::HEAD) {
        return;
    }
    let seconds = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let Some(seconds) = seconds.filter(|_| accepts_html(head)) else { return };
    let (texts, assets) = (Texts::asked(head), Assets::all());
    let frame = Files { style: assets.style(), icon: assets.icon() };
    let Ok(html) = (BusyHtml { t: texts, frame, seconds }).render() else { return };
    *answer.body_mut() = AnswerBody::Whole(html.into());
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, html);
    protect(answer, content_policy(config));
    describe_language(answer, texts);
}

/// Whether the sender names HTML among what it accepts, as browsers do and programs do not.
fn accepts_html(head: &Parts) -> bool {
    let accepted = head.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types =
        accepted.flat_map(|value| value.split(',')).filter_map(|it| it.split(';').next());
    types.any(|it| it.trim().eq_ignore_ascii_case("text/html"))
}
