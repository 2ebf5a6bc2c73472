//! Compares the verifier with a real node on random odd blocks.

use std::collections::BTreeMap;

use bsv_minerid::CanonicalJson;
use bsv_minerid::formats::IdentityScript;
use bsv_minerid::ledger::{Event, Ledger};
use bsv_tests::identified_block::Keys;
use bsv_tests::{Dice, repetitions};
use bsv_tx::{BlockHash, PrivateKey, Script, sha256};

use crate::verify::node::Chain;
use crate::verify::odd::{self, Json};
use crate::verify::right::{self, UNSIGNED};
use crate::verify::spoilt::with_signature;

/// The first seed. Each block has the next seed, so that a full run begins with the blocks of a
/// reduced one.
const SEED: u64 = 17_000;

/// The keys of a miner, which are the same in each run.
fn keys(number: u8) -> Keys {
    let key = |use_of_it: u8| PrivateKey::from_bytes(&sha256(&[number, use_of_it])).unwrap();
    Keys {
        miner_id: key(0),
        previous_miner_id: key(0),
        revocation_key: key(1),
        previous_revocation_key: key(1),
    }
}

/// The bytes that nodes presumably read from a signed hexadecimal text.
fn read_by_node(text: &[u8]) -> Vec<u8> {
    let is_read = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if !text.iter().all(is_read) {
        return Vec::new();
    }
    hex::decode(&text[..text.len() / 2 * 2]).unwrap()
}

/// An odd document of generation 0.2, and the text that is signed for it.
fn odd_document(keys: &Keys, height: u32, dice: &mut Dice) -> Vec<Vec<u8>> {
    let version = if dice.roll(6) == 0 { "0.1" } else { "0.2" };
    let mut document = right::document(keys, height, version);
    let is_early = dice.roll(2) == 0;
    if is_early {
        document.spoil(dice);
    }
    let part = |path: &[&str]| document.string(path).unwrap_or_default().to_vec();
    let parts = [part(&["prevMinerId"]), part(&["minerId"]), part(&["vctx", "txId"])];
    let specified = hex::decode(parts.concat().to_ascii_lowercase());
    let preimage = match specified {
        _ if version == "0.1" => parts.concat(),
        Ok(specified) if dice.roll(2) == 0 => specified,
        _ => parts.map(|part| read_by_node(&part)).concat(),
    };
    let signature = keys.previous_miner_id.sign(&sha256(&preimage));
    document.fill(UNSIGNED, &signature.to_string());
    if !is_early || dice.roll(4) == 0 {
        document.spoil(dice);
    }
    let mut text = Vec::new();
    document.write(&mut text);
    if dice.roll(5) == 0 {
        odd::spoil_text(&mut text, dice);
    }
    let printed = std::str::from_utf8(&text).ok().and_then(|t| CanonicalJson::from_text(t).ok());
    let printed = printed.map(|printed| printed.as_str().as_bytes().to_vec());
    match printed {
        Some(printed) if dice.roll(6) > 0 => vec![text, printed],
        _ => vec![text.clone(), text],
    }
}

/// Outputs of generation 0.2: an odd one, and often a valid one of another miner after it.
fn odd_outputs(keys: &Keys, other: &Keys, height: u32, dice: &mut Dice) -> Vec<Script> {
    let mut parts = odd_document(keys, height, dice);
    let (to_sign, text) = (parts.pop().unwrap(), parts.pop().unwrap());
    let signature = keys.miner_id.sign(&sha256(&to_sign)).to_der();
    let mut script = IdentityScript { document: text, signature: signature.clone() }.to_script();
    if dice.roll(4) == 0 {
        script = with_dynamic(&script, &[to_sign, signature].concat(), dice);
    }
    if dice.roll(8) == 0 {
        script = odd::spoil_script(&script, dice);
    }
    let mut scripts = vec![script];
    if dice.roll(2) == 0 {
        scripts.push(other.sign(&other.document(height).to_json()));
    }
    scripts
}

