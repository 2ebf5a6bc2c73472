//! Revocations that are killed at each of their steps: right before or after they wait for the disk
//! or for the node.

use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::killer::Killer;
use bsv_tests::{Gate, Hold, Node, Site, Template, is_full_run, miner_info};
use serde_json::{Value, json};

use crate::minerid_1_0::kills::{check_document, outline, silent};
use crate::minerid_1_0::scene::{assert_all_taken, await_acknowledgement, identity, node};

/// How often reduced runs kill each command at most.
const KILLS: u64 = 3;

/// A node, and a site whose commands are killed while they talk to it.
struct Scene {
    node: Node,
    gate: Gate,
    site: Site,
    killer: Killer,
}

/// A command that may have been killed.
struct Attempt {
    /// How many steps the command took.
    steps: u64,
    /// Whether it recorded the revocation.
    is_recorded: bool,
}

impl Scene {
    fn new() -> Self {
        let node = node();
        let gate = Gate::before(&node);
        let mut site = silent(gate.site());
        site.keep_on_disk();
        let killer = Killer::install(&mut site);
        Self { node, gate, site, killer }
    }

    /// Runs a command that is killed at `step`, and answers how many steps it took. If it took
    /// fewer than `step`, it has succeeded.
    fn run_until(&self, step: u64, command: &[&str]) -> u64 {
        self.killer.kill_at(step);
        let done = self.site.cli(command);
        let steps = self.killer.steps();
        self.killer.spare();
        assert_eq!(done.code, if steps < step { 0 } else { -1 }, "{command:?} at {step}: {done:?}");
        self.site.cli_ok(&["keystore", "verify"]);
        self.site.cli_ok(&["audit", "verify"]);
        steps
    }

    /// Mines a block, and checks that its document is valid and matches `identity`. The service
    /// does not see the block, so that it continues to announce what it announces.
    fn mine(&self, identity: &Value) {
        self.gate.shut("getmineridinfo", Hold::Call);
        let server = self.site.server();
        let alias = identity["alias"].as_str().unwrap();
        let height = Template::of(&self.node, 1).height();
        check_document(&server.text(&format!("/opreturn/{alias}/{height}")), identity);
        miner_info::mine_from(&self.node, &server, alias);
        drop(server);
        self.gate.open();
    }

    /// Makes an alias of protocol 1.0, and mines a block with each of its so many keys.
    fn generate_mined(&self, alias: &str, keys: usize) {
        self.site.cli_ok(&["generateminerid", "--name", alias, "--protocol", "1.0"]);
        let server = self.site.server();
        miner_info::mine_from(&self.node, &server, alias);
        for _ in 1..keys {
            self.site.cli_ok(&["rotateminerid", "--name", alias]);
            miner_info::mine_from(&self.node, &server, alias);
            self.site.cli_ok(&["miner", "confirm", "--yes", "--name", alias]);
        }
    }

    fn state(&self, miner_id: &Value) -> Value {
        miner_info::known(&self.node, miner_id.as_str().unwrap())["minerIdState"].clone()
    }

