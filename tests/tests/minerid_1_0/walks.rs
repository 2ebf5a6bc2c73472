//! Random walks: an operator changes an identity at random, and blocks come and go. After each
//! block, the node, the verifier and the service must agree on the identity.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::identified_block::Keys;
use bsv_tests::known_miners::of_node;
use bsv_tests::rival::{Rival, height, tip};
use bsv_tests::{Dice, Done, Node, Server, Site, Template, miner_info, repetitions};
use bsv_tx::{BlockHash, Script};
use serde_json::{Value, json};

use crate::minerid_1_0::scene::{identity, miner_id};

/// The first seed. Each walk has the next seed, so that a full run begins with the walks of a
/// reduced one.
const SEED: u64 = 17_000;
const STEPS: usize = 12;
/// How many walks share their nodes.
const WALKS_PER_SCENE: usize = 8;
const PATIENCE: Duration = Duration::from_secs(30);

/// The possible steps of a walk.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Mine a block with the identity. If `waits`, wait until the service has seen it.
    Own {
        waits: bool,
    },
    /// Mine a block without an identity on the service's own node.
    Bare,
    /// Mine a block with another miner's identity.
    Foreign,
    Rotate,
    ForceRotation,
    RollRevocationKey,
    RevokeBackToAny,
    RevokeAll,
    /// Mine a block that shows the announcements while the service is stopped, and confirm them
    /// without a node.
    Confirm,
    Upgrade,
    Restart,
    Kill,
    /// Ask for a document, and keep it for later.
    Ask,
    /// Mine a block with the kept document, whatever has changed since.
    OwnFromBefore,
    /// Ask for a document and put it into a transaction, change the identity perhaps, and mine a
    /// block with the next document.
    OwnInPlaceOfAnother,
    /// Hide the following blocks from the other nodes. If there already are hidden blocks, either
    /// they leave the main chain, or the other nodes get them too.
    PartOrMeet,
}

const CHOICES: &[(usize, Step)] = &[
    (16, Step::Own { waits: false }),
    (8, Step::Own { waits: true }),
    (3, Step::Bare),
    (3, Step::Foreign),
    (10, Step::Rotate),
    (5, Step::ForceRotation),
    (10, Step::RollRevocationKey),
    (4, Step::RevokeBackToAny),
    (1, Step::RevokeAll),
    (2, Step::Confirm),
    (4, Step::Upgrade),
    (2, Step::Restart),
    (2, Step::Kill),
    (5, Step::Ask),
    (8, Step::OwnFromBefore),
    (4, Step::OwnInPlaceOfAnother),
    (16, Step::PartOrMeet),
];

fn choose(dice: &mut Dice) -> Step {
    let mut left = dice.roll(CHOICES.iter().map(|(weight, _)| weight).sum());
    for (weight, step) in CHOICES {
        match left.checked_sub(*weight) {
            Some(rest) => left = rest,
            None => return *step,
        }
    }
    unreachable!("the weights have been added up")
}

/// The service's own node, another node that never sees the lost blocks, and a service. Several
/// walks share them.
struct Scene {
    node: Node,
    others: Rival,
    site: Site,
    server: Option<Server>,
    stranger: Keys,
}

