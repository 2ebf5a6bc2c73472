use bsv_tests::{Server, Site, http};
use serde_json::Value;

use crate::access::Guarded;

const CHROME: &str = "Connection: keep-alive\r\n\
    sec-ch-ua: \"Chromium\";v=\"142\", \"Google Chrome\";v=\"142\", \"Not_A Brand\";v=\"99\"\r\n\
    sec-ch-ua-mobile: ?0\r\nsec-ch-ua-platform: \"Linux\"\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
    Chrome/142.0.0.0 Safari/537.36\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
    Accept-Language: en-US,en;q=0.9\r\n";
const FIREFOX: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 \
    Firefox/145.0\r\nAccept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
    Connection: keep-alive\r\n";
/// Safari before version 16.4 sends no `Sec-Fetch` headers. Chrome sends none over plain HTTP to an
/// address of another machine.
const OLD_SAFARI: &str = "User-Agent: Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) \
    AppleWebKit/605.1.15 (KHTML, like Gecko) Version/15.6 Safari/605.1.15\r\n\
    Accept-Language: en-us\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n";

/// The headers that a browser adds for a page of `https://evil.example`: for an image, a link, a
/// form and a script.
const IMAGE: &str = "Accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8\r\n\
    Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n\
    Sec-Fetch-Storage-Access: none\r\nReferer: https://evil.example/\r\n";
const SILENT_IMAGE: &str = "Accept: image/avif,image/webp,*/*;q=0.8\r\nSec-Fetch-Site: cross-site\r\n\
    Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n";
const LINK: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Upgrade-Insecure-Requests: 1\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n\
    Sec-Fetch-User: ?1\r\nSec-Fetch-Dest: document\r\nReferer: https://evil.example/\r\n";
const FORM: &str = "Origin: https://evil.example\r\nCache-Control: max-age=0\r\n\
    Content-Type: application/x-www-form-urlencoded\r\nUpgrade-Insecure-Requests: 1\r\n\
    Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n\
    Referer: https://evil.example/\r\n";
const NO_CORS: &str = "Origin: https://evil.example\r\nContent-Type: text/plain;charset=UTF-8\r\n\
    Accept: */*\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: empty\r\n\
    Referer: https://evil.example/\r\n";
const SANDBOXED: &str = "Origin: null\r\nContent-Type: text/plain;charset=UTF-8\r\nAccept: */*\r\n\
    Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: empty\r\n";
/// Another service on this machine, at another port.
const NEIGHBOUR: &str = "Origin: http://localhost:3000\r\nContent-Type: text/plain;charset=UTF-8\r\n\
    Accept: */*\r\nSec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: empty\r\n\
    Referer: http://localhost:3000/\r\n";
const PREFLIGHT: &str = "Origin: https://evil.example\r\nAccept: */*\r\n\
    Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n\
    Access-Control-Request-Private-Network: true\r\nSec-Fetch-Site: cross-site\r\n\
    Sec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n";
/// A page whose domain name now leads to this machine. For the browser everything has one origin.
const REBOUND: &str = "Accept: */*\r\nContent-Type: application/json\r\nSec-Fetch-Site: same-origin\r\n\
    Sec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n";
/// The headers of browsers that do not name the site.
const OLD_IMAGE: &str = "Accept: image/webp,image/png,image/svg+xml,image/*;q=0.8\r\n\
    Referer: https://evil.example/\r\n";
const OLD_SILENT_IMAGE: &str = "Accept: image/webp,image/png,image/svg+xml,image/*;q=0.8\r\n";
const OLD_POST: &str = "Origin: https://evil.example\r\nContent-Type: text/plain;charset=UTF-8\r\n\
    Accept: */*\r\nReferer: https://evil.example/\r\n";

