//! Verifying blocks that are made in memory.

use std::sync::Arc;

use bsv_minerid::formats::{DataRef, DataScript, Revocation};
use bsv_minerid::verify::{
    BlockProof, Check, DataOutputs, Evidence, MinerInfoEvidence, Outcome, Report, VctxState,
    Verdict, verify,
};
use bsv_tests::identified_block::{self, HEIGHT, Keys, VCTX};
use bsv_tx::{BlockHash, MerkleRoot, Script, Txid};

use crate::verify::spoilt::{
    Node, SpoiltDocument, SpoiltMinerInfo, coinbase_documents, documents, signed,
};

pub(crate) fn failing(report: &Report) -> Vec<Check> {
    let findings = report.findings.iter().chain(report.candidates.iter().flat_map(|c| &c.findings));
    let fails = findings.filter(|finding| matches!(finding.outcome, Outcome::Fails(_)));
    fails.map(|finding| finding.check).collect()
}

/// Checks the verdict on a spoilt identity: which checks fail, and whether a node accepts it.
pub(crate) fn check_verdict(name: &str, fail: &[Check], node: Node, report: &Report) {
    assert_eq!(failing(report), fail, "{name}: {report:#?}");
    assert_eq!(report.verdict(), Verdict::Invalid, "{name}: {report:#?}");
    assert_eq!(report.passes_node(), Some(node == Node::Takes), "{name}: {report:#?}");
    assert_eq!(report.identity(), None, "{name}");
}

fn of_miner_info(variant: &SpoiltMinerInfo) -> Report {
    let keys = (variant.keys)(&Keys::first());
    let document = (variant.document)(&keys, keys.miner_info(HEIGHT));
    let script = (variant.script)(&keys, &document);
    let (block, evidence) = identified_block::with_miner_info(&script, &keys.miner_id, |right| {
        (variant.reference)(&keys, right)
    });
    verify(&block, &evidence)
}

fn of_document(variant: &SpoiltDocument) -> Report {
    let keys = Keys::first();
    let document = (variant.document)(&keys, keys.document(HEIGHT).to_json());
    let block = identified_block::with_output(&(variant.script)(&keys, &document));
    verify(&block, &Evidence::default())
}

fn valid_miner_info() -> (Keys, BlockProof, Evidence) {
    let keys = Keys::first();
    let script = signed(&keys, keys.miner_info(HEIGHT).to_json());
    let (block, evidence) =
        identified_block::with_miner_info(&script, &keys.miner_id, |right| right.to_script());
    (keys, block, evidence)
}

#[test]
fn of_each_spoilt_miner_info_only_the_spoilt_part_fails() {
    let variants = documents::all();
    assert!(variants.len() >= 50, "{}", variants.len());
    for variant in variants {
        check_verdict(variant.name, variant.fail, variant.node, &of_miner_info(&variant));
    }
}

#[test]
fn of_each_spoilt_coinbase_document_only_the_spoilt_part_fails() {
    let variants = coinbase_documents::all();
    assert!(variants.len() >= 20, "{}", variants.len());
    for variant in variants {
        check_verdict(variant.name, variant.fail, variant.node, &of_document(&variant));
    }
}

#[test]
fn the_announcements_of_every_identity_are_found() {
    let first = Keys::first();
    for keys in [first.clone(), first.rotated(), first.rolled(), first.rotated().rolled()] {
        let script = signed(&keys, keys.miner_info(HEIGHT).to_json());
        let (block, evidence) =
            identified_block::with_miner_info(&script, &keys.miner_id, |right| right.to_script());
        let report = verify(&block, &evidence);
        assert_eq!(report.verdict(), Verdict::Valid, "{report:#?}");
        assert_eq!((report.passes_node(), report.height), (Some(true), Some(HEIGHT)));
        let identity = report.identity().unwrap();
        assert_eq!(identity.miner_id, keys.miner_id.public_key());
        assert_eq!(identity.previous_miner_id, keys.previous_miner_id.public_key());
        let revocation_keys = identity.revocation_keys.unwrap();
        assert_eq!(revocation_keys.current, keys.revocation_key.public_key());
        assert_eq!(revocation_keys.previous, keys.previous_revocation_key.public_key());
        assert_eq!(identity.name.as_deref(), Some("a pool"));
        assert_eq!(identity.compromised_miner_id, None);
    }
}