impl Scene {
    fn begin() -> Self {
        // In safe mode, forks would keep nodes from making transactions.
        let [node, others] = [(); 2].map(|()| Node::start_with(&["disablesafemode=1"]));
        node.mine(101);
        miner_info::fund(&node);
        let others = Rival::from(others, &node);
        let mut site = Site::on(&node);
        // On a busy machine, the node answers late.
        site.set("minerid", json!({ "askNodeMs": 10_000 }));
        let server = Some(site.server());
        Self { node, others, site, server, stranger: Keys::first() }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    fn start_server(&mut self) {
        self.server = Some(self.site.server());
    }

    fn stop_server(&mut self) {
        assert_eq!(self.server.take().unwrap().stop(), 0);
    }
}

/// A document for a block.
struct Job {
    /// The hash of the previous block.
    parent: Value,
    /// The miner id that the document names.
    miner_id: String,
    payload: Payload,
    /// The announcements when the document was made, and the keys that vouch for them.
    announced: [Value; 4],
    /// Whether a revocation has made the document void since.
    is_void: bool,
}

enum Payload {
    /// Generation 0.2: the second part of the coinbase transaction.
    Coinbase2(Template, String),
    /// Generation 1.0: the script of the miner-info transaction.
    MinerInfo(Script),
}

/// The walk of one identity.
struct Walk<'s> {
    scene: &'s mut Scene,
    alias: String,
    seed: u64,
    dice: Dice,
    /// A log of the walk, which is printed after a failure.
    said: Vec<String>,
    held: Option<Job>,
    /// Whether the other node has seen the identity.
    is_known: bool,
    /// The height from which only the service's own node has the blocks.
    parted_at: Option<u64>,
    /// The blocks with the identity that only the service's own node has.
    own_since: Vec<BlockHash>,
    /// Whether the service's own node has seen lost blocks with the identity. It still believes
    /// them, so that it refuses documents that others accept.
    has_lost: bool,
    /// Whether the identity is revoked by a key that only lost blocks have shown. Others cannot
    /// know that key.
    ends_what_was_lost: bool,
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let Self { seed, alias, said, .. } = self;
            eprintln!("walk {seed} of {alias}:\n  {}", said.join("\n  "));
        }
    }
}

fn is_closed(identity: &Value) -> bool {
    identity["state"] == "closed" || identity["vctx"]["state"] == "revoked"
}

/// The announcements of documents, and the keys that vouch for them.
fn announced(identity: &Value) -> [Value; 4] {
    let names = ["announced", "prevMinerId", "prevRevocationKey", "revocationKey"];
    names.map(|name| identity[name].clone())
}

fn is_announced(identity: &Value, what: &str) -> bool {
    identity["announced"].as_array().unwrap().iter().any(|announced| announced == what)
}

/// The complaints about identities in a node's log, from an offset on.
fn complaints(node: &Node, from: usize) -> Vec<String> {
    let log = node.log();
    let lines = log.get(from..).unwrap_or_default().lines();
    let words = ["Invalid MinerInfo", "Miner ID error", "of unknown miner ID"];
    let complains = |line: &&str| words.iter().any(|words| line.contains(words));
    lines.filter(complains).map(str::to_owned).collect()
}

/// Whether a node has accepted the identity in its newest block under this key. Waits for the
/// node's verdict, which comes a moment after the block.
fn verdict(node: &Node, block: BlockHash, key: &str, log_from: usize) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let known = of_node(node);
        if known.get(key).is_some_and(|known| known["latestBlock"] == block.to_string()) {
            return Ok(());
        }
        let complaints = complaints(node, log_from);
        if !complaints.is_empty() {
            return Err(complaints.join("\n"));
        }
        let log = || node.log().get(log_from..).unwrap_or_default().to_owned();
        assert!(
            Instant::now() < deadline,
            "the node says nothing of {block} with {key}: {known:#?} {}",
            log()
        );
        thread::sleep(Duration::from_millis(5));
    }
}

impl<'s> Walk<'s> {
    fn begin(scene: &'s mut Scene, seed: u64) -> Self {
        // Adjacent seeds would produce the same numbers, one roll apart.
        let mut dice = Dice::new(seed << 32);
        let alias = format!("walk-{seed}");
        let is_old = dice.roll(4) == 0;
        let mut walk = Self {
            scene,
            alias,
            seed,
            dice,
            said: Vec::new(),
            held: None,
            is_known: false,
            parted_at: None,
            own_since: Vec::new(),
            has_lost: false,
            ends_what_was_lost: false,
        };
        let protocol = if is_old { "0.2" } else { "1.0" };
        walk.cli(&["create", "--protocol", protocol]);
        if is_old {
            walk.cli(&["vctx"]);
            // The command has mined a block.
            walk.follow();
        }
        walk
    }

    fn say(&mut self, what: impl Into<String>) {
        self.said.push(what.into());
    }

    fn identity(&self) -> Value {
        identity(&self.scene.site, &self.alias)
    }

    /// Runs a command of `bsv-cli miner` for the identity.
    fn cli(&mut self, command: &[&str]) -> Done {
        let arguments = [&["miner"], command, &["--name", &self.alias]].concat();
        let done = self.scene.site.cli(&arguments);
        let shown = [done.stdout.trim(), done.stderr.trim()].concat();
        let end = shown.lines().last().unwrap_or_default().to_owned();
        self.say(format!("{command:?}: {} {end}", done.code));
        done
    }

