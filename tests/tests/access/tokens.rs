use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use bsv_tests::killer::Killer;
use bsv_tests::{Site, free_port};
use serde_json::{Value, json};

use crate::access::Guarded;
use crate::access::guarded::create;

#[test]
fn a_running_server_follows_changes_of_tokens_at_once() {
    let guarded = Guarded::start();
    let status = |token: &str| guarded.send("GET", "/api/v1/balance", "", Some(token)).status;
    for _ in 0..20 {
        let (token, id) = create(&guarded.site, &["wallet:read"], None);
        assert_eq!(status(&token), 200);
        guarded.site.cli_ok(&["token", "revoke", "--yes", &id]);
        assert_eq!(status(&token), 401);
    }
    // The full token also identifies it.
    let token = guarded.token(&["wallet:read"]);
    guarded.site.cli_ok(&["token", "revoke", "--yes", &token]);
    assert_eq!(status(&token), 401);
}

#[test]
fn tokens_are_made_and_revoked_with_a_server_and_without_one() {
    let mut site = Site::with(json!({"auth": {"requireToken": true}}));
    site.set_env("BSV_LOG", "off");
    let mut server = None;
    let mut tokens = Vec::new();
    for round in 0..4 {
        server = match server {
            None => Some(site.server()),
            Some(running) => {
                let running: bsv_tests::Server = running;
                assert_eq!(running.stop(), 0);
                None
            }
        };
        tokens.push(create(&site, &["wallet:read"], None));
        if round == 2 {
            let (_, id) = &tokens[0];
            assert_eq!(
                site.cli_ok(&["token", "revoke", "--yes", id]),
                format!("Token {id} is revoked")
            );
        }
    }
    let server = site.server();
    let statuses = tokens.iter().map(|(token, _)| {
        let authorization = format!("Bearer {token}");
        let headers = [("Authorization", authorization.as_str())];
        server.wallet().send("GET", "/api/v1/balance", &headers, b"").status
    });
    assert_eq!(statuses.collect::<Vec<_>>(), [401, 200, 200, 200]);
    let listed = site.cli_json(&["token", "list"]);
    let mut ids: Vec<_> = tokens[1..].iter().map(|(_, id)| id.as_str()).collect();
    ids.sort_unstable();
    let listed: Vec<_> = listed.as_array().unwrap().iter().map(|token| &token["id"]).collect();
    assert_eq!(listed, ids);
}

#[test]
fn a_token_is_shown_once_and_stored_as_a_hash() {
    let site = Site::new();
    site.cli_ok(&["init"]);
    let said = site.cli_ok(&[
        "token",
        "create",
        "--scope",
        "wallet:read",
        "--scope",
        "minerid:sign:pool",
        "--scope",
        "wallet:read",
        "--label",
        "the shop",
        "--expires-at",
        "2100-01-01T00:00:00Z",
    ]);
    let (token, rest) = said.split_once('\n').unwrap();
    let id = &token[4..12];
    assert_eq!(rest, format!("This is token {id}. It is not shown again."));
    assert_eq!(token.len(), 77);
    let secret = &token[13..];
    let path = site.network_dir().join("tokens.json");
    let stored = fs::read_to_string(&path).unwrap();
    assert!(!stored.contains(secret), "{stored}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let listed = site.cli_json(&["token", "list"]);
    assert_eq!(listed[0]["scopes"], json!(["wallet:read", "minerid:sign:pool"]));
    assert_eq!(listed[0]["expiresAt"], "2100-01-01T00:00:00.000000Z");
    for list in [listed.to_string(), site.cli_ok(&["token", "list"])] {
        assert!(list.contains("the shop") && list.contains(id), "{list}");
        assert!(!list.contains(secret), "{list}");
    }
}

#[test]
fn mistakes_are_named_and_make_nothing() {
    let site = Site::new();
    site.cli_ok(&["init"]);
    for (arguments, code, reason) in [
        (&["create"][..], 2, "--scope"),
        (&["create", "--scope", "wallet"], 2, "\"wallet\" is not a scope"),
        (&["create", "--scope", "wallet:read:a"], 2, "is not a scope"),
        (&["create", "--scope", "minerid:read:../x"], 2, "is not a scope"),
        (&["create", "--scope", "wallet:read", "--expires-at", "soon"], 2, "RFC 3339"),
        (
            &["create", "--scope", "wallet:read", "--expires-at", "2020-01-01T00:00:00Z"],
            1,
            "expiresAt must be in the future",
        ),
        (&["create", "--scope", "wallet:read", "--label", "a\nb"], 1, "no control characters"),
        (&["revoke", "--yes", "1234abcd"], 1, "there is no token 1234abcd"),
        (&["revoke", "x"], 2, "expected 8 hexadecimal digits"),
    ] {
        let done = site.cli(&[&["token"], arguments].concat());
        assert_eq!(done.code, code, "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(reason), "{arguments:?}: {}", done.stderr);
    }
    assert_eq!(site.cli_json(&["token", "list"]), json!([]));
    assert!(!site.network_dir().join("tokens.json").exists());
}

#[test]
fn tokens_that_are_made_at_the_same_time_all_exist() {
    let guarded = Guarded::start();
    let made = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| [(); 3].map(|()| guarded.token(&["wallet:read"]))))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let Guarded { site, server } = guarded;
    server.kill();
    let guarded = Guarded { server: site.server(), site };
    for token in made {
        assert_eq!(guarded.send("GET", "/api/v1/balance", "", Some(&token)).status, 200);
    }
}

