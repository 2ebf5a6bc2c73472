//! Compares our BEEF with other implementations: npm `@bsv/sdk`, PyPI `bsv-sdk` and the crate
//! `bsv-rs`. Each must verify what the others write, and the others must accept all spoilt bytes
//! that ours accepts.

use std::collections::{BTreeMap, HashSet};
use std::process::Command;

use bsv_tests::fetch::{node_js, python_with};
use bsv_tests::jobs::ask;
use bsv_tests::{Dice, Lineage, repetitions};
use bsv_tx::{
    Beef, BeefError, BeefVerificationError, BeefVersion, Bump, ExtendedTransaction,
    FormedTransaction, MerkleRoot, Tip, Transaction, TxOut, Txid,
};
use serde_json::{Value, json};

/// The first seed. Each lineage has the next seed, so that a full run begins with the lineages of a
/// reduced one.
const SEED: u64 = 62_000;

const TIP: Tip = Tip { height: 900_000, median_time: 1_700_000_000 };

type Roots = BTreeMap<u32, MerkleRoot>;

fn lineages(what: &str) -> impl Iterator<Item = Lineage> {
    let count = repetitions(what, 2000, 40) as u64;
    (0..count).map(|number| Lineage::random(&mut Dice::new(SEED + 1000 * number)))
}

pub(crate) fn javascript() -> Command {
    let mut node = node_js();
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/npm/beef.cjs"));
    node
}

pub(crate) fn python() -> Command {
    let mut python = python_with("beef");
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/python/beef.py"));
    python
}

fn job_to_check(lineage: &Lineage, beef: &[u8], roots: &Roots, scripts: bool) -> Value {
    let roots: BTreeMap<_, _> =
        roots.iter().map(|(height, root)| (height, root.to_string())).collect();
    let beef = hex::encode(beef);
    json!({ "beef": beef, "roots": roots, "scripts": scripts, "lone": has_lone_block(lineage) })
}

fn job_to_make(lineage: &Lineage) -> Value {
    let Lineage { subject, ancestry, .. } = lineage;
    let transactions: Vec<_> = ancestry.transactions.iter().map(Transaction::to_hex).collect();
    let bumps: Vec<_> = ancestry.bumps.iter().map(|bump| hex::encode(bump.to_bytes())).collect();
    let make = json!({ "subject": subject.to_hex(), "transactions": transactions, "bumps": bumps });
    json!({ "make": make, "lone": has_lone_block(lineage) })
}

/// Whether a block of the lineage has only one transaction, whose id is then the Merkle root.
fn has_lone_block(lineage: &Lineage) -> bool {
    let is_lone = |bump: &Bump| {
        bump.txids().next().is_some_and(|txid| txid.as_bytes() == bump.root().as_bytes())
    };
    lineage.ancestry.bumps.iter().any(is_lone)
}

/// A program's answers to the jobs that it can do. Python cannot read the Merkle path of a block of
/// one transaction.
fn answers<'a>(name: &str, jobs: &'a [Value]) -> Vec<(usize, &'a Value, Value)> {
    let can = |(_, job): &(usize, &Value)| name == "JavaScript" || job["lone"] == false;
    let (places, jobs): (Vec<_>, Vec<_>) = jobs.iter().enumerate().filter(can).unzip();
    let program = if name == "JavaScript" { javascript() } else { python() };
    let answers = ask(program, &jobs);
    places
        .into_iter()
        .zip(jobs)
        .zip(answers)
        .map(|((place, job), answer)| (place, job, answer))
        .collect()
}

/// Our BEEFs of a lineage: in version 1 and 2, Atomic and not.
fn forms(lineage: &Lineage) -> Vec<Beef> {
    let versions = [BeefVersion::V1, BeefVersion::V2].into_iter();
    let plain = versions.map(|version| {
        Beef::new(version, lineage.subject.clone(), lineage.ancestry.clone()).unwrap()
    });
    plain.flat_map(|beef| [beef.clone(), beef.into_atomic().unwrap()]).collect()
}