    /// Runs a command that may be refused for one of these reasons. Answers whether it succeeded.
    fn change(&mut self, command: &[&str], reasons: &[&str]) -> bool {
        let done = self.cli(command);
        let is_refused = reasons.iter().any(|reason| done.stderr.contains(reason));
        assert!(done.code == 0 || (done.code == 1 && is_refused), "{command:?}: {done:?}");
        done.code == 0
    }

    /// Gives the other node the blocks of the service's own node, unless these are hidden.
    fn follow(&mut self) {
        if self.parted_at.is_none() {
            self.scene.others.follow(&self.scene.node);
        }
    }

    /// Asks for a document. `None` if the identity has ended. Checks that the service calls the
    /// identity valid.
    fn ask(&mut self) -> Option<Job> {
        let before = self.identity();
        assert_eq!(before["stale"], json!(false), "{before:#}");
        let (node, server) = (&self.scene.node, self.scene.server());
        let (payload, reply) = match before["protocol"].as_str().unwrap() {
            "0.2" => {
                let template = miner_info::template_with_all(node);
                let request = template.coinbase2_request(node, &self.alias).to_string();
                let reply = server.post("/coinbase2", request);
                (Payload::Coinbase2(template, reply.body.clone()), reply)
            }
            _ => {
                let height = Template::of(node, 1).height();
                let reply = server.get(&format!("/opreturn/{}/{height}", self.alias));
                let script = Script::from_hex(&reply.body).unwrap_or_default();
                (Payload::MinerInfo(script), reply)
            }
        };
        let after = self.identity();
        if reply.status != 200 {
            assert!(reply.status == 422 && is_closed(&after), "{} {after:#}", reply.body);
            self.say("no document any more");
            return None;
        }
        assert!(!is_closed(&after), "{after:#}");
        assert_eq!(server.text(&format!("/opreturn/{}/isvalid", self.alias)), "true");
        let announced = announced(&after);
        let miner_id = miner_id(server, &self.alias);
        assert_eq!(after["minerId"], json!(miner_id));
        self.say(format!("document of {} announces {}", &miner_id[..8], announced[0]));
        let parent = tip(&self.scene.node);
        Some(Job { parent, miner_id, payload, announced, is_void: false })
    }

    /// Mines a block with the identity, and compares the verdicts of the nodes, the verifier and
    /// the service.
    fn mine(&mut self, job: &Job) {
        let (log, others_log) = (self.scene.node.log().len(), self.scene.others.node.log().len());
        let Scene { node, server, .. } = &*self.scene;
        let block = match &job.payload {
            Payload::Coinbase2(template, coinbase2) => template.mine(node, coinbase2),
            Payload::MinerInfo(script) => {
                let reference = |template: &Template, txid| {
                    let request = template.reference_request(&self.alias, txid).to_string();
                    let reply = server.as_ref().unwrap().post("/coinbase2", request);
                    assert_eq!(reply.status, 200, "{}", reply.body);
                    reply.body
                };
                miner_info::mine(node, script, reference).block
            }
        };
        self.say(format!("own block {block}, void {}", job.is_void));
        self.check_verifier(block, &job.miner_id);
        let verdict_of_own = verdict(&self.scene.node, block, &job.miner_id, log);
        self.say(format!("own node: {verdict_of_own:?}"));
        if job.is_void {
            assert!(self.has_lost || verdict_of_own.is_err(), "a revoked key was taken");
        } else if let Err(reason) = &verdict_of_own {
            assert!(self.has_lost, "the own node refuses the document: {reason}");
        }
        if self.parted_at.is_some() {
            self.own_since.push(block);
            return;
        }
        self.follow();
        let verdict_of_others = verdict(&self.scene.others.node, block, &job.miner_id, others_log);
        self.say(format!("others: {verdict_of_others:?}"));
        self.is_known |= verdict_of_others.is_ok();
        if let Err(reason) = verdict_of_others {
            // The other node does not know of a revocation that no block has shown.
            assert!(job.is_void || self.ends_what_was_lost, "others refuse the document: {reason}");
        }
    }

