//! Random walks: commands of an operator, blocks of everybody, and blocks that leave the main chain.

use std::fmt::Write;
use std::panic;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::rival::{Rival, height, tip};
use bsv_tests::{Dice, Node, Server, Site, Template, miner_info, repetitions};
use bsv_tx::BlockHash;
use serde_json::{Value, json};

use crate::scene::{await_acknowledgement, identity, node};

/// The first seed. Each walk has the next one, so that a run in full starts with the reduced one.
const SEED: u64 = 1;
const WALKERS: usize = 4;
const STEPS: usize = 14;

/// What an operator or the chain does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Own,
    Foreign,
    Rotate,
    RotateByForce,
    RollRevocationKey,
    RevokeCurrent,
    RevokeAll,
    Upgrade,
    Look,
    Restart,
    Kill,
    Fork,
    Reorganise,
    Settle,
}

/// Each as often as it is named.
const CHOICES: [Step; 24] = [
    Step::Own,
    Step::Own,
    Step::Own,
    Step::Own,
    Step::Own,
    Step::Own,
    Step::Foreign,
    Step::Foreign,
    Step::Rotate,
    Step::Rotate,
    Step::Rotate,
    Step::RotateByForce,
    Step::RollRevocationKey,
    Step::RollRevocationKey,
    Step::RevokeCurrent,
    Step::RevokeAll,
    Step::Upgrade,
    Step::Look,
    Step::Restart,
    Step::Kill,
    Step::Fork,
    Step::Reorganise,
    Step::Reorganise,
    Step::Settle,
];

/// An identity on its way.
struct Walk<'a> {
    alias: String,
    node: &'a Node,
    site: &'a Site,
    server: Option<Server>,
    /// A node with another chain, which is shown to all once it is longer.
    rival: Option<Rival>,
    /// One that has seen no block but those of the main chain, since blocks have left that.
    witness: Option<Node>,
    /// Whether a block that stays in the main chain shows the identity.
    is_shown: bool,
    /// What has happened.
    log: String,
}