#[test]
fn valid_revocations_are_accepted() {
    let first = Keys::first();
    for keys in [first.clone(), first.rotated()] {
        let mut document = keys.miner_info(HEIGHT);
        let compromised = first.miner_id.public_key();
        document.revocation = Some(
            Revocation::sign(compromised, &keys.revocation_key, &keys.previous_miner_id).unwrap(),
        );
        let script = signed(&keys, document.to_json());
        let (block, evidence) =
            identified_block::with_miner_info(&script, &keys.miner_id, |right| right.to_script());
        let report = verify(&block, &evidence);
        assert_eq!(report.verdict(), Verdict::Valid, "{report:#?}");
        let identity = report.identity().unwrap();
        assert_eq!(identity.compromised_miner_id, Some(compromised.to_string()));
    }
}

#[test]
fn the_state_of_a_vctx_decides_if_it_is_known() {
    let keys = Keys::first().rotated();
    let script = keys.sign(&keys.document(HEIGHT).to_json());
    let block = identified_block::with_output(&script);
    let with_state = |state| {
        let vctxs = [(VCTX, state)].into();
        verify(&block, &Evidence { vctxs, ..Evidence::default() })
    };
    let report = with_state(VctxState::Unspent);
    assert_eq!((report.verdict(), failing(&report)), (Verdict::Valid, vec![]), "{report:#?}");
    assert_eq!(report.identity().unwrap().vctx, Some(VCTX));
    let report = with_state(VctxState::Spent);
    assert_eq!((report.verdict(), report.passes_node()), (Verdict::Invalid, Some(true)));
    assert_eq!(failing(&report), [Check::Vctx]);
    let report = verify(&block, &Evidence::default());
    assert_eq!(report.verdict(), Verdict::Valid, "{report:#?}");
    let vctx = report.candidates[0].findings.iter().find(|finding| finding.check == Check::Vctx);
    assert!(matches!(vctx.unwrap().outcome, Outcome::Unchecked(_)));
}

#[test]
fn a_block_binding_of_generation_0_2_holds_for_its_block_alone() {
    let keys = Keys::first();
    let script = keys.sign(&identified_block::bound(keys.document(HEIGHT)).to_json());
    let mut block = identified_block::with_output(&script);
    let report = verify(&block, &Evidence::default());
    assert_eq!(report.verdict(), Verdict::Valid, "{report:#?}");
    let findings = &report.candidates[0].findings;
    let binding = findings.iter().find(|finding| finding.check == Check::BlockBinding);
    assert_eq!(binding.unwrap().outcome, Outcome::Holds);

    block.coinbase.outputs[0].satoshis -= 1;
    block.header.merkle_root = block.branch.root(&block.coinbase.txid()).unwrap();
    block.header = identified_block::solve_again(block.header);
    let report = verify(&block, &Evidence::default());
    assert_eq!(failing(&report), [Check::BlockBinding]);
    assert_eq!(report.passes_node(), Some(true));
}