    /// Checks that the verifier finds the identity in a block, and calls it valid.
    fn check_verifier(&self, block: BlockHash, miner_id: &str) {
        let report = self.scene.site.cli_json(&["miner", "verify", "--block", &block.to_string()]);
        let found = [&report["verdict"], &report["acceptedByNode"], &report["identity"]["minerId"]];
        assert_eq!(found, [&json!("valid"), &json!(true), &json!(miner_id)], "{report:#}");
    }

    fn own(&mut self, waits: bool) {
        let Some(job) = self.ask() else { return self.bare() };
        self.mine(&job);
        if waits {
            self.await_seen(&job);
        }
    }

    /// Waits until the service has seen the announcements of the document in a block.
    fn await_seen(&mut self, job: &Job) {
        if job.announced[0] == json!([]) || self.ends_what_was_lost {
            return;
        }
        let deadline = Instant::now() + PATIENCE;
        let mut identity = self.identity();
        while announced(&identity) == job.announced {
            assert!(Instant::now() < deadline, "it is not seen: {identity:#}");
            thread::sleep(Duration::from_millis(20));
            identity = self.identity();
        }
        let state = (&identity["announced"], &identity["stale"]);
        self.said.push(format!("seen, announced is {}", state.0));
        assert_eq!(state.1, &json!(false));
    }

    fn bare(&mut self) {
        self.scene.node.mine(1);
        self.follow();
    }

    fn foreign(&mut self) {
        let Scene { node, stranger, .. } = &*self.scene;
        let document = stranger.miner_info(Template::of(node, 1).height());
        miner_info::mine_document(node, &document, &stranger.miner_id);
        self.follow();
    }

    fn rotate(&mut self) {
        let before = self.identity();
        let done = self.change(&["rotate"], &["has not been seen", "is closed"]);
        let may_refuse = before["announced"] != json!([]) || is_closed(&before);
        assert!(done || may_refuse, "{before:#}");
    }

    fn force_rotation(&mut self) {
        let before = self.identity();
        let reasons = ["has not been seen", "is closed"];
        let done = self.change(&["rotate", "--force", "--yes"], &reasons);
        let is_revoking = ["partialRevocation", "completeRevocation"]
            .iter()
            .any(|revocation| is_announced(&before, revocation));
        assert!(done || is_revoking || is_closed(&before), "{before:#}");
    }

    fn roll_revocation_key(&mut self) {
        let before = self.identity();
        if before["protocol"] == json!("0.2") {
            return;
        }
        let reasons = ["has not been seen", "is closed"];
        let done = self.change(&["revocation-key", "rotate"], &reasons);
        assert!(done || before["announced"] != json!([]) || is_closed(&before), "{before:#}");
    }

    fn revoke_back_to_any(&mut self) {
        let before = self.identity();
        if before["protocol"] == json!("0.2") {
            return;
        }
        let keys = before["minerIds"].as_array().unwrap();
        let key = keys[self.dice.roll(keys.len())].as_str().unwrap().to_owned();
        self.revoke(&["revoke", "--back-to", &key, "--yes"]);
    }

    fn revoke_all(&mut self) {
        let before = self.identity();
        let is_known = self.is_known && before["announced"] == json!([]);
        self.ends_what_was_lost |= self.has_lost && !is_known && before["protocol"] != json!("0.2");
        match before["protocol"].as_str().unwrap() {
            "0.2" => self.revoke(&["revoke", "--yes"]),
            _ => self.revoke(&["revoke", "--all", "--yes"]),
        }
    }

    fn revoke(&mut self, command: &[&str]) {
        let mut reasons = vec![
            "cannot be revoked",
            "has not been seen",
            "is closed",
            "is revoked",
            "has no VCTx",
            "with a document of protocol 1.0 yet",
        ];
        if self.has_lost {
            reasons.push("is recorded, but the node was not told");
        }
        let is_untold =
            !self.change(command, &reasons) && self.said.last().unwrap().contains("is recorded");
        match &mut self.held {
            _ if is_untold => self.held = None,
            // In generation 0.2, nodes do not look at the VCTx, so that the document remains valid
            // for them.
            Some(held) => {
                let is_void = !matches!(held.payload, Payload::Coinbase2(..));
                held.is_void |= is_void && self.said.last().unwrap().contains("]: 0 ");
            }
            None => {}
        }
    }

