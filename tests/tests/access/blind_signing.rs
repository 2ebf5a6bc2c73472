use bsv_tests::{Site, vectors};
use serde_json::json;

use crate::access::Guarded;

const HASH: &str = "70f5701644897c92b60e98dbbfe72e1cfd7a2728c6fa3a29c4b4f6e986b0ccaa";

#[test]
fn an_alias_can_be_kept_from_signing_anything_but_documents() {
    let guarded = Guarded::start();
    let token = guarded.token(&["minerid:read", "minerid:sign", "minerid:rotate"]);
    let get = |path: &str| guarded.send("GET", path, "", Some(&token));
    let sign = |alias: &str| {
        ["sign", "pksign"].map(|name| get(&format!("/minerid/{alias}/{name}/{HASH}")).status)
    };
    assert_eq!(sign("first"), [200, 200]);
    let said = guarded.site.cli_ok(&["miner", "blind-signing", "--name", "first", "off"]);
    assert_eq!(said, "Alias \"first\" signs only documents");
    assert_eq!((sign("first"), sign("rot")), ([403, 403], [200, 200]));
    let reply = get(&format!("/minerid/first/sign/{HASH}"));
    assert_eq!(reply.body, "Blind signing is off for alias \"first\"");
    // Mistakes in the request itself are reported as before.
    assert_eq!(get("/minerid/unknown/sign/x").status, 422);
    assert_eq!(get("/opreturn/first/1000").status, 200);
    // The setting survives rotations, changes and crashes.
    assert_eq!(get("/opreturn/first/rotate").status, 200);
    guarded.site.cli_ok(&["config", "--name", "first", "a=b"]);
    assert_eq!(sign("first"), [403, 403]);
    let Guarded { site, server } = guarded;
    server.kill();
    let guarded = Guarded { server: site.server(), site };
    let get = |path: &str| guarded.send("GET", path, "", Some(&token)).status;
    assert_eq!(get(&format!("/minerid/first/sign/{HASH}")), 403);
    guarded.site.cli_ok(&["miner", "blind-signing", "--name", "first", "on"]);
    assert_eq!(get(&format!("/minerid/first/sign/{HASH}")), 200);
}

#[test]
fn the_command_line_reports_mistakes() {
    let site = Site::new();
    let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
    site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
    for (arguments, code, reason) in [
        (&["--name", "nobody", "off"][..], 1, "Alias \"nobody\" doesn't exist"),
        (&["--name", "first"], 2, "<SWITCH>"),
        (&["--name", "first", "maybe"], 2, "[possible values: on, off]"),
        (&["off"], 2, "--name"),
    ] {
        let done = site.cli(&[&["miner", "blind-signing"], arguments].concat());
        assert_eq!(done.code, code, "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(reason), "{arguments:?}: {}", done.stderr);
    }
    let identity = site.cli_json(&["miner", "blind-signing", "--name", "first", "off"]);
    assert_eq!(identity["blindSigning"], json!(false));
    let listed = site.cli_json(&["miner", "list"]);
    let listed = listed.as_array().unwrap().iter();
    let off: Vec<_> = listed.filter(|id| id["blindSigning"] == false).collect();
    assert_eq!(off.len(), 1);
    assert_eq!(off[0]["alias"], "first");
}
