use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{HOST, HeaderName, HeaderValue, ORIGIN, REFERER, USER_AGENT};

const FOREIGN_PAGE: &str = "Forbidden: the request comes from a web page of another origin";
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Refuses, with the reason, what a web page of another origin makes a browser on this machine
/// send: a local service without credentials would obey it.
///
/// A rebound domain name shows in `Host`, a foreign page in `Origin`, `Referer` or `Sec-Fetch-Site`.
pub(crate) fn check_origin(
    headers: &HeaderMap,
    allowed_hosts: &[String],
) -> Result<(), &'static str> {
    let host = headers.get(HOST).map(|host| host.to_str().unwrap_or_default());
    if let Some(host) = host
        && !is_allowed(host, allowed_hosts)
    {
        return Err("Forbidden: the Host header must be an IP address, localhost, or a name that \
                    allowedHosts lists");
    }
    for page in [headers.get(ORIGIN), headers.get(REFERER)].into_iter().flatten() {
        let authority = authority(page.to_str().unwrap_or_default());
        if authority.is_none() || authority != host {
            return Err(FOREIGN_PAGE);
        }
    }
    match headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(FOREIGN_PAGE),
    }
}

/// Whether a browser goes to an address: somebody has clicked on a link, in a mail too, has sent a form or
/// has typed it. That never changes anything.
pub(crate) fn is_navigation(headers: &HeaderMap) -> bool {
    headers.get(SEC_FETCH_MODE).is_some_and(|mode| mode.as_bytes() == b"navigate")
}

/// Refuses, with the reason, a request that changes something and that a browser sends by going to an
/// address.
pub(crate) fn check_navigation(headers: &HeaderMap) -> Result<(), &'static str> {
    match is_navigation(headers) {
        true => Err("Forbidden: a link, a form or an address in a browser changes nothing"),
        false => Ok(()),
    }
}

/// Refuses, with the reason, a GET that changes something and that a browser sends by going to an address,
/// or without saying for whom. Browsers before 2023, and all over plain HTTP to an address that is not of
/// this machine, send an image's request without any of the headers that [`check_origin`] looks at.
pub(crate) fn check_unsafe_get(headers: &HeaderMap) -> Result<(), &'static str> {
    check_navigation(headers)?;
    let agent = headers.get(USER_AGENT).map(HeaderValue::as_bytes).unwrap_or_default();
    if agent.starts_with(b"Mozilla/") && !headers.contains_key(SEC_FETCH_SITE) {
        return Err("Forbidden: the browser does not say which page the request comes from");
    }
    Ok(())
}

/// Host and port of a web page or an origin.
fn authority(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    rest.split('/').next()
}

fn is_allowed(host: &str, allowed_hosts: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    address.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&'static str, &'static str)]) -> bool {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        check_origin(&headers, &["pool.internal".to_owned()]).is_ok()
    }

    #[test]
    fn local_callers_pass() {
        for headers in [
            &[][..],
            &[("host", "127.0.0.1:9002")],
            &[("host", "127.0.0.1")],
            &[("host", "[::1]:9002")],
            &[("host", "[::1]")],
            &[("host", "LocalHost:9002")],
            &[("host", "pool.internal:9002")],
            &[("host", "localhost:9002"), ("origin", "http://localhost:9002")],
            &[("host", "localhost:9002"), ("sec-fetch-site", "none")],
            &[("host", "localhost:9002"), ("sec-fetch-site", "same-origin")],
            &[("host", "localhost:9002"), ("referer", "http://localhost:9002/x?y=//z")],
        ] {
            assert!(check(headers), "{headers:?}");
        }
    }

    #[test]
    fn what_foreign_pages_send_does_not() {
        for headers in [
            &[("host", "evil.example")][..],
            &[("host", "evil.example:9002")],
            &[("host", "127.0.0.1.evil.example:9002")],
            &[("host", "localhost.evil.example")],
            &[("host", "")],
            &[("host", "127.0.0.1:9002"), ("origin", "http://evil.example")],
            &[("host", "127.0.0.1:9002"), ("origin", "http://127.0.0.1:8000")],
            &[("host", "127.0.0.1:9002"), ("origin", "null")],
            &[("host", "127.0.0.1:9002"), ("referer", "http://evil.example/127.0.0.1:9002")],
            &[("host", "127.0.0.1:9002"), ("referer", "http://127.0.0.1:9002@evil.example/")],
            &[("host", "127.0.0.1:9002"), ("sec-fetch-site", "cross-site")],
            &[("host", "127.0.0.1:9002"), ("sec-fetch-site", "same-site")],
        ] {
            assert!(!check(headers), "{headers:?}");
        }
    }
}
