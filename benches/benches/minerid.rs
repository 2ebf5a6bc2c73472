//! How long an identity's operations take, in multiples of one bare ECDSA signature.

#![allow(clippy::unwrap_used, reason = "what fails here fails a measurement")]

mod comparison;

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use bsv_benches::{ALIAS, Job};
use bsv_minerid::store::RedbIdentityStore;
use bsv_minerid::{Identity, JobData, Keystore, MinerContact, MinerIds, Network, PlainKeys};
use bsv_tests::vectors;
use bsv_tx::Txid;
use comparison::Comparison;
use secp256k1::{Message, SecretKey, ecdsa};

fn main() {
    let key = SecretKey::from_secret_bytes([7; 32]).unwrap();
    let sign = || {
        black_box(ecdsa::sign(Message::from_digest(black_box([7; 32])), &key));
    };
    comparison::run("minerid", ("bare signature", sign), measure);
}

fn measure(comparison: &mut Comparison<'_>) {
    let home = tempfile::tempdir().unwrap();
    let identity = identity(home.path());
    let job = Job::recorded();
    let (coinbase2, json) = (job.coinbase2(), job.job_data());
    let job_data = JobData::from_json(&json).unwrap();
    assert!(job_data.block_bind.is_some() && job_data.block_info.is_some());
    assert!(job_data.fee_spec.is_some() && job_data.miner_params.is_some());

    let mut heights = 1..;
    let mut next = || heights.next().unwrap();
    comparison.add("output script, new", Some(1.3), || identity.output_script(next()));
    comparison.add("output script, again", Some(1.0 / 50.0), || identity.output_script(1));
    comparison
        .add("coinbase2, new", Some(1.6), || identity.coinbase2(next(), &coinbase2, &job_data));
    comparison
        .add("coinbase2, again", Some(1.0 / 25.0), || identity.coinbase2(1, &coinbase2, &job_data));
    let miner_info = miner_info_identity(home.path());
    let block = job_data.block_bind.clone().unwrap();
    assert_eq!(block.merkle_branch.len(), 12);
    let txid = |number: u32| {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        Txid::from_bytes(bytes)
    };
    comparison.add("1.0: script, new", Some(1.3), || miner_info.output_script(next()));
    comparison.add("1.0: script, again", Some(1.0 / 50.0), || miner_info.output_script(1));
    comparison.add("1.0: coinbase2, new", Some(1.5), || {
        miner_info.preview_coinbase2_with_reference(txid(next()), &coinbase2, &block)
    });
    comparison.add("1.0: coinbase2, again", Some(1.0 / 25.0), || {
        miner_info.preview_coinbase2_with_reference(txid(1), &coinbase2, &block)
    });
    comparison.add("job data from JSON", None, || JobData::from_json(black_box(&json)));
    comparison.add("sign", None, || identity.sign(black_box(&[7; 32])));
}

fn identity(dir: &Path) -> Arc<Identity> {
    let owner = "benchmark";
    let keystore = Keystore::open(&dir.join("keystore"), None, PlainKeys::Allowed, owner).unwrap();
    let store = RedbIdentityStore::open(&dir.join("minerid"), owner).unwrap();
    let ids = MinerIds::open(store, keystore, Network::Regtest).unwrap();
    ids.import_without_node(&vectors::write_home(&vectors::minerid_0_2(), dir), None).unwrap();
    ids.get(ALIAS).unwrap()
}

/// An identity of generation 1.0.
fn miner_info_identity(dir: &Path) -> Arc<Identity> {
    let owner = "benchmark";
    let open =
        |name: &str| Keystore::open(&dir.join(name), None, PlainKeys::Allowed, owner).unwrap();
    let store = RedbIdentityStore::open(&dir.join("minerid-1.0"), owner).unwrap();
    let ids = MinerIds::open(store, open("keystore-1.0"), Network::Regtest).unwrap();
    let alias = ALIAS.parse().unwrap();
    ids.generate_miner_info(&alias, &open("revocation-1.0")).unwrap();
    let contact = MinerContact::from_json(r#"{"name":"a pool","email":"ops@pool.example"}"#);
    ids.set_contact(&alias, &contact.unwrap()).unwrap();
    ids.get(ALIAS).unwrap()
}
