//! JSON Web Tokens as the older generator makes them, with the library that it uses (jsonwebtoken
//! 9.0.3 for JavaScript).

use bsv_tests::Site;
use serde_json::json;

use crate::access::Guarded;

pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const GOOD: [&str; 2] = [
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ1c2VybmFtZSI6InBvb2wiLCJpYXQiOjE3MDAwMDAwMDB9.\
     7bRjaw28cuv1_ACQ7LDDQNFynCbS4KiBuUyNrIlogzM",
    // Until the year 2100.
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ1c2VybmFtZSI6InBvb2wiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI6\
     NDEwMjQ0NDgwMH0.iuBm6NwIdaEgQP5zO_r9eL8lxfVmMSzWBxqMMDAag9o",
];
const EXPIRED: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ1c2VybmFtZSI6InBvb2wiLCJpYXQiOjE2MDAw\
                       MDAwMDAsImV4cCI6MTYwMDAwMTgwMH0.Qu-n1K7YGFdEZZvaCQqOgg6JiZzbkPtoSxwHgath3eQ";
const OTHER_KEY: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ1c2VybmFtZSI6InBvb2wiLCJpYXQiOjE3MD\
                         AwMDAwMDB9.J9GRgwouGZA1vVDqL56eszUPblGwYwApgDGIgCmLfb8";
const UNSIGNED: &str =
    "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJ1c2VybmFtZSI6InBvb2wiLCJpYXQiOjE3MDAwMDAwMDB9.";
const HS512: &str = "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9.eyJ1c2VybmFtZSI6InBvb2wiLCJpYXQiOjE3MDAwMD\
                     AwMDB9.HuqvCThpGrf5fFdaywSZnGHXYM-A58ecYeU7fXOqKPisOQLgD4TohvRTfVNmhugSNGas1LaA\
                     SMnowMGZyhcmyw";

#[test]
fn callers_of_the_older_generator_keep_their_tokens() {
    let guarded = Guarded::start_with(json!({"auth": {"requireToken": true, "jwtKey": KEY}}));
    let hash = "00".repeat(32);
    for token in GOOD {
        for path in ["/minerid/first", &format!("/minerid/first/sign/{hash}"), "/opreturn/rot/5"] {
            let reply = guarded.send("GET", path, "", Some(token));
            assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        }
        let reply = guarded.send("POST", "/opreturn/first/rotate", "", Some(token));
        assert_eq!((reply.status, reply.body.as_str()), (200, "OK"));
        // The older generator had no wallet.
        for (method, path) in [("GET", "/api/v1/balance"), ("POST", "/api/v1/pay")] {
            assert_eq!(guarded.send(method, path, "{}", Some(token)).status, 403, "{path}");
        }
    }
    // They make a new one after a 403. The wallet never sent them a 403.
    let key = guarded.send("GET", "/minerid/first", "", Some(GOOD[0])).body;
    for (token, text) in [
        (EXPIRED, "Forbidden: the token has expired"),
        (OTHER_KEY, "Forbidden: the token is not one that is accepted here"),
        (UNSIGNED, "Forbidden: the token is not one that is accepted here"),
        (HS512, "Forbidden: the token is not one that is accepted here"),
    ] {
        for method in ["GET", "POST"] {
            let reply = guarded.send(method, "/opreturn/first/rotate", "", Some(token));
            assert_eq!((reply.status, reply.body.as_str()), (403, text));
            let challenge = "Bearer realm=\"bsv-server\", error=\"invalid_token\"";
            assert_eq!(reply.header("www-authenticate"), Some(challenge));
        }
        assert_eq!(guarded.send("GET", "/api/v1/balance", "", Some(token)).status, 401);
    }
    assert_eq!(guarded.send("GET", "/minerid/first", "", Some(GOOD[0])).body, key);
    assert_eq!(guarded.send("GET", "/minerid/first", "", None).status, 401);
    // Our own tokens are accepted as well.
    let own = guarded.token(&["minerid:read"]);
    assert_eq!(guarded.send("GET", "/minerid/first", "", Some(&own)).status, 200);
}

#[test]
fn without_a_key_no_jwt_is_accepted() {
    let guarded = Guarded::start();
    for token in GOOD.into_iter().chain([EXPIRED, UNSIGNED]) {
        assert_eq!(guarded.send("GET", "/minerid/first", "", Some(token)).status, 403);
    }
}

#[test]
fn a_key_that_protects_nothing_is_refused_at_start() {
    let published = "f".repeat(64);
    for (auth, reason) in [
        (json!({"requireToken": true, "jwtKey": published}), "older generator publishes"),
        (json!({"requireToken": true, "jwtKey": "short-key-short-key"}), "at least 32 bytes"),
        (json!({"requireToken": true, "jwtKey": ""}), "at least 32 bytes"),
        (json!({"requireToken": true, "jwtKey": [KEY]}), "auth.jwtKey: must be a string"),
        (json!({"jwtKey": KEY}), "set auth.requireToken = true"),
        (json!({"requireToken": true, "jwtkey": KEY}), "unknown field `jwtkey`"),
    ] {
        let refused = Site::with(json!({ "auth": auth })).try_server().unwrap_err();
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
        for secret in [KEY, &published, "short-key-short-key"] {
            assert!(!refused.stderr.contains(secret), "{}", refused.stderr);
        }
    }
}
