use std::net::IpAddr;

use hyper::header::{HOST, HeaderName, HeaderValue, ORIGIN, REFERER, USER_AGENT};
use hyper::{HeaderMap, Request, Version};

const FOREIGN_PAGE: &str = "Forbidden: the request comes from a web page of another origin";
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Whether a request says clearly which host it is for (RFC 9112, section 3.2). A front end and this
/// server could take another one for different hosts.
pub(super) fn names_one_host<B>(request: &Request<B>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.as_bytes(),
        (None, _) if request.version() < Version::HTTP_11 => b"",
        _ => return false,
    };
    let target = request.uri().authority();
    target.is_none_or(|target| target.as_str().as_bytes().eq_ignore_ascii_case(host))
}

/// Refuses requests that a web page of another origin makes a local browser send, and answers the
/// reason. A local service without credentials would obey them.
///
/// A rebound domain name shows in `Host`. A foreign page shows in `Origin`, `Referer` or
/// `Sec-Fetch-Site`.
pub(crate) fn check_origin(
    headers: &HeaderMap,
    allowed_hosts: &[String],
) -> Result<(), &'static str> {
    let host = headers.get(HOST).map(|host| host.to_str().unwrap_or_default());
    if let Some(host) = host
        && !is_allowed(host, allowed_hosts)
    {
        return Err("Forbidden: the Host header must be an IP address, localhost, or a name in \
                    allowedHosts");
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

/// Whether a browser navigates to an address: somebody has clicked on a link, for example in a
/// mail, sent a form, or typed the address. Navigation never changes anything.
pub(crate) fn is_navigation(headers: &HeaderMap) -> bool {
    headers.get(SEC_FETCH_MODE).is_some_and(|mode| mode.as_bytes() == b"navigate")
}

/// Refuses a request that changes something and that a browser sends to navigate. Answers the
/// reason.
pub(crate) fn check_navigation(headers: &HeaderMap) -> Result<(), &'static str> {
    match is_navigation(headers) {
        true => {
            Err("Forbidden: links, forms and typed addresses of a browser cannot change anything")
        }
        false => Ok(()),
    }
}

/// Refuses a GET that changes something if a browser sends it to navigate or does not name the page
/// that sends it. Answers the reason. Browsers before 2023, and all browsers over plain HTTP to
/// other machines, request images without the headers that [`check_origin`] checks.
pub(crate) fn check_unsafe_get(headers: &HeaderMap) -> Result<(), &'static str> {
    check_navigation(headers)?;
    let agent = headers.get(USER_AGENT).map(HeaderValue::as_bytes).unwrap_or_default();
    if agent.starts_with(b"Mozilla/") && !headers.contains_key(SEC_FETCH_SITE) {
        return Err("Forbidden: the browser does not say which page the request comes from");
    }
    Ok(())
}

/// The host and port of a web page or an origin.
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
    fn a_request_is_for_one_host() {
        let names = |version, uri: &str, hosts: &[&str]| {
            let request = Request::builder().version(version).uri(uri);
            let request = hosts.iter().fold(request, |request, host| request.header(HOST, *host));
            names_one_host(&request.body(()).unwrap())
        };
        let (old, new) = (Version::HTTP_10, Version::HTTP_11);
        assert!(names(new, "/", &["a:1"]) && names(new, "http://A:1/", &["a:1"]));
        assert!(names(new, "/", &[""]) && names(old, "/", &[]));
        for (version, uri, hosts) in [
            (new, "/", &[][..]),
            (new, "/", &["a", "a"]),
            (old, "/", &["a", "a"]),
            (new, "http://a/", &["b"]),
            (new, "http://a/", &["a:80"]),
            (new, "http://a/", &[]),
            (old, "http://a/", &[]),
        ] {
            assert!(!names(version, uri, hosts), "{version:?} {uri} {hosts:?}");
        }
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
