use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bsv_tests::{Done, Node, Server, Site};
use serde_json::json;

use crate::keeping::scene::{balance, create_invoice, fill, member, sealed_site, wait_for_proofs};

const BACKUP_PASSPHRASE: &str = "of the backup alone";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn site(node: Option<&Node>) -> Site {
    let mut site = sealed_site(node);
    site.set_env("BSV_BACKUP_PASSPHRASE", BACKUP_PASSPHRASE);
    site
}

/// Answers of both services that do not change by themselves.
fn answers(site: &Site, server: &Server, invoice: &str) -> Vec<String> {
    let wallet = |path: &str| server.wallet().get(path).body;
    let hash = "11".repeat(32);
    vec![
        wallet("/api/v1/invoices"),
        wallet(&format!("/api/v1/invoices/{invoice}/payments")),
        wallet("/api/v1/users/1"),
        wallet("/api/v1/balance"),
        server.text("/minerid/pool"),
        server.text(&format!("/minerid/pool/sign/{hash}")),
        server.text("/opreturn/pool/800000"),
        site.cli_ok(&["token", "list"]),
        site.cli_ok(&["miner", "list"]),
    ]
}

#[test]
fn a_backup_of_a_running_server_restores_answers_keys_and_balance_elsewhere() {
    let node = Node::start();
    node.mine(101);
    let source = site(Some(&node));
    let server = source.server();
    source.cli_ok(&["generateminerid", "--name", "pool"]);
    source.cli_ok(&["rotateminerid", "--name", "pool"]);
    source.cli_ok(&["generatevctx", "--name", "pool"]);
    source.cli_ok(&["generateminerid", "--name", "new", "--protocol", "1.0"]);
    source.cli_ok(&["user", "create", "--name", "Ada"]);
    source.cli_ok(&["token", "create", "--scope", "wallet:read", "--label", "till"]);
    let invoice = create_invoice(server.wallet(), 42_000);
    let url = crate::keeping::scene::payment_url(&server, &invoice);
    source.cli_ok(&["wallet", "faucet", &url]);
    fill(&source, &server, 10_000);
    node.mine(1);
    wait_for_proofs(&source, 2);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("backup");
    let expected = answers(&source, &server, &invoice);
    let words = source.cli_ok(&["wallet", "words", "--yes"]);
    let said = source.cli_ok(&["backup", text(&file)]);
    assert!(said.contains("are sealed in"), "{said}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    // An invoice that is created after the backup is not in it.
    create_invoice(server.wallet(), 7);
    let again = source.cli(&["backup", text(&file)]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("exists"), "{}", again.stderr);
    server.kill();

    let target = site(Some(&node));
    let said = target.cli_ok(&["restore", "--yes", text(&file)]);
    assert!(said.contains("is restored in"), "{said}");
    let books = target.cli_json(&["books", "verify"]);
    assert_eq!((&books["balance"], &books["recomputed"]), (&json!(52_000), &json!(52_000)));
    target.cli_ok(&["keystore", "verify"]);
    target.cli_ok(&["audit", "verify"]);
    assert_eq!(target.cli_ok(&["wallet", "words", "--yes"]), words);
    let server = target.server();
    assert_eq!(balance(&server), 52_000);
    assert_eq!(answers(&target, &server, &invoice), expected);
    target.cli_ok(&["rotaterevocationkey", "--name", "new"]);
    create_invoice(server.wallet(), 7);

    // A refused restore changes nothing.
    let refused = target.cli(&["restore", "--yes", text(&file)]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("is not empty"), "{}", refused.stderr);
    assert_eq!(balance(&server), 52_000);
}

#[test]
fn a_backup_without_a_server_is_the_same() {
    let source = site(None);
    source.cli_ok(&["init"]);
    source.cli_ok(&["generateminerid", "--name", "pool"]);
    let id = member(&source.cli_ok(&["invoice", "create", "--satoshis", "5", "--json"]), "id");
    let dir = tempfile::tempdir().unwrap();
    let (file, passphrase) = (dir.path().join("backup"), dir.path().join("passphrase"));
    fs::write(&passphrase, BACKUP_PASSPHRASE).unwrap();
    source.cli_ok(&["backup", text(&file), "--passphrase-file", text(&passphrase)]);
    let target = site(None);
    target.cli_ok(&["restore", "--yes", text(&file), "--passphrase-file", text(&passphrase)]);
    for arguments in [&["invoice", "get", &id][..], &["getcurrentminerid", "-n", "pool"]] {
        assert_eq!(target.cli_ok(arguments), source.cli_ok(arguments));
    }
    // The backup holds nothing in clear text.
    let sealed = fs::read(&file).unwrap();
    for secret in ["pool", "wallet.redb", BACKUP_PASSPHRASE] {
        assert!(!sealed.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
}

/// Whatever is wrong with the file, a restore puts nothing in place and leaves nothing behind.
#[test]
fn an_incomplete_or_changed_backup_is_not_restored() {
    let source = site(None);
    source.cli_ok(&["init"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("backup");
    source.cli_ok(&["backup", text(&file)]);
    let right = fs::read(&file).unwrap();
    let mut target = site(None);
    let check = |target: &Site, done: &Done, reason: &str| {
        assert_eq!(done.code, 1);
        assert!(done.stderr.contains(reason), "{reason}: {}", done.stderr);
        assert_eq!(fs::read_dir(target.data_dir()).unwrap().count(), 0, "{reason}");
    };
    let flipped = |place: usize| {
        let mut contents = right.clone();
        contents[place] ^= 1;
        contents
    };
    let half = right[..right.len() / 2].to_vec();
    let longer = [&right[..], b"x"].concat();
    for (contents, reason) in [
        (flipped(0), "it is not a backup"),
        (flipped(7), "newer version"),
        (flipped(30), "the passphrase does not open it"),
        (flipped(100), "the passphrase does not open it"),
        (flipped(right.len() - 1), "damaged or cut short"),
        (half, "damaged or cut short"),
        (longer, "damaged or cut short"),
        (Vec::new(), "it is not a backup"),
    ] {
        fs::write(&file, contents).unwrap();
        check(&target, &target.cli(&["restore", "--yes", text(&file)]), reason);
    }
    fs::write(&file, &right).unwrap();
    target.set_env("BSV_BACKUP_PASSPHRASE", "wrong");
    check(
        &target,
        &target.cli(&["restore", "--yes", text(&file)]),
        "the passphrase does not open it",
    );
    target.set_env("BSV_BACKUP_PASSPHRASE", BACKUP_PASSPHRASE);
    target.set_env("BSV_KEYSTORE_PASSPHRASE", "wrong");
    check(&target, &target.cli(&["restore", "--yes", text(&file)]), "keystore.json");
    let mut livenet = Site::with(json!({ "network": "livenet" }));
    livenet.set_env("BSV_BACKUP_PASSPHRASE", BACKUP_PASSPHRASE);
    livenet.set_env("BSV_KEYSTORE_PASSPHRASE", crate::keeping::scene::PASSPHRASE);
    check(
        &livenet,
        &livenet.cli(&["restore", "--yes", text(&file)]),
        "it is of the network regtest",
    );
    let missing = dir.path().join("missing");
    check(&target, &target.cli(&["restore", "--yes", text(&missing)]), "cannot open");
}
