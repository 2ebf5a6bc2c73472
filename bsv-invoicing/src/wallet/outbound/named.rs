//! URLs that a payee names: its channel, and where it wants the payment. They are on the host of
//! the payment URL, at any port, and never http where the payment URL is https.

use reqwest::Url;
use reqwest::header::HeaderValue;

use super::networks::{is_internal, literal};
use super::reach::Reach;
use crate::dpp::PeerChannel;

/// Suffixes of names that cannot exist on the Internet (RFC 6761, 6762, 8375; ICANN reserves
/// `internal`).
const LOCAL_SUFFIXES: [&str; 5] = [".localhost", ".local", ".internal", ".home.arpa", ".test"];

/// The URL of the channel that the payee named, with the scheme of the payment URL, and its reach.
/// `None` if the payee may not name such a channel.
pub(crate) fn channel_url(pay_to_url: &str, channel: &PeerChannel) -> Option<(Url, Reach)> {
    let PeerChannel { host, path, channel_id, token: _ } = channel;
    let paid = Url::parse(pay_to_url).ok()?;
    let is_authority = host.bytes().all(|c| c.is_ascii_graphic() && !b"/\\?#@%".contains(&c));
    let is_path = (path.is_empty() || path.starts_with('/')) && path.bytes().all(is_plain);
    let is_id = !channel_id.is_empty() && channel_id.bytes().all(|c| is_plain(c) && c != b'/');
    if !(is_authority && is_path && is_id) {
        return None;
    }
    let path = format!("{path}/api/v1/channel/{channel_id}");
    let url = Url::parse(&format!("{}://{host}{path}?unread=true", paid.scheme())).ok()?;
    // A URL that changes when it is parsed, for example by dot segments, is refused.
    if url.path() != path || HeaderValue::from_str(&channel.token).is_err() {
        return None;
    }
    let reach = reach_of_named(&paid, &url)?;
    Some((url, reach))
}

/// The reach of the URL that a payment is posted to, for the payment URL `paid`. `None` if the
/// payee may not name this URL.
pub(crate) fn posting_reach(paid: &Url, url: &Url) -> Option<Reach> {
    let has_user = !url.username().is_empty() || url.password().is_some();
    let named = reach_of_named(paid, url).filter(|_| !has_user)?;
    // The owner chose the address of the payment URL. At another port may be a listener of ours.
    Some(if url.origin() == paid.origin() { Reach::Chosen } else { named })
}

fn reach_of_named(paid: &Url, url: &Url) -> Option<Reach> {
    let is_safe = match url.scheme() {
        "https" => true,
        scheme => scheme == "http" && paid.scheme() == "http",
    };
    if !is_safe || url.host() != paid.host() {
        return None;
    }
    Some(if is_local(paid) { Reach::Anywhere } else { Reach::Public })
}

/// The characters that need no escape in a path (RFC 3986, 3.3) except `@`, and the slash.
fn is_plain(c: u8) -> bool {
    c.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:/".contains(&c)
}

