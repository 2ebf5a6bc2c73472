use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_server::Api;
use bsv_tests::openapi::Description;
use bsv_tests::{Client, Reply, Site};
use serde_json::json;

use crate::access::Guarded;
use crate::access::guarded::create;

const HASH: &str = "70f5701644897c92b60e98dbbfe72e1cfd7a2728c6fa3a29c4b4f6e986b0ccaa";
const COINBASE2: &str = r#"{"blockHeight":1000,"alias":"first","coinbase2":"ffffffff0100f2052a010000001976a9145deb9155942e7d38febc15de8870222fd24d080e88ac00000000"}"#;

const COINBASE2_1_0: &str = r#"{"alias":"modern","minerInfoTxId":"70f5701644897c92b60e98dbbfe72e1cfd7a2728c6fa3a29c4b4f6e986b0ccaa","prevhash":"70f5701644897c92b60e98dbbfe72e1cfd7a2728c6fa3a29c4b4f6e986b0ccaa","merkleProof":[],"coinbase2":"ffffffff0100f2052a010000001976a9145deb9155942e7d38febc15de8870222fd24d080e88ac00000000"}"#;
const DATA: &str = r#"{"dataRefs":{"refs":[{"brfcIds":["62b21572ca46"],"data":{"62b21572ca46":{"alpha":1}},"vout":0}]}}"#;

/// A request, the scope that it needs, and its status with that scope.
#[derive(Clone)]
struct Route {
    method: &'static str,
    path: String,
    body: &'static str,
    scope: &'static str,
    status: u16,
}

const SCOPES: [&str; 9] = [
    "wallet:read",
    "wallet:write",
    "wallet:mark",
    "wallet:pay",
    "wallet:webhooks",
    "minerid:read",
    "minerid:sign",
    "minerid:rotate",
    "metrics:read",
];
const PAY: &str = r#"{"payToURL":"ftp://127.0.0.1/1"}"#;
const MARK: &str = r#"{"state":"paid"}"#;
const WEBHOOK: &str = r#"{"url":"https://shop.example/hook"}"#;
const REPLAY: &str = r#"{"after":0}"#;
const NO_WEBHOOK: &str = "/api/v1/webhooks/0000000000000000";