/// Kills the server at every step of making and revoking a token. An acknowledged change holds. Any
/// other change is complete or did not happen.
#[test]
fn a_kill_loses_no_token_and_revives_none() {
    let mut site = Site::with(json!({"auth": {"requireToken": true}}));
    site.set_env("BSV_LOG", "off");
    site.cli_ok(&["init"]);
    site.keep_on_disk();
    let killer = Killer::install(&mut site);
    let ids = |site: &Site| -> Vec<String> {
        let list = site.cli_json(&["token", "list"]);
        let id = |token: &Value| token["id"].as_str().unwrap().to_owned();
        list.as_array().unwrap().iter().map(id).collect()
    };
    let mut killed = 0;
    let (_, kept) = create(&site, &["wallet:read"], None);
    for step in 1.. {
        let before = ids(&site);
        killer.kill_at(step);
        let done = site.cli(&["token", "create", "--scope", "wallet:read", "--json"]);
        killer.spare();
        let after = ids(&site);
        assert!(after.contains(&kept) && before.iter().all(|id| after.contains(id)));
        if done.code == 0 {
            break;
        }
        killed += 1;
        assert!(after.len() <= before.len() + 1);
    }
    for step in 1.. {
        let (_, id) = create(&site, &["wallet:read"], None);
        let before = ids(&site);
        killer.kill_at(step);
        let done = site.cli(&["token", "revoke", "--yes", &id]);
        killer.spare();
        let after = ids(&site);
        assert!(before.iter().all(|other| *other == id || after.contains(other)));
        if done.code == 0 {
            assert!(!after.contains(&id));
            break;
        }
        killed += 1;
    }
    assert!(killed >= 6, "only {killed} steps were found");
}

#[test]
fn a_public_service_needs_tokens_or_a_front_end() {
    let host = |settings: Value| {
        let mut settings = settings;
        settings["payments"] = json!({"publicUrl": "http://127.0.0.1:1"});
        Site::with(settings)
    };
    for open in [json!({"host": "0.0.0.0"}), json!({"wallet": {"host": "0.0.0.0"}})] {
        let refused = host(open.clone()).try_server().unwrap_err();
        assert_eq!(refused.code, 1);
        for way in ["auth.requireToken = true", "allowUnauthenticated = true"] {
            assert!(refused.stderr.contains(way), "{}", refused.stderr);
        }
        let mut behind = open.clone();
        behind["allowUnauthenticated"] = json!(true);
        let site = host(behind);
        let server = site.server();
        assert_eq!(server.wallet().get("/api/v1/balance").status, 200);
        let mut guarded = open;
        guarded["auth"] = json!({"requireToken": true});
        guarded["port"] = json!(free_port());
        let site = host(guarded.clone());
        let server = site.server();
        assert_eq!(server.wallet().get("/api/v1/balance").status, 401);
        assert_eq!(server.get("/minerid/x").status, 401);
        guarded["allowUnauthenticated"] = json!(true);
        let refused = host(guarded).try_server().unwrap_err();
        assert!(refused.stderr.contains("contradict each other"), "{}", refused.stderr);
    }
}
