use std::thread::sleep;
use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_tests::Reply;

use crate::Guarded;
use crate::guarded::create;

const HASH: &str = "70f5701644897c92b60e98dbbfe72e1cfd7a2728c6fa3a29c4b4f6e986b0ccaa";
const COINBASE2: &str = r#"{"blockHeight":1000,"alias":"first","coinbase2":"ffffffff0100f2052a010000001976a9145deb9155942e7d38febc15de8870222fd24d080e88ac00000000"}"#;

/// A request, the scope that it needs, and its status with that.
struct Route {
    method: &'static str,
    path: String,
    body: &'static str,
    scope: &'static str,
    status: u16,
}

const SCOPES: [&str; 6] =
    ["wallet:read", "wallet:write", "wallet:pay", "minerid:read", "minerid:sign", "minerid:rotate"];

/// All routes of the two listeners, those that change nothing first.
fn routes() -> Vec<Route> {
    let route = |method, path: &str, body, scope, status| Route {
        method,
        path: path.to_owned(),
        body,
        scope,
        status,
    };
    let invoice = r#"{"satoshis":1}"#;
    let pay = r#"{"payToURL":"ftp://127.0.0.1/1"}"#;
    let mut routes = vec![
        route("GET", "/api/v1/invoices", "", "wallet:read", 200),
        route("HEAD", "/api/v1/invoices", "", "wallet:read", 200),
        route("GET", "/api/v1/invoices/000000000000", "", "wallet:read", 404),
        route("GET", "/api/v1/invoices/000000000000/payments", "", "wallet:read", 404),
        route("GET", "/api/v1/users/1", "", "wallet:read", 404),
        route("GET", "/api/v1/balance", "", "wallet:read", 200),
        route("DELETE", "/api/v1/invoices/000000000000", "", "wallet:write", 404),
        route("POST", "/api/v1/pay", pay, "wallet:pay", 400),
        route("POST", "/api/v1/invoices", invoice, "wallet:write", 201),
        route("POST", "/api/v1/users", r#"{"name":"Ada"}"#, "wallet:write", 201),
        route("GET", "/minerid/first", "", "minerid:read", 200),
        route("HEAD", "/minerid/first", "", "minerid:read", 200),
        route("GET", "/minerid/%66irst", "", "minerid:read", 200),
        route("GET", "/opreturn/first/1000", "", "minerid:read", 200),
        route("GET", "/opreturn/first/1000/", "", "minerid:read", 200),
        route("GET", "/opreturn/first/isvalid", "", "minerid:read", 200),
        // The identity is of the older generation, which has no such data.
        route("GET", &format!("/opreturn/first/1000/{HASH}"), "", "minerid:read", 422),
        route("GET", "/datarefs/first/opreturns", "", "minerid:read", 200),
        route("POST", "/coinbase2", COINBASE2, "minerid:read", 200),
        route("GET", "/opreturn/first/rotate", "", "minerid:rotate", 200),
        route("POST", "/opreturn/first/rotate", "", "minerid:rotate", 200),
    ];
    for name in ["sign", "pksign"] {
        let path = format!("/minerid/first/{name}/{HASH}");
        routes.push(route("GET", &path, "", "minerid:sign", 200));
        routes.push(route("HEAD", &path, "", "minerid:sign", 200));
    }
    routes
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
fn every_route_asks_for_its_scope() {
    let guarded = Guarded::start();
    let in_a_second = Timestamp::of_system().after(Duration::from_millis(1500)).to_string();
    let all = SCOPES.as_slice();
    let (expired, _) = create(&guarded.site, all, Some(&in_a_second));
    let (revoked, id) = create(&guarded.site, all, None);
    guarded.site.cli_ok(&["token", "revoke", &id]);
    let token = guarded.token(all);
    let wrong_secret = format!("{}{}", &token[..token.len() - 4], "0000");
    let unknown = token.replace(&token[4..12], "00000000");
    // One token for each scope alone, and one for all other scopes.
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
    let (of_first, of_other) = (of_alias("first"), of_alias("rot"));
    sleep(Duration::from_secs(2));

    let before = state(&guarded, &token);
    for route in &routes() {
        let Route { method, path, body, scope, .. } = route;
        let send = |token: Option<&str>| guarded.send(method, path, body, token);
        check_denied(&send(None), route, 401, "Bearer", "a token is missing");
        let bad = [&wrong_secret, &unknown, &revoked, "", "bsv_", "x", "a.b.c", &token[..70]];
        for bad in bad {
            let challenge = "Bearer error=\"invalid_token\"";
            check_denied(&send(Some(bad)), route, 401, challenge, "not one that is accepted");
        }
        let challenge = "Bearer error=\"invalid_token\"";
        check_denied(&send(Some(&expired)), route, 401, challenge, "the token has expired");
        let number = SCOPES.iter().position(|known| known == scope).unwrap();
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
        let lacks = format!("lacks the scope {scope}");
        check_denied(&send(Some(&but[number])), route, 403, &challenge, &lacks);
        if scope.starts_with("minerid") {
            let lacks = format!("{lacks} for alias \"first\"");
            check_denied(&send(Some(&of_other[number])), route, 403, &challenge, &lacks);
        }
    }
    assert_eq!(state(&guarded, &token), before, "a request that was refused changed something");

    for route in &routes() {
        let Route { method, path, body, scope, status } = route;
        let number = SCOPES.iter().position(|known| known == scope).unwrap();
        let mut right = vec![&token, &only[number]];
        if scope.starts_with("minerid") {
            right.push(&of_first[number]);
        }
        for token in right {
            let reply = guarded.send(method, path, body, Some(token));
            assert_eq!(reply.status, *status, "{method} {path}: {}", reply.body);
        }
    }
    assert_ne!(state(&guarded, &token), before);
}

/// What the requests of the table change.
fn state(guarded: &Guarded, token: &str) -> Vec<String> {
    ["/minerid/first", "/api/v1/invoices", "/api/v1/users/1"]
        .map(|path| guarded.send("GET", path, "", Some(token)).body)
        .to_vec()
}

#[test]
fn an_alias_that_no_body_names_is_nobodys() {
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
        assert_eq!(reply.status, 403, "{body}: {}", reply.body);
    }
    let escaped = COINBASE2.replace("first", "\\u0066irst");
    let reply = guarded.send("POST", "/coinbase2", &escaped, Some(&token));
    assert_eq!(reply.status, 200, "{}", reply.body);
    let escaped = COINBASE2.replace("first", "r\\u006ft");
    assert_eq!(guarded.send("POST", "/coinbase2", &escaped, Some(&token)).status, 403);
}

#[test]
fn who_has_a_token_is_told_what_is_there() {
    let guarded = Guarded::start();
    let token = guarded.token(&["wallet:read", "minerid:read"]);
    for path in ["/nowhere", "/api/v1/nowhere"] {
        assert_eq!(guarded.send("GET", path, "", None).status, 401, "{path}");
        assert_eq!(guarded.send("GET", path, "", Some(&token)).status, 404, "{path}");
    }
    assert_eq!(guarded.send("PUT", "/minerid/first", "", Some(&token)).status, 405);
    // The name of the scheme is as good in any case, and there is one token.
    let balance = |headers: &[(&str, &str)]| {
        guarded.server.wallet().send("GET", "/api/v1/balance", headers, b"").status
    };
    let [lower, basic] = ["bearer", "Basic"].map(|scheme| format!("{scheme} {token}"));
    assert_eq!(balance(&[("Authorization", &lower)]), 200);
    assert_eq!(balance(&[("Authorization", &basic)]), 401);
    assert_eq!(balance(&[("Authorization", &token)]), 401);
    assert_eq!(balance(&[("Authorization", &lower), ("Authorization", &lower)]), 401);
    // A token does not make a foreign page a friend.
    assert_eq!(balance(&[("Authorization", &lower), ("Origin", "http://evil.example")]), 403);
}

#[test]
fn payers_and_the_command_line_need_no_token() {
    let guarded = Guarded::start();
    assert_eq!(guarded.site.cli_ok(&["balance"]), "0 satoshis");
    let invoice = guarded.site.cli_json(&["invoice", "create", "--satoshis", "5"]);
    let path = format!("/api/v1/payment/{}", invoice["id"].as_str().unwrap());
    assert_eq!(guarded.server.payments().get(&path).status, 200);
    guarded.site.cli_ok(&["rotateminerid", "--name", "first"]);
}
