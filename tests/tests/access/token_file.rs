use std::fs;

use bsv_tests::Site;
use serde_json::{Value, json};

use crate::access::guarded::create;

/// Starts a server and the command line on a token file with this content. Both report the fault
/// and leave the file unchanged.
fn check_refused(site: &Site, content: &[u8], reason: &str) {
    let path = site.network_dir().join("tokens.json");
    fs::write(&path, content).unwrap();
    let refused = site.try_server().unwrap_err();
    let list = site.cli(&["token", "list"]);
    let create = site.cli(&["token", "create", "--scope", "wallet:read"]);
    for done in [&refused, &list, &create] {
        assert_eq!(done.code, 1, "{}", done.stderr);
        assert!(done.stderr.contains("tokens.json"), "{}", done.stderr);
        assert!(done.stderr.contains(reason), "{reason}: {}", done.stderr);
    }
    assert_eq!(fs::read(&path).unwrap(), content, "{reason}");
}

#[test]
fn a_file_that_is_damaged_or_of_another_version_is_refused_and_kept() {
    let mut site = Site::new();
    site.set_env("BSV_LOG", "off");
    site.cli_ok(&["init"]);
    create(&site, &["wallet:read", "minerid:sign:pool"], None);
    create(&site, &["wallet:pay"], Some("2100-01-01T00:00:00Z"));
    let path = site.network_dir().join("tokens.json");
    let whole = fs::read(&path).unwrap();
    for len in [0, 1, whole.len() / 2, whole.len() - 3] {
        check_refused(&site, &whole[..len], "is damaged");
    }
    let mut file: Value = serde_json::from_slice(&whole).unwrap();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = file.clone();
        change(&mut changed);
        changed.to_string()
    };
    for (content, reason) in [
        (with(&|file| file["version"] = json!(2)), "has version 2"),
        (with(&|file| file["version"] = json!("1")), "it has no version"),
        (with(&|file| file["tokens"][0]["scopes"][0] = json!("wallet:all")), "is not a scope"),
        (with(&|file| file["tokens"][0]["sha256"] = json!("00")), "sha256"),
        (with(&|file| file["tokens"][0]["expiresAt"] = json!("soon")), "RFC 3339"),
        (with(&|file| file["tokens"][1]["id"] = file["tokens"][0]["id"].clone()), "is there twice"),
        (with(&|file| file["tokens"][0]["admin"] = json!(true)), "unknown field `admin`"),
        (with(&|file| file["tokens"] = json!({})), "is damaged"),
        (with(&|file| file["format"] = json!("bsv-coins")), "its format is"),
        ("[]".to_owned(), "it has no version"),
        ("\u{0}".repeat(300), "is damaged"),
    ] {
        check_refused(&site, content.as_bytes(), reason);
    }
    // A build before the first release did not name the format.
    let unreleased = with(&|file| drop(file.as_object_mut().unwrap().remove("format")));
    check_refused(&site, unreleased.as_bytes(), "was made by an unreleased build; make a new one");
    // An older program does not discard what a newer one wrote.
    file["version"] = json!(7);
    check_refused(&site, file.to_string().as_bytes(), "use the program that wrote it");

    fs::write(&path, &whole).unwrap();
    assert_eq!(site.cli_json(&["token", "list"]).as_array().unwrap().len(), 2);
    // A half-written file beside it is ignored.
    fs::write(site.network_dir().join(".tokens.json.tmp"), "{").unwrap();
    create(&site, &["wallet:read"], None);
    assert_eq!(site.cli_json(&["token", "list"]).as_array().unwrap().len(), 3);
}

#[test]
fn a_flipped_bit_lets_nobody_in() {
    let mut site = Site::with(json!({"auth": {"requireToken": true}}));
    site.set_env("BSV_LOG", "off");
    site.cli_ok(&["init"]);
    let (token, _) = create(&site, &["wallet:read"], None);
    let path = site.network_dir().join("tokens.json");
    let whole = fs::read_to_string(&path).unwrap();
    let hash = whole.split("\"sha256\": \"").nth(1).unwrap()[..64].to_owned();
    let flipped = if hash.starts_with('0') { "1" } else { "0" };
    fs::write(&path, whole.replace(&hash, &format!("{flipped}{}", &hash[1..]))).unwrap();
    let server = site.server();
    let authorization = format!("Bearer {token}");
    let headers = [("Authorization", authorization.as_str())];
    let reply = server.wallet().send("GET", "/api/v1/balance", &headers, b"");
    assert_eq!(reply.status, 401);
}
