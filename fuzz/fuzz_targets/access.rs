//! Any `Authorization` headers, and any file of tokens: a caller gets exactly the scopes that the
//! file has for its token. With a JSON Web Token that the key has signed, it gets only scopes of
//! identities.
//!
//! Each line up to the first empty line is the value of a header. A line that begins with `sign `
//! holds the header and the claims of a JSON Web Token, separated by a tab, and stands for the
//! token that is signed. The rest is the file.

#![no_main]

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bsv_invoicing::Timestamp;
use bsv_server::{Access, AccessConfig, Caller, Denied, JwtKey, Scope, Tokens};
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderValue};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const KEY: &str = "0123456789abcdef0123456789abcdef";
const ALIASES: [Option<&str>; 3] = [None, Some("first"), Some("rot")];

static DIR: LazyLock<TempDir> =
    LazyLock::new(|| TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap());

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n");
    let (lines, file) = match end {
        Some(end) => (&bytes[..end], &bytes[end + 2..]),
        None => (bytes, &b""[..]),
    };
    let path = DIR.path().join("tokens.json");
    fs::write(&path, file).unwrap();
    let opened = Tokens::open(DIR.path());
    assert_eq!(fs::read(&path).unwrap(), file);
    let Ok(tokens) = opened else { return };
    let issued: Value = serde_json::from_slice(file).unwrap();
    assert_eq!(issued["version"], 1);

    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let values = lines.map(|line| match line.strip_prefix(b"sign ") {
        Some(parts) => HeaderValue::try_from(format!("Bearer {}", signed(parts))).unwrap(),
        None => HeaderValue::from_bytes(line).unwrap_or(HeaderValue::from_static("")),
    });
    let headers: HeaderMap = values.map(|value| (AUTHORIZATION, value)).collect();
    let jwt_key = Some(JwtKey::new(KEY.into()).unwrap());
    let config = AccessConfig { require_token: true, jwt_key };
    let caller = Access::new(config, Arc::new(tokens)).identify(&headers);
    match only_token(&headers) {
        None => assert!(matches!(caller, Err(Denied::Missing | Denied::Invalid(_)))),
        Some(token) if token.starts_with("bsv_") => check_own(token, &issued, &caller),
        Some(token) => check_jwt(token, &caller),
    }
});

/// The bearer token, if there is exactly one header and it has the form of RFC 6750.
fn only_token(headers: &HeaderMap) -> Option<&str> {
    let values: Vec<_> = headers.get_all(AUTHORIZATION).iter().collect();
    let [value] = values[..] else { return None };
    let text = value.to_str().ok()?;
    let scheme = text.get(..7)?;
    scheme.eq_ignore_ascii_case("bearer ").then(|| text[7..].trim())
}

/// The bearer of a token is identified exactly if the file has the token's hash, and has the scopes
/// in the file.
fn check_own(token: &str, issued: &Value, caller: &Result<Caller, Denied>) {
    let hash = hex::encode(Sha256::digest(token));
    let (id, secret) = token[4..].split_once('_').unwrap_or_default();
    let entry = issued["tokens"].as_array().unwrap().iter().find(|entry| {
        let of_hash = entry["sha256"].as_str().unwrap().eq_ignore_ascii_case(&hash);
        entry["id"] == id && of_hash && secret.len() == 64
    });
    match (caller, entry) {
        (Ok(caller), Some(entry)) => {
            let scopes = entry["scopes"].as_array().unwrap();
            check_scopes(caller, |text| scopes.iter().any(|scope| scope == text));
        }
        (Err(Denied::Expired(_)), Some(entry)) => {
            let end: Timestamp = entry["expiresAt"].as_str().unwrap().parse().unwrap();
            assert!(end <= Timestamp::of_system());
        }
        (Err(Denied::Invalid(_)), None) => {}
        other => panic!("{token}: {other:?}"),
    }
}

/// The bearer of a JSON Web Token is identified only if the key has signed it and the time is
/// within its validity. It gets no scope of a wallet.
fn check_jwt(token: &str, caller: &Result<Caller, Denied>) {
    let (signed, signature) = token.rsplit_once('.').unwrap_or((token, ""));
    let is_by_key = URL_SAFE_NO_PAD.decode(signature).ok().as_deref() == Some(&hmac(signed)[..]);
    match caller {
        Ok(caller) => {
            assert!(is_by_key);
            let (header, claims) = signed.split_once('.').unwrap();
            let algorithm = member(header, "alg").unwrap();
            assert_eq!(serde_json::from_str::<String>(&algorithm).unwrap(), "HS256");
            assert_eq!(member(header, "crit"), None);
            let time = |name| member(claims, name).map(|text| text.parse::<f64>().unwrap());
            let now = Timestamp::of_system().as_micros() as f64 / 1e6;
            // A new second may have begun in the meantime.
            assert!(time("exp").is_none_or(|end| end > now.floor() - 1.0));
            assert!(time("nbf").is_none_or(|begin| begin <= now));
            check_scopes(caller, |text| {
                ["minerid:read", "minerid:sign", "minerid:rotate"].contains(&text)
            });
        }
        Err(Denied::Expired(_)) => assert!(is_by_key),
        Err(denied) => assert!(matches!(denied, Denied::Invalid(_)), "{denied:?}"),
    }
}

/// Checks that a caller may do exactly what its scopes allow, for all aliases or for one.
fn check_scopes(caller: &Caller, has: impl Fn(&str) -> bool) {
    assert!(matches!(caller, Caller::Bearer(_)), "nobody is trusted where a token is demanded");
    for scope in Scope::ALL {
        for alias in ALIASES {
            let name = scope.name();
            let expected = has(name) || alias.is_some_and(|alias| has(&format!("{name}:{alias}")));
            assert_eq!(caller.require(scope, || alias).is_ok(), expected, "{name} {alias:?}");
        }
    }
}

/// The text of a member of the object in a part of a token, unless the member is null.
fn member(part: &str, name: &str) -> Option<String> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(&text).unwrap();
    members.get(name).map(|value| value.get().to_owned()).filter(|text| text != "null")
}

fn signed(parts: &[u8]) -> String {
    let tab = parts.iter().position(|byte| *byte == b'\t').unwrap_or(parts.len());
    let (header, claims) = parts.split_at(tab);
    let claims = claims.strip_prefix(b"\t").unwrap_or(claims);
    let signed = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
    let signature = URL_SAFE_NO_PAD.encode(hmac(&signed));
    format!("{signed}.{signature}")
}

/// HMAC-SHA-256 by its definition (RFC 2104), independent of the code under test.
fn hmac(text: &str) -> [u8; 32] {
    let key = |pad: u8| {
        let mut key = [pad; 64];
        key.iter_mut().zip(KEY.bytes()).for_each(|(byte, of_key)| *byte ^= of_key);
        key
    };
    let inner = Sha256::new().chain_update(key(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(key(0x5c)).chain_update(inner).finalize().into()
}