/// All requests that change something, with bodies that would succeed.
const CHANGES: [(&str, &str, &str); 6] = [
    ("GET", "/opreturn/first/rotate", ""),
    ("POST", "/opreturn/first/rotate", ""),
    ("POST", "/api/v1/invoices", r#"{"satoshis":1}"#),
    ("POST", "/api/v1/users", r#"{"name":"Eve"}"#),
    ("POST", "/api/v1/pay", r#"{"payToURL":"http://evil.example/1"}"#),
    ("DELETE", "/api/v1/invoices/ID", ""),
];

#[test]
fn requests_of_browsers_for_foreign_pages_change_nothing() {
    let guarded = Guarded::start_with(serde_json::json!({}));
    let Guarded { site, server } = &guarded;
    let invoice = site.cli_json(&["invoice", "create", "--satoshis", "1"]);
    let id = invoice["id"].as_str().unwrap();
    let before = state(site, server, id);
    let rebound = |agent| format!("Host: evil.example:9002\r\n{agent}{REBOUND}");
    let local = |agent: &str, rest: &str| format!("Host: LOCAL\r\n{agent}{rest}");
    let mut heads: Vec<String> = vec![rebound(CHROME), rebound(FIREFOX), rebound(OLD_SAFARI)];
    for agent in [CHROME, FIREFOX] {
        for rest in [IMAGE, SILENT_IMAGE, LINK, FORM, NO_CORS, SANDBOXED, NEIGHBOUR, PREFLIGHT] {
            heads.push(local(agent, rest));
        }
    }
    heads.extend([OLD_IMAGE, OLD_POST].map(|rest| local(OLD_SAFARI, rest)));
    for head in heads {
        for (method, path, body) in CHANGES.into_iter().chain([("OPTIONS", "/coinbase2", "")]) {
            let reply = send(server, &head, method, &path.replace("ID", id), body);
            assert_eq!(reply.status, 403, "{method} {path}\n{head}{}", reply.body);
            assert_eq!(reply.header("access-control-allow-origin"), None);
        }
    }
    // Somebody clicks on a link in a mail, or types the address.
    let typed = "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
    for (method, path, body) in CHANGES {
        let reply = send(server, &local(CHROME, typed), method, &path.replace("ID", id), body);
        assert_eq!(reply.status, 403, "{method} {path}: {}", reply.body);
    }
    // The changing requests that such a page can send with GET.
    let head = local(OLD_SAFARI, OLD_SILENT_IMAGE);
    for path in ["/opreturn/first/rotate", &format!("/opreturn/first/5/{}", "00".repeat(32))] {
        let reply = send(server, &head, "GET", path, "");
        assert_eq!(reply.status, 403, "{}", reply.body);
    }
    assert_eq!(state(site, server, id), before);
    // Programs may send them.
    let head = local("", "User-Agent: curl/8.14.1\r\nAccept: */*\r\n");
    let reply = send(server, &head, "GET", "/opreturn/first/rotate", "");
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_ne!(state(site, server, id), before);
}

#[test]
fn a_form_in_a_browser_pays_nothing() {
    let guarded = Guarded::start_with(serde_json::json!({}));
    let payments = guarded.server.payments();
    let path = "/api/v1/payment/AAAAAAAAAAAA";
    let json = ("Content-Type", "application/json");
    let reply = payments.send("POST", path, &[json], b"{}");
    assert_eq!(reply.status, 400, "{}", reply.body);
    let reply = payments.send("POST", path, &[json, ("Sec-Fetch-Mode", "navigate")], b"{}");
    assert_eq!(reply.status, 403, "{}", reply.body);
}

fn send(server: &Server, head: &str, method: &str, path: &str, body: &str) -> bsv_tests::Reply {
    let address = match path.starts_with("/api/") {
        true => server.wallet().address(),
        false => server.address(),
    };
    let head = head.replace("LOCAL", address).replace("Connection: keep-alive\r\n", "");
    let request = format!(
        "{method} {path} HTTP/1.1\r\n{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    http::exchange(address, request.as_bytes(), method).unwrap()
}

fn state(site: &Site, server: &Server, id: &str) -> (Value, String, String, u16) {
    let wallet = server.wallet();
    (
        site.cli_json(&["miner", "list"]),
        wallet.get("/api/v1/invoices").body,
        wallet.get(&format!("/api/v1/invoices/{id}")).body,
        wallet.get("/api/v1/users/1").status,
    )
}
