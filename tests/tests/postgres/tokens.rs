//! Tokens of servers whose wallet lies in a database.

use bsv_tests::till::wait_until;
use bsv_tests::{Site, Stream};
use serde_json::{Value, json};

use crate::postgres::SERVER;
use crate::postgres::server::{file_site, second_site, set_store, site};

fn demanding(mut site: Site) -> Site {
    site.set("auth", json!({ "requireToken": true }));
    site
}

fn create(site: &Site) -> Value {
    site.cli_json(&["token", "create", "--scope", "wallet:read", "--label", "till"])
}

/// What a request with a token is answered.
fn status(site: &Site, token: &Value) -> u16 {
    let server = site.server();
    let authorization = format!("Bearer {}", token["token"].as_str().unwrap());
    let headers = [("Authorization", authorization.as_str())];
    server.wallet().send("GET", "/api/v1/invoices", &headers, b"").status
}

#[test]
fn a_server_that_takes_over_accepts_the_tokens_of_the_first_one() {
    let url = SERVER.url("tokens");
    let first = demanding(site(&url));
    drop(first.server());
    let [kept, revoked] = [create(&first), create(&first)];
    first.cli_ok(&["token", "revoke", "--yes", revoked["id"].as_str().unwrap()]);
    assert!(!first.network_dir().join("tokens.json").exists());
    let second = demanding(second_site(&first, &url));
    assert_eq!(status(&second, &kept), 200);
    assert_eq!(status(&second, &revoked), 401);
    assert_eq!(status(&first, &kept), 200);
}

#[test]
fn a_token_that_one_server_revokes_ends_the_streams_of_another_one() {
    let url = SERVER.url("ended_streams");
    let first = demanding(site(&url));
    let server = first.server();
    let second = demanding(second_site(&first, &url));
    let other = second.server();
    let [kept, revoked] = [create(&first), create(&first)];
    let open = |token: &Value| {
        let token = token["token"].as_str().unwrap();
        wait_until("the other server knows the token", || {
            Stream::try_open_with(other.wallet(), token).is_ok()
        });
        Stream::try_open_with(other.wallet(), token).unwrap()
    };
    let [mut going_on, mut ended] = [open(&kept), open(&revoked)];
    first.cli_ok(&["token", "revoke", "--yes", revoked["id"].as_str().unwrap()]);
    ended.wait_for_end();
    let refused = Stream::try_open_with(other.wallet(), revoked["token"].as_str().unwrap());
    assert_eq!(refused.unwrap_err().status, 401);
    first.cli_ok(&["user", "create", "--name", "Ada"]);
    assert_eq!(going_on.event().1["type"], "user.created");
    drop(server);
}

#[test]
fn tokens_of_the_file_are_taken_over_into_the_database_and_back() {
    let url = SERVER.url("moved_tokens");
    let mut site = demanding(file_site());
    drop(site.server());
    let token = create(&site);
    site.cli_ok(&["store", "move", "--yes", "--to", &url]);
    set_store(&mut site, Some(&url));
    assert_eq!(status(&site, &token), 200);
    assert_eq!(SERVER.query("SELECT count(*) FROM moved_tokens.token"), "1");
    assert!(!site.network_dir().join("tokens.json").exists());
    let other = create(&site);
    site.cli_ok(&["store", "move", "--yes", "--to", "file"]);
    set_store(&mut site, None);
    for token in [&token, &other] {
        assert_eq!(status(&site, token), 200);
    }
}