#[test]
fn references_to_data_are_checked_if_the_data_is_available() {
    const ID: &str = "62b21572ca46";
    let right = format!(r#"{{"{ID}":{{"alpha":1}}}}"#);
    let script = |data: &str| DataScript { data: data.as_bytes().to_vec() }.to_script();
    let twelve_digits = "the data must have 12 hexadecimal characters for names, and objects";
    for (script, vout, compress, fails) in [
        (script(&right), 0, None, None),
        (script(&right), 1, None, Some("there is no such output")),
        (script("[]"), 0, None, Some("the data is not a JSON object")),
        (script(&right.replace("46", "4")), 0, None, Some(twelve_digits)),
        (script(&right.replace(r#"{"alpha":1}"#, "1")), 0, None, Some(twelve_digits)),
        (script(&right.replace("46", "47")), 0, None, Some("the data lacks a brfcId")),
        (Script::p2pkh(&[0; 20]), 0, None, Some("the output is not a script of miner info")),
        (script("\u{1f}\u{8b}"), 0, Some("gzip"), None),
    ] {
        let data = identified_block::carrying(&script);
        let keys = Keys::first();
        let mut document = keys.miner_info(HEIGHT);
        document.data_refs = vec![DataRef {
            brfc_ids: vec![ID.to_owned()],
            txid: data.txid(),
            vout,
            compress: compress.map(str::to_owned),
        }];
        let script = signed(&keys, document.to_json());
        let (block, mut evidence) =
            identified_block::with_miner_info(&script, &keys.miner_id, |right| right.to_script());
        let report = verify(&block, &evidence);
        assert_eq!(report.verdict(), Verdict::Valid, "{report:#?}");
        assert_eq!(report.identity().unwrap().data_refs, document.data_refs);
        let outcome = |report: &Report| {
            let mut findings = report.candidates[0].findings.iter();
            findings.find(|finding| finding.check == Check::DataRefs).unwrap().outcome.clone()
        };
        assert!(matches!(outcome(&report), Outcome::Unchecked(_)), "{report:#?}");

        evidence.data = [(data.txid(), Arc::new(DataOutputs::of(&data)))].into();
        let report = verify(&block, &evidence);
        assert_eq!(report.passes_node(), Some(true), "nodes do not look at the data");
        match (outcome(&report), fails) {
            (Outcome::Holds, None) => assert_eq!(report.verdict(), Verdict::Valid),
            (Outcome::Fails(reason), Some(expected)) => {
                assert!(reason.contains(expected), "{reason}");
                assert_eq!(report.verdict(), Verdict::Invalid);
            }
            (outcome, expected) => panic!("{outcome:?}, not {expected:?}"),
        }
    }
}

/// What can be wrong with the proof of the block and with the evidence.
#[test]
fn an_invalid_proof_is_noticed() {
    type Spoil = fn(&mut BlockProof, &mut Evidence);
    type Case = (&'static str, &'static [Check], Verdict, Option<bool>, Spoil);
    let cases: [Case; 10] = [
        ("no proof of work", &[Check::ProofOfWork], Verdict::Invalid, Some(false), |block, _| {
            block.header.bits = 0x1d00_ffff;
        }),
        (
            "another Merkle root",
            &[Check::CoinbaseInclusion, Check::MinerInfoInclusion],
            Verdict::Invalid,
            Some(false),
            |block, _| block.header.merkle_root = MerkleRoot::from_bytes([1; 32]),
        ),
        (
            "another block before",
            &[Check::BlockBinding],
            Verdict::Invalid,
            Some(false),
            |block, _| block.header.previous_block = BlockHash::from_bytes([1; 32]),
        ),
        (
            "coinbase in another place",
            &[Check::CoinbaseInclusion, Check::BlockBinding],
            Verdict::Invalid,
            Some(false),
            |block, _| block.branch.position = 1,
        ),
        (
            "no coinbase transaction",
            &[Check::CoinbaseInclusion],
            Verdict::Invalid,
            Some(false),
            |block, _| {
                block.coinbase.inputs[0].previous_output.txid = Txid::from_bytes([1; 32]);
            },
        ),
        ("another height", &[Check::Height], Verdict::Invalid, Some(true), |block, _| {
            block.height = Some(HEIGHT - 1);
        }),
        ("no miner-info transaction", &[], Verdict::Undecided, None, |_, evidence| {
            evidence.miner_info = MinerInfoEvidence::Unknown;
        }),
        (
            "miner-info transaction elsewhere",
            &[Check::MinerInfoInclusion],
            Verdict::Invalid,
            Some(false),
            |_, evidence| evidence.miner_info = MinerInfoEvidence::NotInBlock,
        ),
        ("no branch of it", &[], Verdict::Undecided, None, |_, evidence| {
            let MinerInfoEvidence::Found { branch, .. } = &mut evidence.miner_info else {
                panic!()
            };
            *branch = None;
        }),
        (
            "another branch of it",
            &[Check::MinerInfoInclusion],
            Verdict::Invalid,
            None,
            |_, evidence| {
                let MinerInfoEvidence::Found { branch: Some(branch), .. } =
                    &mut evidence.miner_info
                else {
                    panic!()
                };
                branch.position = 3;
            },
        ),
    ];
    for (name, fail, verdict, passes_node, spoil) in cases {
        let (_, mut block, mut evidence) = valid_miner_info();
        spoil(&mut block, &mut evidence);
        // The header gets a new proof of work, unless its proof of work is the spoilt part.
        if fail != [Check::ProofOfWork] {
            block.header = identified_block::solve_again(block.header);
        }
        let report = verify(&block, &evidence);
        let fails: Vec<_> = failing(&report);
        assert!(fail.iter().all(|check| fails.contains(check)), "{name}: {report:#?}");
        assert_eq!((report.verdict(), report.passes_node()), (verdict, passes_node), "{name}");
        assert_eq!(report.identity(), None, "{name}");
    }
}

#[test]
fn a_block_without_an_identity_output_has_none() {
    for script in ["", "6a", "006a04ac1eed88", "006a04ac1eed88ac", "006a4c04ac1eed880101"] {
        let block = identified_block::with_output(&Script::from_hex(script).unwrap());
        let report = verify(&block, &Evidence::default());
        assert_eq!(report.verdict(), Verdict::NoIdentity, "{script}");
        assert_eq!((report.passes_node(), report.candidates.len()), (Some(false), 0));
    }
}

/// Nodes accept the first valid output. After an invalid output of generation 1.0, they do not look
/// at further ones.
#[test]
fn outputs_count_in_their_order() {
    let (keys, other) = (Keys::first(), Keys::first());
    let sign = |keys: &Keys| keys.sign(&keys.document(HEIGHT).to_json());
    let (right, second) = (sign(&keys), sign(&other));
    let wrong = keys.sign(&keys.document(HEIGHT + 1).to_json());
    let broken = Script::from_hex("006a04601dface00").unwrap();
    let spoilt =
        |from: &str, to: &str| keys.sign(&keys.document(HEIGHT).to_json().replacen(from, to, 1));
    let height = format!(r#""height":{HEIGHT}"#);
    let [vout, height_and_no_id, vout_by_a_stranger] = [
        spoilt(r#""vout":0"#, r#""vout":0.5"#),
        spoilt(&format!(r#"{height},"prevMinerId""#), r#""height":0.5,"x""#),
        other.sign(&keys.document(HEIGHT).to_json().replacen(r#""vout":0"#, r#""vout":0.5"#, 1)),
    ];
    for (scripts, outputs, found) in [
        ([&vout, &second], vec![1], None),
        ([&height_and_no_id, &second], vec![1], None),
        ([&vout_by_a_stranger, &second], vec![1, 2], Some(&other)),
        ([&right, &second], vec![1], Some(&keys)),
        ([&wrong, &second], vec![1, 2], Some(&other)),
        ([&broken, &second], vec![1], None),
        ([&wrong, &broken], vec![1, 2], None),
        ([&right, &broken], vec![1], Some(&keys)),
    ] {
        let block = identified_block::with_outputs(&scripts.map(Clone::clone));
        let report = verify(&block, &Evidence::default());
        let seen: Vec<_> = report.candidates.iter().map(|candidate| candidate.output).collect();
        assert_eq!(seen, outputs, "{report:#?}");
        let identity = report.identity().map(|identity| identity.miner_id);
        assert_eq!(identity, found.map(|keys| keys.miner_id.public_key()), "{report:#?}");
    }
}