/// All routes of the two listeners. Those that change nothing come first.
fn routes() -> Vec<Route> {
    let with_hash = |path: &str| format!("{path}/{HASH}");
    let [sign, pksign] =
        ["sign", "pksign"].map(|name| with_hash(&format!("/minerid/first/{name}")));
    let [data_of_first, data] =
        ["first", "modern"].map(|it| with_hash(&format!("/opreturn/{it}/9")));
    let [secret, test, deliveries, delivery, redeliver, replay] =
        ["secret", "test", "deliveries", "deliveries/1", "deliveries/1/redeliver", "replay"]
            .map(|below| format!("{NO_WEBHOOK}/{below}"));
    let rows = [
        ("GET", "/api/v1/invoices", "", "wallet:read", 200),
        ("GET", "/api/v1/invoices/000000000000", "", "wallet:read", 404),
        ("GET", "/api/v1/invoices/000000000000/payments", "", "wallet:read", 404),
        ("GET", "/api/v1/invoices/000000000000/settlement", "", "wallet:read", 404),
        ("GET", "/api/v1/invoices/000000000000/checkout", "", "wallet:read", 404),
        ("POST", "/api/v1/invoices/000000000000/mark", MARK, "wallet:mark", 404),
        ("GET", "/api/v1/outgoing", "", "wallet:read", 200),
        ("GET", "/api/v1/outgoing/1", "", "wallet:read", 404),
        ("GET", "/api/v1/withdrawals", "", "wallet:read", 200),
        ("GET", "/api/v1/withdrawals/1", "", "wallet:read", 404),
        ("GET", "/api/v1/users/1", "", "wallet:read", 404),
        ("GET", "/api/v1/balance", "", "wallet:read", 200),
        ("GET", "/api/v1/balance/details", "", "wallet:read", 200),
        ("GET", "/api/v1/receipts?unassigned=true", "", "wallet:read", 200),
        ("GET", "/api/v1/export", "", "wallet:read", 200),
        ("GET", "/api/v1/events?types=invoice.*", "", "wallet:read", 200),
        ("GET", "/api/v1/events/stream?after=x", "", "wallet:read", 400),
        ("DELETE", "/api/v1/invoices/000000000000", "", "wallet:write", 404),
        ("POST", "/api/v1/pay", PAY, "wallet:pay", 400),
        ("GET", "/api/v1/outgoing/1/beef", "", "wallet:read", 404),
        ("POST", "/api/v1/outgoing/1/cancel", "{}", "wallet:pay", 404),
        ("POST", "/api/v1/withdrawals", "{}", "wallet:pay", 400),
        ("POST", "/api/v1/invoices/000000000000/refund", "{}", "wallet:pay", 404),
        ("GET", "/api/v1/webhooks", "", "wallet:webhooks", 200),
        ("GET", NO_WEBHOOK, "", "wallet:webhooks", 404),
        ("PATCH", NO_WEBHOOK, "{}", "wallet:webhooks", 404),
        ("DELETE", NO_WEBHOOK, "", "wallet:webhooks", 404),
        ("POST", &secret, "{}", "wallet:webhooks", 404),
        ("POST", &test, "{}", "wallet:webhooks", 404),
        ("GET", &deliveries, "", "wallet:webhooks", 404),
        ("GET", &delivery, "", "wallet:webhooks", 404),
        ("POST", &redeliver, "{}", "wallet:webhooks", 404),
        ("POST", &replay, REPLAY, "wallet:webhooks", 404),
        ("GET", "/metrics", "", "metrics:read", 200),
        ("GET", "/minerid/first", "", "minerid:read", 200),
        ("GET", "/minerid/%66irst", "", "minerid:read", 200),
        ("GET", "/opreturn/first/1000", "", "minerid:read", 200),
        ("GET", "/opreturn/first/1000/", "", "minerid:read", 200),
        ("GET", "/opreturn/modern/1000", "", "minerid:read", 200),
        ("GET", "/opreturn/first/isvalid", "", "minerid:read", 200),
        ("GET", "/datarefs/modern/opreturns", "", "minerid:read", 200),
        ("POST", "/coinbase2", COINBASE2, "minerid:read", 200),
        ("POST", "/coinbase2", COINBASE2_1_0, "minerid:read", 200),
        ("GET", &sign, "", "minerid:sign", 200),
        ("GET", &pksign, "", "minerid:sign", 200),
        // The identity has the older generation, which has no such data.
        ("GET", &data_of_first, "", "minerid:rotate", 422),
        ("GET", &data, "", "minerid:rotate", 200),
        ("GET", "/opreturn/first/rotate", "", "minerid:rotate", 200),
        ("POST", "/opreturn/first/rotate", "", "minerid:rotate", 200),
        ("POST", "/api/v1/invoices", r#"{"satoshis":1}"#, "wallet:write", 201),
        ("POST", "/api/v1/users", r#"{"name":"Ada"}"#, "wallet:write", 201),
        ("POST", "/api/v1/webhooks", WEBHOOK, "wallet:webhooks", 201),
    ];
    let rows = rows.into_iter().flat_map(|(method, path, body, scope, status)| {
        let route = Route { method, path: path.to_owned(), body, scope, status };
        // HEAD works where GET works, unless that would change something.
        let has_head = method == "GET" && !path.ends_with("rotate");
        let head = has_head.then(|| Route { method: "HEAD", ..route.clone() });
        [Some(route), head].into_iter().flatten()
    });
    rows.collect()
}

impl Route {
    fn alias(&self) -> &'static str {
        match (self.path.as_str(), self.body) {
            (_, COINBASE2_1_0) => "modern",
            (path, _) if path.contains("/modern") => "modern",
            _ => "first",
        }
    }
}

/// A server that demands tokens. Its identity of generation 1.0 has data.
fn start() -> Guarded {
    let guarded = Guarded::start();
    guarded.site.cli_ok(&["generateminerid", "--name", "modern", "--protocol", "1.0"]);
    let file = guarded.site.data_dir().join("data.json");
    fs::write(&file, DATA).unwrap();
    guarded.site.cli_ok(&["miner", "data-refs", "--name", "modern", file.to_str().unwrap()]);
    guarded
}

/// Whether a path matches a pattern such as `/minerid/{alias}`. The query does not matter.
fn fits(pattern: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let (pattern, path): (Vec<_>, Vec<_>) =
        (pattern.split('/').collect(), path.split('/').collect());
    let mut pairs = pattern.iter().zip(&path);
    pattern.len() == path.len() && pairs.all(|(part, given)| part.starts_with('{') || part == given)
}

/// The pattern of a path. If several fit, the one with the most fixed parts counts.
fn pattern_of<'p>(patterns: &[&'p str], path: &str) -> Option<&'p str> {
    let fitting = patterns.iter().filter(|pattern| fits(pattern, path));
    fitting.min_by_key(|pattern| pattern.matches('{').count()).copied()
}

