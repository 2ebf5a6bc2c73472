//! Two machines and one identity of each generation. The second machine has an older copy of the
//! first, and takes over once the first is lost.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::known_miners::of_node;
use bsv_tests::rival::{height, tip};
use bsv_tests::{Node, Server, Site, Template, miner_info};
use bsv_tx::BlockHash;
use serde_json::json;

use crate::minerid_1_0::scene::{await_acknowledgement, identity, miner_id, node, state};

/// The alias of generation 1.0, and that of generation 0.2.
const ALIASES: [&str; 2] = ["pool", "old"];

/// A machine that uses `node`, and has no identity yet.
fn machine(node: &Node) -> Site {
    let mut site = Site::on(node);
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
    site
}

fn mine(node: &Node, server: &Server, alias: &str) -> BlockHash {
    match alias {
        "old" => miner_info::mine_coinbase_document(node, server, alias),
        _ => miner_info::mine_from(node, server, alias).block,
    }
}

/// Mines a block with the identity of each alias. The node must accept each under its current key.
fn mine_all(node: &Node, server: &Server) {
    for alias in ALIASES {
        let block = mine(node, server, alias);
        let known = &of_node(node)[&miner_id(server, alias)];
        let found = (&known["state"], &known["latestBlock"]);
        assert_eq!(
            found,
            (&json!("CURRENT"), &json!(block.to_string())),
            "{alias}: {}",
            node.log()
        );
    }
}

fn rotate_all(site: &Site) {
    for alias in ALIASES {
        site.cli_ok(&["miner", "rotate", "--name", alias]);
    }
}

fn back_up(site: &Site, directory: &Path, name: &str) -> PathBuf {
    let file = directory.join(name);
    site.cli_ok(&["backup", file.to_str().unwrap()]);
    file
}

/// A new machine that is restored from a backup.
fn restore(node: &Node, backup: &Path) -> Site {
    let site = machine(node);
    site.cli_ok(&["restore", "--yes", backup.to_str().unwrap()]);
    site
}

/// Waits until a server's readiness has this status and its answer holds this text.
fn await_ready(server: &Server, status: u16, says: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let reply = server.get("/readyz");
        if reply.status == status && reply.body.contains(says) {
            return;
        }
        assert!(Instant::now() < deadline, "{} {}", reply.status, reply.body);
        thread::sleep(Duration::from_millis(50));
    }
}

/// Checks that a machine has found out that its copy is older, and changes nothing.
fn assert_found_out(site: &Site, server: &Server) {
    await_ready(server, 503, r#""staleAliases":["old","pool"]"#);
    for alias in ALIASES {
        let before = identity(site, alias);
        assert_eq!(before["stale"], json!(true), "{before:#}");
        assert_eq!(server.text(&format!("/opreturn/{alias}/isvalid")), "false");
        assert_eq!(server.post(&format!("/opreturn/{alias}/rotate"), "").status, 409);
        let id = miner_id(server, alias);
        let of_generation: &[&[&str]] = match alias {
            "old" => &[&["miner", "revoke", "--yes"], &["miner", "upgrade", "--yes"]],
            _ => &[
                &["miner", "revocation-key", "rotate"],
                &["miner", "revoke", "--all", "--yes"],
                &["miner", "revoke", "--back-to", &id, "--yes"],
            ],
        };
        let rotations: &[&[&str]] =
            &[&["miner", "rotate"], &["miner", "rotate", "--force", "--yes"]];
        for command in rotations.iter().chain(of_generation) {
            let done = site.cli(&[command, &["--name", alias][..]].concat());
            assert_eq!(done.code, 1, "{command:?} {done:?}");
            assert!(done.stderr.contains("is an older copy"), "{command:?} {done:?}");
        }
        assert_eq!(identity(site, alias), before);
    }
}

/// Mines blocks with documents of an older copy. The node must accept the blocks and ignore their
/// identities.
fn assert_ignored(node: &Node, server: &Server) {
    for alias in ALIASES {
        let (known, before) = (of_node(node), height(node));
        let block = mine(node, server, alias);
        assert_eq!((tip(node), height(node)), (json!(block.to_string()), before + 1));
        assert_eq!(of_node(node), known, "{alias}");
        let template = Template::of(node, 1);
        assert_eq!(template.previous_block(), block);
    }
}

#[test]
fn a_second_machine_with_an_older_backup_harms_nothing_and_with_the_newest_one_goes_on() {
    let node = node();
    let backups = tempfile::tempdir().unwrap();
    let a = machine(&node);
    a.cli_ok(&["init"]);
    let server_a = a.server();
    a.cli_ok(&["miner", "create", "--name", "pool", "--protocol", "1.0"]);
    a.cli_ok(&["miner", "create", "--name", "old"]);
    a.cli_ok(&["miner", "vctx", "--name", "old"]);
    mine_all(&node, &server_a);
    let first = ALIASES.map(|alias| miner_id(&server_a, alias));
    let older = back_up(&a, backups.path(), "older");
    rotate_all(&a);
    a.cli_ok(&["miner", "revocation-key", "rotate", "--name", "pool"]);
    let newest = back_up(&a, backups.path(), "newest");
    mine_all(&node, &server_a);
    let second = ALIASES.map(|alias| miner_id(&server_a, alias));

    let b = restore(&node, &older);
    let server_b = b.server();
    assert_eq!(ALIASES.map(|alias| miner_id(&server_b, alias)), first);
    assert_found_out(&b, &server_b);
    assert_ignored(&node, &server_b);
    // The first machine works as if there were no other.
    mine_all(&node, &server_a);
    for alias in ALIASES {
        await_acknowledgement(&a, alias);
        assert_eq!(identity(&a, alias)["stale"], json!(false));
    }
    await_ready(&server_a, 200, "true");

    // The backup holds the last rotation and the last revocation key, although no block has shown
    // them.
    server_a.kill();
    drop((a, server_b, b));
    let b = restore(&node, &newest);
    let server_b = b.server();
    assert_eq!(ALIASES.map(|alias| miner_id(&server_b, alias)), second);
    for alias in ALIASES {
        await_acknowledgement(&b, alias);
        assert_eq!(identity(&b, alias)["stale"], json!(false));
    }
    await_ready(&server_b, 200, "true");
    rotate_all(&b);
    for _ in 0..2 {
        mine_all(&node, &server_b);
    }
    let third = ALIASES.map(|alias| miner_id(&server_b, alias));
    let mut expected = [0, 1].map(|place| {
        let [first, second, third] = [&first, &second, &third].map(|keys| &keys[place]);
        vec![state(third, "CURRENT"), state(second, "ROTATED"), state(first, "ROTATED")]
    });
    // A node lists miners in no particular order.
    let mut known = miner_info::states(&node);
    known.sort();
    expected.sort();
    assert_eq!(known, expected);
}