/// Whether only this machine or its network can have this URL. A name that can exist on the
/// Internet is not local, whatever its address: its owner can change that at any time.
fn is_local(url: &Url) -> bool {
    match literal(url) {
        Some(address) => is_internal(address).unwrap_or(false),
        None => url.host_str().is_some_and(|name| {
            let name = name.strip_suffix('.').unwrap_or(name);
            !name.contains('.') || LOCAL_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url_of(pay_to_url: &str, host: &str, path: &str, id: &str) -> Option<String> {
        let text = |text: &str| text.to_owned();
        let channel = PeerChannel {
            host: text(host),
            path: text(path),
            channel_id: text(id),
            token: text("t"),
        };
        channel_url(pay_to_url, &channel).map(|(url, reach)| format!("{url} {reach:?}"))
    }

    #[test]
    fn a_channel_lies_on_the_payees_host_at_any_port() {
        for (paid, host, path, expected) in [
            ("http://pay.example/x", "pay.example", "", "http://pay.example Public"),
            ("http://pay.example/x", "pay.example:8443", "", "http://pay.example:8443 Public"),
            ("http://pay.example:80/x", "PAY.example:80", "/a/b", "http://pay.example/a/b Public"),
            ("https://pay.example/x", "pay.example", "/.a..", "https://pay.example/.a.. Public"),
            ("http://127.0.0.1:3000/x", "127.0.0.1:9", "", "http://127.0.0.1:9 Anywhere"),
            ("http://127.0.0.1:3000/x", "0x7f.1:9", "", "http://127.0.0.1:9 Anywhere"),
            ("http://[::1]:3000/x", "[::1]:9", "", "http://[::1]:9 Anywhere"),
            ("http://8.8.8.8/x", "8.8.8.8", "", "http://8.8.8.8 Public"),
            ("http://localhost/x", "localhost:3", "", "http://localhost:3 Anywhere"),
            ("http://payd:1/x", "payd:2", "", "http://payd:2 Anywhere"),
            ("http://shop.local./x", "shop.local.", "", "http://shop.local. Anywhere"),
            ("http://local.example/x", "local.example", "", "http://local.example Public"),
        ] {
            let (root, reach) = expected.split_once(' ').unwrap();
            let expected = format!("{root}/api/v1/channel/c-1?unread=true {reach}");
            assert_eq!(url_of(paid, host, path, "c-1"), Some(expected), "{paid} {host}{path}");
        }
    }

    #[test]
    fn a_payment_is_posted_on_the_payees_host_and_never_less_safely() {
        for (paid, named, expected) in [
            ("http://pay.example/x", "http://pay.example/y", Some(Reach::Chosen)),
            ("http://pay.example/x", "http://pay.example:81/y", Some(Reach::Public)),
            ("http://pay.example/x", "https://pay.example/y", Some(Reach::Public)),
            ("https://pay.example/x", "https://pay.example:444/", Some(Reach::Public)),
            ("http://127.0.0.1:1/x", "http://127.0.0.1:2/x", Some(Reach::Anywhere)),
            ("https://pay.example/x", "http://pay.example/x", None),
            ("http://pay.example/x", "http://sub.pay.example/x", None),
            ("http://pay.example/x", "http://pay.example./x", None),
            ("http://127.0.0.1/x", "http://localhost/x", None),
            ("http://pay.example/x", "http://user@pay.example/x", None),
            ("http://pay.example/x", "http://:word@pay.example/x", None),
            ("http://pay.example/x", "ftp://pay.example/x", None),
            ("http://pay.example/x", "mailto:x@pay.example", None),
        ] {
            let reach = posting_reach(&Url::parse(paid).unwrap(), &Url::parse(named).unwrap());
            assert_eq!(reach, expected, "{paid} {named}");
        }
    }

    #[test]
    fn a_channel_on_another_host_or_of_another_form_is_refused() {
        let paid = "http://pay.example/api/v1/payment/x";
        for host in [
            "",
            ":80",
            "other.example",
            "sub.pay.example",
            "pay.example.",
            "127.0.0.1:9002",
            "[::1]",
            "http://pay.example",
            "pay.example/",
            "pay.example/opreturn/pool/rotate?",
            "pay.example?x",
            "pay.example#x",
            "pay.example:x",
            "pay.example:65536",
            "user@pay.example",
            "pay.example@127.0.0.1:9002",
            "127.0.0.1:9002#@pay.example",
            "127.0.0.1:9002\\@pay.example",
            "127.0.0.1:9002/x@pay.example",
            "pay.example\\x",
            "pay.example\t",
            " pay.example",
            "pay%2eexample",
            "pay.exämple",
        ] {
            assert_eq!(url_of(paid, host, "", "c"), None, "{host:?}");
        }
        for path in [
            "x",
            "/..",
            "/../x",
            "/x/..",
            "/.",
            "/./x",
            "/%2e%2e/x",
            "/%2E./x",
            "/x?",
            "/x#",
            "/x@y",
            "/x\\..\\y",
            "/x y",
            "/x\ny",
            "/ü",
            "/x%2f..",
        ] {
            assert_eq!(url_of(paid, "pay.example", path, "c"), None, "{path:?}");
            let id = path.trim_start_matches('/');
            if id != "x" {
                assert_eq!(url_of(paid, "pay.example", "", id), None, "{id:?}");
            }
        }
        for id in ["", "a/b", "../../../opreturn/pool/rotate", "rotate?", "rotate#", "%2e%2e"] {
            assert_eq!(url_of(paid, "pay.example", "", id), None, "{id:?}");
        }
        assert_eq!(url_of("not a URL", "pay.example", "", "c"), None);
    }
}