/// Checks that `asked` names every method of every path that the listener answers.
fn check_complete(api: Api, client: &Client, token: &str, asked: &[(&'static str, String)]) {
    let patterns = bsv_server::patterns(api);
    let authorization = format!("Bearer {token}");
    for pattern in &patterns {
        let path = pattern.replace(['{', '}'], "");
        let reply = client.send("PUT", &path, &[("Authorization", authorization.as_str())], b"");
        assert_eq!(reply.status, 405, "{pattern}: {}", reply.body);
        let allowed = reply.header("allow").unwrap();
        let (methods, options) = allowed.rsplit_once(", ").unwrap();
        assert_eq!(options, "OPTIONS", "{pattern}: {allowed}");
        let headers = [("Authorization", authorization.as_str())];
        let reply = client.send("OPTIONS", &path, &headers, b"");
        assert_eq!((reply.status, reply.header("allow")), (204, Some(allowed)), "{pattern}");
        for allowed in methods.split(", ") {
            let is_asked = |(method, path): &(&str, String)| {
                *method == allowed && pattern_of(&patterns, path) == Some(pattern)
            };
            assert!(asked.iter().any(is_asked), "the table lacks {allowed} {pattern}");
        }
    }
}

/// The routes that are open to everybody, on listeners whose description is at this path.
fn open_to_all(description: &str) -> Vec<(&'static str, String)> {
    let paths = ["/healthz", "/readyz", description];
    paths.iter().flat_map(|path| [("GET", path.to_string()), ("HEAD", path.to_string())]).collect()
}

#[test]
fn the_table_names_every_route() {
    let guarded = start();
    let token = guarded.token(&SCOPES);
    let of_owner: Vec<_> = routes().into_iter().map(|route| (route.method, route.path)).collect();
    let of_payers: Vec<_> =
        payers_routes().into_iter().map(|(method, path, ..)| (method, path.to_owned())).collect();
    let minerid = guarded.minerid();
    for (api, client, routes, description) in [
        (Api::Wallet, guarded.server.wallet(), &of_owner, "/api/v1/openapi.json"),
        (Api::MinerId, &minerid, &of_owner, "/openapi.json"),
        (Api::Payments, guarded.server.payments(), &of_payers, "/openapi.json"),
    ] {
        let open_to_all = open_to_all(description);
        for (method, path) in &open_to_all {
            assert_eq!(client.send(method, path, &[], b"").status, 200, "{method} {path}");
        }
        check_complete(api, client, &token, &[routes.as_slice(), &open_to_all].concat());
    }
}

#[test]
fn the_descriptions_name_the_scopes_of_the_table() {
    for (api, listener) in [(Api::Wallet, "wallet"), (Api::MinerId, "minerid")] {
        let patterns = bsv_server::patterns(api);
        let paths = &Description::of(listener).document()["paths"];
        for Route { method, path, scope, .. } in routes() {
            let path = path.strip_suffix('/').unwrap_or(&path);
            let Some(pattern) = pattern_of(&patterns, path) else { continue };
            let security = &paths[pattern][method.to_lowercase()]["security"];
            assert_eq!(*security, json!([{"token": [scope]}]), "{method} {pattern}");
        }
    }
}

#[test]
fn the_control_socket_reports_what_its_routes_accept() {
    let site = Site::new();
    let server = site.server();
    let ask = |request: &str| {
        let mut stream = UnixStream::connect(site.network_dir().join("control.sock")).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    for (request, status, allow) in [
        ("PUT /control/backup", "405", "GET, POST, OPTIONS"),
        ("DELETE /control/minerids", "405", "GET, POST, OPTIONS"),
        ("PUT /control/minerids/pool/rotate", "405", "POST, OPTIONS"),
        ("OPTIONS /control/tokens/00000000", "204", "DELETE, OPTIONS"),
    ] {
        let answer = ask(request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert!(answer.contains(&format!("allow: {allow}\r\n")), "{request}: {answer}");
    }
    assert!(ask("GET /control/nothing").starts_with("HTTP/1.1 404 "));
    drop(server);
}

const BODY: &[u8] = br#"{"read":true}"#;

/// The requests that payers may send, and the status without a token and with any token.
fn payers_routes() -> [(&'static str, &'static str, u16, u16); 23] {
    [
        ("GET", "/dpp/api/v1/payment/000000000000", 404, 404),
        ("HEAD", "/dpp/api/v1/payment/000000000000", 404, 404),
        ("POST", "/dpp/api/v1/payment/000000000000", 400, 400),
        ("GET", "/api/v1/payment/000000000000", 404, 404),
        ("HEAD", "/api/v1/payment/000000000000", 404, 404),
        ("POST", "/api/v1/payment/000000000000", 400, 400),
        ("POST", "/pay/000000000000/transaction", 400, 400),
        ("GET", "/pay/000000000000", 404, 404),
        ("HEAD", "/pay/000000000000", 404, 404),
        ("GET", "/pay/000000000000/", 308, 308),
        ("HEAD", "/pay/000000000000/", 308, 308),
        ("GET", "/pay/000000000000/state", 404, 404),
        ("HEAD", "/pay/000000000000/state", 404, 404),
        ("GET", "/pay/000000000000/stream", 404, 404),
        ("HEAD", "/pay/000000000000/stream", 404, 404),
        ("GET", "/pay/000000000000/qr.svg", 404, 404),
        ("HEAD", "/pay/000000000000/qr.svg", 404, 404),
        ("GET", "/pay/assets/x.js", 404, 404),
        ("HEAD", "/pay/assets/x.js", 404, 404),
        // Callbacks and channels have tokens of their own.
        ("POST", "/network/callback", 401, 401),
        ("GET", "/api/v1/channel/x", 401, 404),
        ("HEAD", "/api/v1/channel/x", 401, 404),
        ("POST", "/api/v1/channel/x/1", 401, 404),
    ]
}

#[test]
fn tokens_of_the_owner_open_no_further_routes_to_payers() {
    let guarded = start();
    let soon = Timestamp::of_system().after(Duration::from_millis(1500)).to_string();
    let (expired, _) = create(&guarded.site, &SCOPES, Some(&soon));
    let all = guarded.token(&SCOPES);
    let tokens = ["bsv_".to_owned(), expired, guarded.token(&["minerid:read:rot"]), all];
    sleep(Duration::from_secs(2));
    let payments = guarded.server.payments();
    for (method, path, without, with) in payers_routes() {
        let json = ("Content-Type", "application/json");
        let reply = payments.send(method, path, &[json], BODY);
        assert_eq!(reply.status, without, "{method} {path}: {}", reply.body);
        for token in &tokens {
            let authorization = format!("Bearer {token}");
            let headers = [json, ("Authorization", authorization.as_str())];
            let reply = payments.send(method, path, &headers, BODY);
            assert_eq!(reply.status, with, "{method} {path}: {}", reply.body);
        }
    }
}

/// Checks the status, form and challenge of a refusal, and that it says `what`.
fn check_denied(reply: &Reply, route: &Route, status: u16, challenge: &str, what: &str) {
    let Route { method, path, .. } = route;
    assert_eq!(reply.status, status, "{method} {path}: {}", reply.body);
    assert_eq!(reply.header("www-authenticate"), Some(challenge), "{method} {path}");
    let is_wallet = path.starts_with("/api/");
    let form = if is_wallet { "application/problem+json" } else { "text/plain; charset=utf-8" };
    assert_eq!(reply.header("content-type"), Some(form), "{method} {path}");
    if *method != "HEAD" {
        assert!(reply.body.contains(what), "{method} {path}: {}", reply.body);
    }
}

#[test]
fn every_route_requires_its_scope() {
    let guarded = start();
    let in_a_second = Timestamp::of_system().after(Duration::from_millis(1500)).to_string();
    let all = SCOPES.as_slice();
    let (expired, _) = create(&guarded.site, all, Some(&in_a_second));
    let (revoked, id) = create(&guarded.site, all, None);
    guarded.site.cli_ok(&["token", "revoke", "--yes", &id]);
    let token = guarded.token(all);
    let wrong_secret = format!("{}{}", &token[..token.len() - 4], "0000");
    let unknown = token.replace(&token[4..12], "00000000");
    // For each scope, there is one token with only this scope and one with all others.
    let only = SCOPES.map(|scope| guarded.token(&[scope]));
    let but = SCOPES.map(|scope| {
        let others: Vec<_> = SCOPES.iter().copied().filter(|other| *other != scope).collect();
        guarded.token(&others)
    });
    let of_alias = |alias: &str| {
        SCOPES.map(|scope| match scope.starts_with("minerid") {
            true => guarded.token(&[&format!("{scope}:{alias}")]),
            false => String::new(),
        })
    };
    let [of_first, of_modern, of_other] = ["first", "modern", "rot"].map(of_alias);
    sleep(Duration::from_secs(2));

    let before = state(&guarded, &token);
    for route in &routes() {
        let Route { method, path, body, scope, .. } = route;
        let send = |token: Option<&str>| guarded.send(method, path, body, token);
        check_denied(&send(None), route, 401, "Bearer realm=\"bsv-server\"", "a token is missing");
        let bad = [&wrong_secret, &unknown, &revoked, "", "bsv_", "x", "a.b.c", &token[..70]];
        for bad in bad {
            let challenge = "Bearer realm=\"bsv-server\", error=\"invalid_token\"";
            // A token that is not ours may belong to the older generator, whose callers expect a
            // 403.
            let is_ours = bad.starts_with("bsv_") || bad.is_empty();
            let status = if is_ours || path.starts_with("/api/") { 401 } else { 403 };
            check_denied(&send(Some(bad)), route, status, challenge, "not one that is accepted");
        }
        let challenge = "Bearer realm=\"bsv-server\", error=\"invalid_token\"";
        check_denied(&send(Some(&expired)), route, 401, challenge, "the token has expired");
        let number = SCOPES.iter().position(|known| known == scope).unwrap();
        let challenge =
            format!("Bearer realm=\"bsv-server\", error=\"insufficient_scope\", scope=\"{scope}\"");
        let lacks = format!("lacks the scope {scope}");
        check_denied(&send(Some(&but[number])), route, 403, &challenge, &lacks);
        if scope.starts_with("minerid") {
            let lacks = format!("{lacks} for alias \"{}\"", route.alias());
            check_denied(&send(Some(&of_other[number])), route, 403, &challenge, &lacks);
        }
    }
    assert_eq!(state(&guarded, &token), before, "a request that was refused changed something");

    for route in &routes() {
        let Route { method, path, body, scope, status } = route;
        let number = SCOPES.iter().position(|known| known == scope).unwrap();
        let mut right = vec![&token, &only[number]];
        if scope.starts_with("minerid") {
            right.push(match route.alias() {
                "modern" => &of_modern[number],
                _ => &of_first[number],
            });
        }
        for token in right {
            let reply = guarded.send(method, path, body, Some(token));
            assert_eq!(reply.status, *status, "{method} {path}: {}", reply.body);
        }
    }
    let changed = state(&guarded, &token);
    assert!(changed.iter().zip(&before).all(|(after, before)| after != before), "{changed:?}");
}

/// The state that the requests of the table change.
fn state(guarded: &Guarded, token: &str) -> Vec<String> {
    let told = [
        "/minerid/first",
        "/opreturn/modern/7",
        "/api/v1/invoices",
        "/api/v1/users/1",
        "/api/v1/webhooks",
    ];
    told.map(|path| guarded.send("GET", path, "", Some(token)).body).to_vec()
}

#[test]
fn metrics_of_the_wallet_require_their_scope_and_payers_get_none() {
    let guarded = start();
    let [reading, all_else] =
        [&SCOPES[8..], &SCOPES[..8]].map(|scopes| format!("Bearer {}", guarded.token(scopes)));
    let ask = |client: &Client, headers: &[(&str, &str)]| {
        client.send("GET", "/metrics", headers, b"").status
    };
    let wallet = guarded.server.wallet();
    assert_eq!(ask(wallet, &[]), 401);
    assert_eq!(ask(wallet, &[("Authorization", &all_else)]), 403);
    assert_eq!(ask(wallet, &[("Authorization", &reading)]), 200);
    let payments = guarded.server.payments();
    assert_eq!(ask(payments, &[]), 404);
    assert_eq!(ask(payments, &[("Authorization", &reading)]), 404);
    let balance = [("Authorization", reading.as_str())];
    assert_eq!(wallet.send("GET", "/api/v1/balance", &balance, b"").status, 403);
}

#[test]
fn a_token_for_one_alias_needs_that_alias_once_in_the_body() {
    let guarded = Guarded::start();
    let token = guarded.token(&["minerid:read:first"]);
    for body in [
        "",
        "{}",
        "x",
        r#"{"alias":["first"]}"#,
        r#"{"alias":"first","alias":"rot"}"#,
        r#"{"alias":"rot","alias":"first"}"#,
        r#"[1000,"first"]"#,
    ] {
        let reply = guarded.send("POST", "/coinbase2", body, Some(&token));
        assert_eq!(reply.status, 400, "{body}: {}", reply.body);
    }
    let reply = guarded.send("GET", "/minerid/%ff", "", Some(&token));
    assert_eq!(reply.status, 400, "{}", reply.body);
    let no_text = COINBASE2.replace("\"first\"", "[\"first\"]");
    let reply = guarded.send("POST", "/coinbase2", &no_text, Some(&token));
    assert_eq!(reply.status, 422, "{}", reply.body);
    let escaped = COINBASE2.replace("first", "\\u0066irst");
    let reply = guarded.send("POST", "/coinbase2", &escaped, Some(&token));
    assert_eq!(reply.status, 200, "{}", reply.body);
    let escaped = COINBASE2.replace("first", "r\\u006ft");
    assert_eq!(guarded.send("POST", "/coinbase2", &escaped, Some(&token)).status, 403);
}

#[test]
fn with_a_token_unknown_paths_are_answered_as_unknown() {
    let guarded = Guarded::start();
    let token = guarded.token(&["wallet:read", "minerid:read"]);
    for path in ["/nowhere", "/api/v1/nowhere"] {
        assert_eq!(guarded.send("GET", path, "", None).status, 401, "{path}");
        assert_eq!(guarded.send("GET", path, "", Some(&token)).status, 404, "{path}");
    }
    assert_eq!(guarded.send("PUT", "/minerid/first", "", Some(&token)).status, 405);
    // The name of the scheme may have any case, and there must be one token.
    let balance = |headers: &[(&str, &str)]| {
        guarded.server.wallet().send("GET", "/api/v1/balance", headers, b"").status
    };
    let [lower, basic] = ["bearer", "Basic"].map(|scheme| format!("{scheme} {token}"));
    assert_eq!(balance(&[("Authorization", &lower)]), 200);
    assert_eq!(balance(&[("Authorization", &basic)]), 401);
    assert_eq!(balance(&[("Authorization", &token)]), 401);
    assert_eq!(balance(&[("Authorization", &lower), ("Authorization", &lower)]), 401);
    // A token does not make a foreign page trusted.
    assert_eq!(balance(&[("Authorization", &lower), ("Origin", "http://evil.example")]), 403);
}

#[test]
fn payers_and_the_command_line_need_no_token() {
    let guarded = Guarded::start();
    assert_eq!(guarded.site.cli_ok(&["wallet", "balance"]), "0 satoshis");
    let invoice = guarded.site.cli_json(&["invoice", "create", "--satoshis", "5"]);
    let path = format!("/api/v1/payment/{}", invoice["id"].as_str().unwrap());
    assert_eq!(guarded.server.payments().get(&path).status, 200);
    guarded.site.cli_ok(&["rotateminerid", "--name", "first"]);
}