    fn confirm(&mut self) {
        let before = self.identity();
        let revokes = before["compromisedMinerId"] != Value::Null;
        let can_confirm = before["protocol"] == json!("1.0")
            && before["announced"] != json!([])
            && self.parted_at.is_none()
            && !self.has_lost;
        if !can_confirm || revokes || is_closed(&before) {
            return;
        }
        let Some(job) = self.ask() else { return };
        let Payload::MinerInfo(script) = &job.payload else { return };
        let mut server = self.scene.server.take();
        let Scene { node, .. } = &*self.scene;
        let log = node.log().len();
        let reference = |template: &Template, txid| {
            let request = template.reference_request(&self.alias, txid).to_string();
            let reply = server.as_ref().unwrap().post("/coinbase2", request);
            assert_eq!(reply.status, 200, "{}", reply.body);
            assert_eq!(server.take().unwrap().stop(), 0);
            reply.body
        };
        let block = miner_info::mine(node, script, reference).block;
        assert_eq!(verdict(node, block, &job.miner_id, log), Ok(()));
        self.follow();
        for name in ["rpcUser", "rpcPassword"] {
            self.scene.site.unset(name);
        }
        self.change(&["confirm", "--yes"], &[]);
        assert_eq!(self.identity()["announced"], json!([]));
        let Scene { node, site, .. } = &mut *self.scene;
        site.move_to(node);
        self.is_known = true;
        self.scene.start_server();
    }

    fn upgrade(&mut self) {
        let before = self.identity();
        if before["protocol"] == json!("0.2") {
            let done = self.change(&["upgrade", "--yes"], &["is revoked", "is of protocol 1.0"]);
            assert!(done || is_closed(&before), "{before:#}");
        }
    }

    /// Mines a block with the kept document, if it was made for the current tip.
    fn own_from_before(&mut self) {
        let Some(job) = self.held.take() else { return self.own(false) };
        match job.parent == tip(&self.scene.node) {
            true => self.mine(&job),
            false => self.own(false),
        }
    }

    fn own_in_place_of_another(&mut self) {
        let Some(job) = self.ask() else { return };
        let Scene { node, server, .. } = &*self.scene;
        if let Payload::MinerInfo(script) = &job.payload {
            let txid = miner_info::publish(node, script);
            let template = miner_info::template_with_all(node);
            let request = template.reference_request(&self.alias, txid).to_string();
            assert_eq!(server.as_ref().unwrap().post("/coinbase2", request).status, 200);
        }
        match self.dice.roll(4) {
            0 => self.rotate(),
            1 => self.roll_revocation_key(),
            2 => self.force_rotation(),
            _ => {}
        }
        self.own(false);
    }

    fn part_or_meet(&mut self) {
        match self.parted_at {
            None => self.parted_at = Some(height(&self.scene.node)),
            Some(from) if height(&self.scene.node) == from => {}
            Some(_) if self.dice.roll(4) == 0 => self.reunite(),
            Some(_) => self.lose(),
        }
    }

    fn reunite(&mut self) {
        self.parted_at = None;
        self.own_since.clear();
        self.follow();
    }

    fn lose(&mut self) {
        let Scene { node, others, .. } = &mut *self.scene;
        others.outgrow(node);
        others.show_to(node);
        assert_eq!(tip(node), tip(&others.node));
        others.follow(node);
        self.parted_at = None;
        self.held = None;
        self.has_lost |= !self.own_since.is_empty();
        let lost = std::mem::take(&mut self.own_since);
        self.say(format!("lost {} own blocks", lost.len()));
        self.await_loss_seen(&lost);
    }