/// Appends a dynamic document, valid or odd, to the document before.
fn with_dynamic(script: &Script, before: &[u8], dice: &mut Dice) -> Script {
    let key = keys(dice.roll(256) as u8).miner_id;
    let mut dynamic = Json::object([
        ("dynamicMinerId", Json::text(&key.public_key().to_string())),
        ("version", Json::text("0.2")),
        ("vctx", Json::object([("txId", Json::text("00")), ("vout", Json::raw("1"))])),
        ("dataRefs", Json::object([("refs", Json::Array(Vec::new()))])),
    ]);
    if dice.roll(4) > 0 {
        dynamic.spoil(dice);
    }
    let mut document = Vec::new();
    dynamic.write(&mut document);
    let signature = key.sign(&sha256(&[before, &document].concat())).to_der();
    let second = IdentityScript { document, signature }.to_script();
    Script::from_bytes([script.as_bytes(), &second.as_bytes()[7..]].concat())
}

/// An odd document of generation 1.0.
fn odd_miner_info(keys: &Keys, height: u32, dice: &mut Dice) -> Vec<u8> {
    let mut document = right::miner_info(keys, height);
    document.spoil(dice);
    if dice.roll(4) == 0 {
        document.spoil(dice);
    }
    let mut text = Vec::new();
    document.write(&mut text);
    if dice.roll(5) == 0 {
        odd::spoil_text(&mut text, dice);
    }
    text
}

/// A block with something odd in it.
struct OddBlock {
    block: BlockHash,
    /// The odd part, which is printed after a disagreement.
    shown: String,
    /// The shortest signature that the block pushes in generation 1.0.
    shortest: usize,
}

/// The least length of signatures in scripts of generation 1.0, for the node of the tests and all
/// others before 1.2.0. By chance, about one signature in forty thousand is shorter. Later nodes
/// accept it.
const SHORTEST_BEFORE_1_2_0: usize = 69;

/// Builds and mines so many odd blocks, and compares the verdicts on each.
fn compare(blocks: usize, mine: impl Fn(&Chain, &mut Dice) -> OddBlock) {
    let chain = Chain::start();
    let mut ledger = Ledger::new();
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    let mut disagreements = Vec::new();
    for seed in SEED..SEED + blocks as u64 {
        // The seeds are far apart, since adjacent seeds would produce the same numbers, one roll
        // apart.
        let OddBlock { block, shown, shortest } = mine(&chain, &mut Dice::new(seed << 32));
        if shortest < SHORTEST_BEFORE_1_2_0 {
            continue;
        }
        let report = chain.verify(&block);
        let claim = report.passes_node().unwrap().then(|| report.claim().unwrap());
        let entry = ledger.connect(block, report.height.unwrap(), claim);
        let is_taken = !matches!(entry.event, Event::NoIdentity | Event::Refused(_));
        let ours = claim.filter(|_| is_taken).map(|claim| claim.miner_id.to_string());
        *found.entry(entry.event.name()).or_default() += 1;
        if ours != chain.taken_by(&block) {
            let log = chain.node.log();
            let said: Vec<_> = log.lines().rev().take(6).collect();
            disagreements.push(format!("seed {seed}: {shown}\nnode: {said:#?}\nwe: {report:#?}"));
        }
    }
    eprintln!("{found:?}");
    let list = disagreements.join("\n\n");
    assert!(disagreements.is_empty(), "{} of {blocks} blocks:\n{list}", disagreements.len());
    // If all blocks were refused, or all accepted, the comparison would show nothing.
    assert!(found["no-identity"] > blocks / 5 && found["continued"] > blocks / 5, "{found:?}");
}

#[test]
fn the_node_and_the_verifier_agree_on_odd_coinbase_documents() {
    let [keys, other] = [keys(0), keys(1)];
    compare(repetitions("odd coinbase documents", 350, 60), |chain, dice| {
        let scripts = odd_outputs(&keys, &other, chain.next_height(), dice);
        let shown: Vec<_> =
            scripts.iter().map(|script| script.as_bytes().escape_ascii().to_string()).collect();
        OddBlock {
            block: chain.mine_outputs(&scripts),
            shown: shown.join("\n"),
            shortest: usize::MAX,
        }
    });
}

#[test]
fn the_node_and_the_verifier_agree_on_odd_miner_info() {
    let keys = keys(0);
    compare(repetitions("odd miner-info documents", 350, 60), |chain, dice| {
        let document = odd_miner_info(&keys, chain.next_height(), dice);
        let shown = document.escape_ascii().to_string();
        let signature = keys.miner_id.sign(&sha256(&document)).to_der();
        let mut shortest = signature.len();
        let script = with_signature(document, signature);
        let block = chain.mine_miner_info(&script, &keys.miner_id, |right| {
            shortest = shortest.min(right.signature.len());
            right.to_script()
        });
        OddBlock { block, shown, shortest }
    });
}