fn verify(beef: &Beef, roots: &Roots) -> Result<(), BeefVerificationError> {
    let has_root = |height, root| roots.get(&height).map(|right| *right == root);
    beef.verify(TIP, has_root, |_| None)
}

/// Verifies a BEEF with our code. Checks that our code writes the same bytes again.
fn check(bytes: &[u8], txid: Txid, roots: &Roots) -> Result<(), BeefError> {
    let FormedTransaction::Beef(beef) = FormedTransaction::from_bytes(bytes)? else {
        panic!("not a beef: {}", hex::encode(bytes));
    };
    assert_eq!(beef.to_bytes(), bytes);
    assert_eq!(beef.subject_txid(), txid);
    assert_eq!(verify(&beef, roots), Ok(()), "{}", hex::encode(bytes));
    Ok(())
}

/// The same roots, except that the one at the lowest height is wrong.
fn wrong(roots: &Roots) -> Roots {
    let lowest = roots.keys().next().copied();
    let spoil = |(height, root): (&u32, &MerkleRoot)| match Some(*height) == lowest {
        true => (*height, MerkleRoot::from_bytes([7; 32])),
        false => (*height, *root),
    };
    roots.iter().map(spoil).collect()
}

/// The Merkle roots that a BEEF claims.
fn claimed(beef: &Beef) -> Roots {
    beef.claimed_roots().into_iter().collect()
}

fn read_by_bsv_rs(bytes: &[u8]) -> Result<BTreeMap<u32, String>, String> {
    let mut beef =
        bsv_rs::transaction::Beef::from_binary(bytes).map_err(|error| error.to_string())?;
    let roots = beef.verify_structure().map_err(|kind| format!("{kind:?}"))?;
    Ok(roots.into_iter().collect())
}

#[test]
fn others_verify_what_ours_writes() {
    let mut jobs = Vec::new();
    let mut expected = Vec::new();
    for lineage in lineages("others verify what ours writes") {
        for beef in forms(&lineage) {
            let bytes = beef.to_bytes();
            let roots = claimed(&beef);
            check(&bytes, lineage.subject.txid(), &roots).unwrap();
            jobs.push(job_to_check(&lineage, &bytes, &roots, true));
            expected.push(Some(beef.subject_txid().to_string()));
            jobs.push(job_to_check(&lineage, &bytes, &wrong(&roots), true));
            expected.push(None);
            let printed = roots.iter().map(|(height, root)| (*height, root.to_string())).collect();
            assert_eq!(read_by_bsv_rs(&bytes), Ok(printed));
        }
    }
    for name in ["JavaScript", "Python"] {
        for (place, job, answer) in answers(name, &jobs) {
            let expected = &expected[place];
            // For a BEEF of version 2 that is not Atomic, Python does not name the subject.
            let is_untold = answer == json!({ "txid": null }) && expected.is_some();
            assert!(
                is_untold || answer["txid"].as_str() == expected.as_deref(),
                "{name} {answer}\n{job}"
            );
        }
    }
}

#[test]
fn ours_verifies_what_others_write() {
    let lineages: Vec<_> = lineages("ours verifies what others write").collect();
    let jobs: Vec<_> = lineages.iter().map(job_to_make).collect();
    for name in ["JavaScript", "Python"] {
        let (mut asked, mut read) = (0, 0);
        for (place, job, answer) in answers(name, &jobs) {
            let lineage = &lineages[place];
            if name == "Python" && has_false_siblings(lineage) {
                continue;
            }
            asked += 1;
            let forms =
                answer["forms"].as_array().unwrap_or_else(|| panic!("{name} {answer}\n{job}"));
            for (number, form) in forms.iter().enumerate() {
                let bytes = hex::decode(form.as_str().unwrap()).unwrap();
                let checked = check(&bytes, lineage.subject.txid(), &lineage.roots);
                // In version 1, Python writes an ancestor once for each way that leads to it.
                if name == "Python" && number == 0 && has_two_ways(lineage) {
                    assert!(matches!(
                        checked,
                        Err(BeefError::Twice(_) | BeefError::ParentNotBefore { .. })
                    ));
                } else {
                    assert_eq!(checked, Ok(()), "{name}\n{form}\n{job}");
                    read += 1;
                }
            }
            let extended = hex::decode(answer["extended"].as_str().unwrap()).unwrap();
            let previous_outputs = previous_outputs(lineage);
            let ours = ExtendedTransaction::new(lineage.subject.clone(), previous_outputs).unwrap();
            assert_eq!(ours.to_bytes(), extended);
            assert_eq!(ExtendedTransaction::from_bytes(&extended), Ok(ours));
        }
        assert!(read >= 2 * asked && 2 * asked > lineages.len(), "{name}: {read} of {asked}");
    }
}