    /// Waits until the service has seen that blocks have left the main chain.
    fn await_loss_seen(&mut self, lost: &[BlockHash]) {
        let lost: BTreeSet<_> = lost.iter().map(ToString::to_string).collect();
        let tip = height(&self.scene.node);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let identity = self.identity();
            let seen_in = identity["seenIn"].as_array().unwrap();
            let is_lost = |seen: &&Value| lost.contains(seen["blockHash"].as_str().unwrap());
            let stays = seen_in.iter().find(is_lost);
            let unseen = &identity["unseen"];
            let looked_at = unseen["sinceHeight"].as_u64().zip(unseen["blocks"].as_u64());
            // A complete revocation is announced further as it is.
            let has_looked = looked_at.is_some_and(|(since, blocks)| since + blocks >= tip);
            let is_ending = is_announced(&identity, "completeRevocation");
            self.ends_what_was_lost |= is_ending && stays.is_some();
            let has_seen = match identity["announced"] == json!([]) {
                true => stays.is_none(),
                false => has_looked && (stays.is_none() || is_ending),
            };
            if has_seen {
                self.say(format!("loss seen, announced is {}", identity["announced"]));
                return;
            }
            assert!(Instant::now() < deadline, "the loss is not seen: {identity:#}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn step(&mut self, step: Step) {
        self.say(format!("{step:?}"));
        match step {
            Step::Own { waits } => self.own(waits),
            Step::Bare => self.bare(),
            Step::Foreign => self.foreign(),
            Step::Rotate => self.rotate(),
            Step::ForceRotation => self.force_rotation(),
            Step::RollRevocationKey => self.roll_revocation_key(),
            Step::RevokeBackToAny => self.revoke_back_to_any(),
            Step::RevokeAll => self.revoke_all(),
            Step::Confirm => self.confirm(),
            Step::Upgrade => self.upgrade(),
            Step::Restart => {
                self.scene.stop_server();
                self.scene.start_server();
            }
            Step::Kill => {
                self.scene.server.take().unwrap().kill();
                self.scene.start_server();
            }
            // As long as nobody knows the identity, its key may be replaced meanwhile. Then no
            // document is kept.
            Step::Ask => self.held = self.is_known.then(|| self.ask()).flatten(),
            Step::OwnFromBefore => self.own_from_before(),
            Step::OwnInPlaceOfAnother => self.own_in_place_of_another(),
            Step::PartOrMeet => self.part_or_meet(),
        }
    }

    /// Mines until the service has seen all its announcements. Checks that the other node then
    /// knows the same of the identity as the service.
    fn settle(&mut self) {
        self.say("settle");
        self.part_or_meet();
        self.reunite();
        for _ in 0..8 {
            let Some(job) = self.ask() else { break };
            self.mine(&job);
            self.await_seen(&job);
            if job.announced[0] == json!([]) {
                break;
            }
        }
        let identity = self.identity();
        if self.ends_what_was_lost || (is_closed(&identity) && identity["vctx"] != Value::Null) {
            return;
        }
        assert_eq!(identity["announced"], json!([]), "{identity:#}");
        assert_eq!(identity["stale"], json!(false), "{identity:#}");
        if !self.is_known {
            return;
        }
        let current = identity["minerId"].as_str().unwrap();
        let known = miner_info::known(&self.scene.others.node, current);
        let state = if is_closed(&identity) { "REVOKED" } else { "CURRENT" };
        assert_eq!(known["minerIdState"], state, "{identity:#}");
        if identity["protocol"] == json!("1.0") && !is_closed(&identity) {
            assert_eq!(known["revocationKey"], identity["revocationKey"], "{identity:#}");
        }
        let is_own = |key: &String| identity["minerIds"].as_array().unwrap().contains(&json!(key));
        let miners = miner_info::states(&self.scene.others.node);
        let own = miners.iter().filter(|keys| keys.iter().any(|(key, _)| is_own(key)));
        assert_eq!(own.count(), 1, "others see several miners: {miners:#?} {identity:#}");
    }
}

fn walk(scene: &mut Scene, seed: u64) {
    let mut walk = Walk::begin(scene, seed);
    // Without this first block, a rotation would only replace a key that nobody knows.
    if walk.dice.roll(4) > 0 {
        walk.step(Step::Own { waits: false });
    }
    for _ in 0..STEPS {
        let step = choose(&mut walk.dice);
        walk.step(step);
    }
    walk.settle();
}

#[test]
fn a_node_the_verifier_and_the_service_agree_on_each_block_of_random_walks() {
    let count = repetitions("random walks", 500, 8) as u64;
    let seeds: Vec<_> = (SEED..SEED + count).collect();
    let run = |seeds: &[u64]| {
        for seeds in seeds.chunks(WALKS_PER_SCENE) {
            let mut scene = Scene::begin();
            seeds.iter().for_each(|seed| walk(&mut scene, *seed));
        }
    };
    // Two threads, since most of the time is spent waiting for nodes.
    let (some, others) = seeds.split_at(seeds.len() / 2);
    thread::scope(|scope| {
        scope.spawn(|| run(some));
        run(others);
    });
}
