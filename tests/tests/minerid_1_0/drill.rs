//! Two machines and one identity: a backup, a rotation, a restore, blocks.

use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::{Node, Server, Site, miner_info};
use bsv_tx::BlockHash;
use serde_json::json;

use crate::scene::{await_acknowledgement, identity, miner_id, node};

/// An identity of one generation, and how its blocks are mined.
struct Drill {
    alias: &'static str,
    mine: fn(&Node, &Server, &str) -> BlockHash,
}

const DRILLS: [Drill; 2] = [
    Drill { alias: "old", mine: miner_info::mine_coinbase_document },
    Drill {
        alias: "pool",
        mine: |node, server, alias| miner_info::mine_from(node, server, alias).block,
    },
];

/// A machine that can read the backups.
fn machine(node: &Node) -> Site {
    let mut site = Site::on(node);
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backups");
    site
}

fn back_up(site: &Site, name: &str) -> String {
    let file = site.data_dir().join(name);
    let file = file.to_str().unwrap();
    site.cli_ok(&["backup", file]);
    file.to_owned()
}

fn restored(node: &Node, backup: &str) -> (Site, Server) {
    let site = machine(node);
    site.cli_ok(&["restore", "--yes", backup]);
    let server = site.server();
    (site, server)
}

fn is_taken(node: &Node, miner_id: &str, block: BlockHash) -> bool {
    let dump = node.call("dumpminerids", json!([]));
    let miners = dump["miners"].as_array().unwrap().iter();
    let mut theirs = miners.filter(|miner| miner.to_string().contains(miner_id));
    theirs.any(|miner| miner["latestblock"] == block.to_string())
}

#[test]
fn a_second_machine_takes_over_with_the_newest_backup_only() {
    let node = node();
    let first = machine(&node);
    let server = first.server();
    first.cli_ok(&["miner", "create", "--name", "old"]);
    first.cli_ok(&["miner", "vctx", "--name", "old"]);
    first.cli_ok(&["miner", "create", "--name", "pool", "--protocol", "1.0"]);
    for Drill { alias, mine } in &DRILLS {
        mine(&node, &server, alias);
    }
    let yesterdays = back_up(&first, "yesterdays");
    for Drill { alias, mine } in &DRILLS {
        first.cli_ok(&["miner", "rotate", "--name", alias]);
        assert!(is_taken(&node, &miner_id(&server, alias), mine(&node, &server, alias)));
        await_acknowledgement(&first, alias);
    }

    let (second, others_server) = restored(&node, &yesterdays);
    for Drill { alias, mine } in &DRILLS {
        let deadline = Instant::now() + Duration::from_secs(30);
        while identity(&second, alias)["stale"] != json!(true) {
            assert!(Instant::now() < deadline, "{:#}", identity(&second, alias));
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(others_server.text(&format!("/opreturn/{alias}/isvalid")), "false");
        let refused = second.cli(&["miner", "rotate", "--name", alias]);
        assert!(refused.code == 1 && refused.stderr.contains("is an older copy"), "{refused:?}");
        // Its block is one like any other, without an identity.
        let ignored = mine(&node, &others_server, alias);
        assert_eq!(node.call("getbestblockhash", json!([])), ignored.to_string());
        assert!(!is_taken(&node, &miner_id(&server, alias), ignored), "{alias}");
        assert!(is_taken(&node, &miner_id(&server, alias), mine(&node, &server, alias)), "{alias}");
        assert_eq!(identity(&first, alias)["stale"], json!(false));
    }
    let ready = others_server.get("/readyz");
    assert_eq!(ready.status, 503);
    assert!(ready.body.contains(r#""staleAliases":["old","pool"]"#), "{}", ready.body);
    drop(others_server);

    let newest = back_up(&first, "newest");
    server.kill();
    let (third, server) = restored(&node, &newest);
    drop(first);
    for Drill { alias, mine } in &DRILLS {
        for _ in 0..2 {
            assert_eq!(identity(&third, alias)["stale"], json!(false), "{alias}");
            third.cli_ok(&["miner", "rotate", "--name", alias]);
            let block = mine(&node, &server, alias);
            assert!(is_taken(&node, &miner_id(&server, alias), block), "{alias}");
            await_acknowledgement(&third, alias);
        }
    }
}