    /// Waits until the node lists the current miner id of an identity in this state. The node reads
    /// a block's identity a moment after the block.
    fn await_state(&self, identity: &Value, state: &str) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.state(&identity["minerId"]) != state {
            assert!(Instant::now() < deadline, "not {state}: {identity:#}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Revokes keys of a new alias that has so many keys, with a kill at `step`.
    fn revoke_miner_ids(&self, command: &str, alias: &str, keys: usize, step: u64) -> Attempt {
        self.generate_mined(alias, keys);
        let before = identity(&self.site, alias);
        let compromised = before["minerId"].as_str().unwrap();
        let back_to = ["--minerid", compromised];
        let is_partial = keys > 1;
        let command = [command, "--yes", "--name", alias];
        let command = [&command[..], if is_partial { &back_to } else { &[] }].concat();
        let steps = self.run_until(step, &command);

        let now = identity(&self.site, alias);
        let is_recorded = now["revocationTold"] != before["revocationTold"];
        assert!(is_recorded || steps >= step, "{command:?}");
        if is_recorded {
            check_recorded(&before, &now, is_partial);
        }
        if now["revocationTold"] == json!(true) {
            assert_eq!(self.state(&before["minerId"]), "REVOKED", "{command:?} killed at {step}");
        }
        self.mine(&now);
        let is_current = !is_recorded || is_partial;
        self.await_state(&now, if is_current { "CURRENT" } else { "REVOKED" });

        self.site.cli_ok(&command);
        let after = identity(&self.site, alias);
        check_recorded(&before, &after, is_partial);
        assert_eq!(after["revocationTold"], json!(true));
        assert!(!is_recorded || after["minerIds"] == now["minerIds"], "{now:#} {after:#}");
        assert_eq!(self.state(&before["minerId"]), "REVOKED");
        self.mine(&after);
        self.await_state(&after, if is_partial { "CURRENT" } else { "REVOKED" });
        let _server = self.site.server();
        await_acknowledgement(&self.site, alias);
        Attempt { steps, is_recorded }
    }
}

/// Runs `attempt` once without a kill, and then with a kill at one step after the other. Reduced runs
/// try only some steps, at equal distances.
///
/// Each attempt has a node of its own. On a chain that other attempts have made longer, the command
/// reads more blocks first, and takes more steps.
fn kill_at_steps(command: &str, attempt: impl Fn(&Scene, u64) -> Attempt) {
    let attempt = |step| {
        let scene = Scene::new();
        let attempt = attempt(&scene, step);
        assert_all_taken(&scene.node);
        attempt
    };
    let unharmed = attempt(u64::MAX);
    assert!(unharmed.is_recorded);
    let steps = unharmed.steps;
    let stride = if is_full_run() { 1 } else { steps.div_ceil(KILLS) };
    let mut random = [0; 8];
    getrandom::fill(&mut random).unwrap();
    let first = 1 + u64::from_ne_bytes(random) % stride;
    let (mut killed, mut recorded) = (Vec::new(), 0);
    for step in (first..=steps).step_by(stride as usize) {
        let attempt = attempt(step);
        // Runs may read the node's answers in different numbers of pieces, so that some runs
        // end before this step.
        if attempt.steps >= step {
            killed.push(step);
            recorded += usize::from(attempt.is_recorded);
        }
    }
    eprintln!(
        "{command}: killed at {killed:?} of {steps} steps (BSV_TEST_FULL=1 tries all), \
         {recorded} times when it was recorded"
    );
    assert!(!killed.is_empty(), "{command}");
    assert!(!is_full_run() || (1..killed.len()).contains(&recorded), "{command}");
}

/// Checks that the identity `now` differs from `before` only in that it announces a revocation.
fn check_recorded(before: &Value, now: &Value, is_partial: bool) {
    let mut expected = outline(before);
    if is_partial {
        expected["keys"] = json!(before["minerIds"].as_array().unwrap().len() + 1);
        expected["isPreviousItself"] = json!(false);
        expected["announced"] = json!(["partialRevocation"]);
        assert_eq!(now["prevMinerId"], before["minerId"]);
        assert_eq!(now["compromisedMinerId"], before["minerId"]);
    } else {
        expected["announced"] = json!(["completeRevocation"]);
        assert_eq!(now["minerId"], before["minerId"]);
        assert_eq!(now["compromisedMinerId"], before["firstMinerId"]);
    }
    assert_eq!(outline(now), expected);
}

#[test]
fn a_revocation_killed_at_any_step_is_recorded_or_not_and_can_be_repeated() {
    for (command, keys) in [("revokemineridpartially", 2), ("revokemineridcompletely", 1)] {
        kill_at_steps(command, |scene, step| scene.revoke_miner_ids(command, "pool", keys, step));
    }
}

#[test]
fn a_revocation_of_0_2_killed_at_any_step_is_recorded_or_not_and_can_be_repeated() {
    kill_at_steps("revokeminerid", |scene, step| {
        let (Scene { node, site, .. }, alias) = (scene, "pool");
        site.cli_ok(&["generateminerid", "--name", alias]);
        site.cli_ok(&["generatevctx", "--name", alias]);
        let before = decided(site, alias);
        let command = ["miner", "revoke", "--yes", "--name", alias];
        let steps = scene.run_until(step, &command);

        let now = decided(site, alias);
        let server = site.server();
        if now == before {
            assert!(steps >= step);
            let template = miner_info::template_with_all(node);
            let request = template.coinbase2_request(node, alias).to_string();
            let reply = server.post("/coinbase2", request);
            assert_eq!(reply.status, 200, "{}", reply.body);
            template.mine(node, &reply.body);
            scene.await_state(&now, "CURRENT");
            assert_ne!(unspent(node, &now), json!(null), "killed at {step}");
        } else {
            check_ended(&before, &now);
            let refused = server.get(&format!("/opreturn/{alias}/200"));
            assert_eq!((refused.status, refused.body.contains("is revoked")), (422, true));
        }
        drop(server);

        site.cli_ok(&command);
        let after = decided(site, alias);
        check_ended(&before, &after);
        assert!(now == before || after == now, "{now:#} {after:#}");
        assert_eq!(unspent(node, &after), json!(null));
        Attempt { steps, is_recorded: now != before }
    });
}

/// What the command line shows of `alias`, without the members that change when the service sees
/// blocks or hands out documents.
fn decided(site: &Site, alias: &str) -> Value {
    let mut identity = identity(site, alias);
    for seen in ["exposure", "seenIn"] {
        identity.as_object_mut().unwrap().remove(seen);
    }
    identity
}

/// What the node answers about the output of an identity's VCTx: null if the output is spent.
fn unspent(node: &Node, identity: &Value) -> Value {
    let outpoint = identity["vctx"]["outpoint"].as_str().unwrap();
    let (txid, index) = outpoint.split_once(':').unwrap();
    node.call("gettxout", json!([txid, index.parse::<u32>().unwrap(), true]))
}

/// Checks that the identity `now` differs from `before` only in that its VCTx is spent.
fn check_ended(before: &Value, now: &Value) {
    let mut expected = before.clone();
    expected["vctx"]["state"] = json!("revoked");
    expected["vctx"]["txid"] = now["vctx"]["txid"].clone();
    assert_eq!(*now, expected);
    assert!(now["vctx"]["txid"].is_string());
}
