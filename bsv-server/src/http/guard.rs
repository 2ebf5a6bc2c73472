use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{HOST, HeaderName, ORIGIN};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses, with the reason, what a web page of another origin makes a browser on this machine
/// send: a local service without credentials would obey it.
///
/// A rebound domain name shows in `Host`, a foreign page in `Origin` or `Sec-Fetch-Site`.
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
    if let Some(origin) = headers.get(ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if authority.is_none() || authority != host {
            return Err("Forbidden: the request comes from a web page of another origin");
        }
    }
    match headers.get(SEC_FETCH_SITE).map(hyper::header::HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err("Forbidden: the request comes from a web page of another origin"),
    }
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
            &[("host", "127.0.0.1:9002"), ("sec-fetch-site", "cross-site")],
            &[("host", "127.0.0.1:9002"), ("sec-fetch-site", "same-site")],
        ] {
            assert!(!check(headers), "{headers:?}");
        }
    }
}
