use bsv_tests::Site;
use serde_json::json;

use crate::requests::Service;

const HOST: &str = "Forbidden: the Host header must be an IP address, localhost, or a name in \
                    allowedHosts";
const PAGE: &str = "Forbidden: the request comes from a web page of another origin";

#[test]
fn what_a_foreign_web_page_can_send_changes_nothing() {
    let service = Service::start();
    let key = service.key_of("first");
    for (headers, text) in [
        ("Host: evil.example\r\n", HOST),
        ("Host: evil.example:9002\r\n", HOST),
        ("Host: 127.0.0.1.evil.example\r\n", HOST),
        ("Host: localhost.evil.example:9002\r\n", HOST),
        ("Host: 127.0.0.1@evil.example\r\n", HOST),
        ("Host: \r\n", HOST),
        ("Host: \u{e9}\r\n", HOST),
        ("Host: 127.0.0.1\r\nOrigin: http://evil.example\r\n", PAGE),
        ("Host: 127.0.0.1\r\nOrigin: https://127.0.0.1:1\r\n", PAGE),
        ("Host: 127.0.0.1\r\nOrigin: null\r\n", PAGE),
        ("Host: 127.0.0.1\r\nOrigin: \r\n", PAGE),
        ("Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site\r\n", PAGE),
        ("Host: 127.0.0.1\r\nSec-Fetch-Site: same-site\r\n", PAGE),
        ("Host: 127.0.0.1\r\nSec-Fetch-Site: other\r\n", PAGE),
    ] {
        for path in ["/opreturn/first/rotate", "/minerid/first", "/nowhere"] {
            let reply = service.get_with(path, headers);
            assert_eq!((reply.status, reply.body.as_str()), (403, text), "{path} {headers}");
            assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
        }
        let post = format!(
            "POST /opreturn/first/rotate HTTP/1.1\r\n{headers}Content-Length: 0\r\n\
             Connection: close\r\n\r\n"
        );
        assert_eq!(service.raw(post).unwrap().status, 403, "{headers}");
    }
    let preflight = "OPTIONS /coinbase2 HTTP/1.1\r\nHost: 127.0.0.1\r\n\
                     Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n\
                     Connection: close\r\n\r\n";
    let reply = service.raw(preflight).unwrap();
    assert_eq!(reply.status, 403);
    assert_eq!(reply.header("access-control-allow-origin"), None);
    assert_eq!(service.key_of("first"), key);
    service.check_alive();
}

#[test]
fn local_callers_pass_under_every_name_that_is_local_or_listed() {
    let listed = json!({"allowedHosts": ["pool.internal"]});
    let service = Service::start_on(Site::with(listed));
    let key = service.key_of("first");
    for headers in [
        "Host: localhost\r\n",
        "Host: LOCALHOST:9002\r\n",
        "Host: 127.0.0.1\r\n",
        "Host: 127.0.0.1:9002\r\n",
        "Host: 192.168.1.2:80\r\n",
        "Host: [::1]:9002\r\n",
        "Host: pool.internal\r\n",
        "Host: Pool.Internal:9002\r\n",
        "Host: localhost:9002\r\nOrigin: http://localhost:9002\r\n",
        "Host: localhost:9002\r\nSec-Fetch-Site: same-origin\r\n",
        "Host: localhost:9002\r\nSec-Fetch-Site: none\r\n",
    ] {
        let reply = service.get_with("/minerid/first", headers);
        assert_eq!((reply.status, reply.body.as_str()), (200, key.as_str()), "{headers}");
    }
    for host in ["pool", "x.pool.internal", "pool.internal.evil.example"] {
        let reply = service.get_with("/minerid/first", &format!("Host: {host}\r\n"));
        assert_eq!(reply.status, 403, "{host}");
    }
}