/// Whether Python may lose leaves when it combines the paths of a block. Python takes the leaf after
/// an odd one for its sibling, and removes both if the BEEF is about neither of them.
fn has_false_siblings(lineage: &Lineage) -> bool {
    lineage.roots.keys().any(|height| {
        let bumps = lineage.ancestry.bumps.iter().filter(|bump| bump.height() == *height);
        let siblings: HashSet<_> = bumps.flat_map(siblings).collect();
        siblings.iter().any(|offset| offset % 2 == 1 && siblings.contains(&(offset + 1)))
    })
}

/// The offsets of the leaves beside those that the path is about.
fn siblings(bump: &Bump) -> Vec<u64> {
    bump.txids().map(|txid| bump.branch(&txid).unwrap().position ^ 1).collect()
}

/// Whether more than one way leads from the subject to an ancestor that a BEEF needs.
fn has_two_ways(lineage: &Lineage) -> bool {
    let mined: HashSet<_> =
        lineage.ancestry.bumps.iter().flat_map(|bump| bump.txids().collect::<Vec<_>>()).collect();
    let transactions: BTreeMap<_, _> =
        lineage.ancestry.transactions.iter().map(|each| (each.txid(), each)).collect();
    let mut seen = HashSet::new();
    let mut to_visit = vec![&lineage.subject];
    while let Some(transaction) = to_visit.pop() {
        if mined.contains(&transaction.txid()) {
            continue;
        }
        for input in &transaction.inputs {
            let parent = transactions[&input.previous_output.txid];
            if !seen.insert(parent.txid()) {
                return true;
            }
            to_visit.push(parent);
        }
    }
    false
}

fn previous_outputs(lineage: &Lineage) -> Vec<TxOut> {
    let output = |input: &bsv_tx::TxIn| {
        let parent = lineage
            .ancestry
            .transactions
            .iter()
            .find(|each| each.txid() == input.previous_output.txid);
        parent.unwrap().outputs[input.previous_output.vout as usize].clone()
    };
    lineage.subject.inputs.iter().map(output).collect()
}

#[test]
fn spoilt_bytes_that_ours_accepts_are_accepted_by_all() {
    let mut dice = Dice::new(SEED);
    let mut jobs = Vec::new();
    let mut refused = 0;
    for lineage in lineages("spoilt bytes") {
        for beef in forms(&lineage) {
            let (roots, bytes) = (claimed(&beef), beef.to_bytes());
            for _ in 0..4 {
                let spoilt = spoil(&bytes, &mut dice);
                match Beef::from_bytes(&spoilt) {
                    Ok(beef) if verify(&beef, &roots).is_ok() => {
                        read_by_bsv_rs(&spoilt).unwrap();
                        jobs.push(job_to_check(&lineage, &spoilt, &roots, false));
                    }
                    _ => refused += 1,
                }
            }
        }
    }
    assert!(refused > jobs.len() && !jobs.is_empty(), "{refused} refused, {} taken", jobs.len());
    for name in ["JavaScript", "Python"] {
        for (_, job, answer) in answers(name, &jobs) {
            assert_eq!(answer.get("error"), None, "{name} {answer}\n{job}");
        }
    }
}

/// The same bytes with one changed, removed or inserted.
fn spoil(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut spoilt = bytes.to_vec();
    let place = dice.roll(bytes.len());
    match dice.roll(6) {
        0 => {
            spoilt.remove(place);
        }
        1 => spoilt.insert(place, dice.roll(256) as u8),
        _ => spoilt[place] ^= 1 << dice.roll(8),
    }
    spoilt
}