impl Walk<'_> {
    fn begin(&mut self, protocol: &str) {
        self.cli(&["create", "--protocol", protocol]);
        if protocol == "0.2" {
            self.cli(&["vctx"]);
        }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it is away only while it restarts")
    }

    fn identity(&self) -> Value {
        identity(self.site, &self.alias)
    }

    fn has_ended(&self) -> bool {
        self.identity()["state"] == "closed"
    }

    /// Runs a command, which may be refused.
    fn cli(&mut self, command: &[&str]) {
        let arguments = [&["miner"], command, &["--name", &self.alias, "--json"]].concat();
        let done = self.site.cli(&arguments);
        writeln!(self.log, "{command:?}: {} {}", done.code, done.stderr.trim()).unwrap();
        assert!(done.code <= 1 && !done.stderr.contains("internal-error"), "{}", self.log);
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Own => self.mine_own(),
            Step::Foreign => {
                self.node.mine(1);
                self.show_to_witness();
            }
            Step::Rotate => self.cli(&["rotate"]),
            Step::RotateByForce => self.cli(&["rotate", "--force", "--yes"]),
            Step::RollRevocationKey => self.cli(&["revocation-key", "rotate"]),
            Step::RevokeCurrent => {
                let current = self.identity()["minerId"].as_str().unwrap().to_owned();
                self.cli(&["revoke", "--back-to", &current, "--yes"]);
            }
            Step::RevokeAll if self.identity()["protocol"] == "1.0" => {
                self.cli(&["revoke", "--all", "--yes"]);
            }
            Step::RevokeAll => {}
            Step::Upgrade => self.cli(&["upgrade", "--yes"]),
            Step::Look => {
                let height = Template::of(self.node, 1).height();
                for height in [height, height, height + 1] {
                    self.server().get(&format!("/opreturn/{}/{height}", self.alias));
                }
            }
            Step::Restart => assert_eq!(self.server.take().unwrap().stop(), 0),
            Step::Kill => self.server.take().unwrap().kill(),
            Step::Fork if self.is_shown && self.rival.is_none() => {
                self.rival = Some(Rival::of(self.node));
            }
            Step::Fork => {}
            Step::Reorganise => self.reorganise(),
            Step::Settle => await_acknowledgement_or_end(self),
        }
        if self.server.is_none() {
            self.server = Some(self.site.server());
        }
    }

    /// Mines a block with the document that is asked for right after the block before, which may have shown that the
    /// identity has ended.
    fn mine_own(&mut self) {
        if self.identity()["announced"].to_string().contains("completeRevocation") {
            // The last block may end the identity while the next one is being made.
            thread::sleep(Duration::from_secs(1));
        }
        let height = Template::of(self.node, 1).height();
        let path = format!("/opreturn/{}/{height}", self.alias);
        if self.server().request("HEAD", &path, b"").status == 422 {
            assert!(self.has_ended(), "{}", self.log);
            return;
        }
        let before = self.identity();
        let block = match before["protocol"].as_str().unwrap() {
            "0.2" => miner_info::mine_coinbase_document(self.node, self.server(), &self.alias),
            _ => miner_info::mine_from(self.node, self.server(), &self.alias).block,
        };
        writeln!(self.log, "own block {block}").unwrap();
        self.show_to_witness();
        self.judge(block);
        self.is_shown = true;
    }

    /// What the node, the verifier and the service say of a block must be the same.
    fn judge(&mut self, block: BlockHash) {
        let own = self.identity();
        let judge = self.witness.as_ref().unwrap_or(self.node);
        let miner_id = own["minerId"].as_str().unwrap();
        let known = miner_info::known(judge, miner_id);
        let is_revoked =
            own["announced"].to_string().contains("completeRevocation") || own["state"] == "closed";
        let expected = if is_revoked { "REVOKED" } else { "CURRENT" };
        assert_eq!(known["minerIdState"], expected, "{}\n{own:#}\n{}", self.log, complaints(judge));
        let miners = miner_info::states(judge).into_iter();
        let ours: Vec<_> = miners
            .filter(|ids| ids.iter().any(|(id, _)| own["minerIds"].to_string().contains(id)))
            .collect();
        assert_eq!(ours.len(), 1, "{}\n{ours:#?}", self.log);
        let arguments = ["miner", "verify", "--block", &block.to_string()];
        let report = self.site.cli_json(&arguments);
        assert_eq!(report["verdict"], "valid", "{}\n{report:#}", self.log);
        assert_eq!(report["acceptedByNode"], true, "{}\n{report:#}", self.log);
        assert_eq!(report["identity"]["minerId"], miner_id, "{}\n{report:#}", self.log);
    }

    /// Shows the main chain to the one that sees nothing else.
    fn show_to_witness(&self) {
        let Some(witness) = &self.witness else { return };
        for height in height(witness) + 1..=height(self.node) {
            let hash = self.node.call("getblockhash", json!([height]));
            let block = self.node.call("getblock", json!([hash, false]));
            witness.call("submitblock", json!([block]));
        }
        assert_eq!(tip(witness), tip(self.node), "{}", self.log);
    }

    /// Has the rival's chain become the main chain.
    fn reorganise(&mut self) {
        if self.witness.is_some() {
            return;
        }
        let Some(rival) = self.rival.take() else { return };
        rival.outgrow(self.node);
        rival.show_to(self.node);
        writeln!(self.log, "reorganised").unwrap();
        assert_eq!(tip(self.node), tip(&rival.node));
        self.witness = Some(rival.node);
        self.await_left();
    }

    /// Waits until the service has noticed which blocks have left the main chain.
    fn await_left(&self) {
        let has_left = |seen: &Value| {
            let header = self.node.call("getblockheader", json!([seen["blockHash"]]));
            header["confirmations"].as_i64().unwrap() < 0
        };
        // A complete revocation goes on whatever becomes of earlier blocks.
        self.wait_until(|own| {
            own["announced"].to_string().contains("completeRevocation")
                || !own["seenIn"].as_array().unwrap().iter().any(has_left)
        });
    }

    fn wait_until(&self, is_it: impl Fn(&Value) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_it(&self.identity()) {
            assert!(Instant::now() < deadline, "{}\n{:#}", self.log, self.identity());
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Waits until all is seen that blocks have shown; what nobody was shown stays announced.
fn await_acknowledgement_or_end(walk: &mut Walk<'_>) {
    walk.mine_own();
    if walk.witness.is_none() {
        await_acknowledgement(walk.site, &walk.alias);
    }
}

fn complaints(node: &Node) -> String {
    let log = node.log();
    let lines = log.lines().filter(|line| {
        line.contains("iner ID") || line.contains("inerInfo") || line.contains("minerid")
    });
    let lines: Vec<_> = lines.collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

fn walk(seed: u64) {
    let node = node();
    let site = Site::on(&node);
    let mut dice = Dice::new(seed << 32);
    let mut walk = Walk {
        alias: format!("walker-{seed}"),
        node: &node,
        site: &site,
        server: Some(site.server()),
        rival: None,
        witness: None,
        is_shown: false,
        log: format!("seed {seed}\n"),
    };
    walk.begin(dice.pick(&["0.2", "1.0", "1.0"]));
    for _ in 0..STEPS {
        if walk.has_ended() {
            break;
        }
        let step = CHOICES[dice.roll(CHOICES.len())];
        writeln!(walk.log, "{step:?}").unwrap();
        walk.take(step);
    }
    if !walk.has_ended() {
        walk.mine_own();
    }
}

#[test]
fn a_node_the_verifier_and_the_service_agree_after_each_block_of_a_random_walk() {
    let count = repetitions("random walks", 500, 8) as u64;
    let seeds = Mutex::new(SEED..SEED + count);
    let failed = Mutex::new(Vec::new());
    let next = || seeds.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..WALKERS {
            scope.spawn(|| {
                while let Some(seed) = next() {
                    if panic::catch_unwind(|| walk(seed)).is_err() {
                        failed.lock().unwrap().push(seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {count} walks failed, of the seeds {failed:?}", failed.len());
}
