//! Bytes as the document of a miner-info transaction with a right signature and a right reference.
//! It is valid only if it names the key of these and its signatures by the previous keys hold.

#![no_main]

use std::sync::LazyLock;

use bsv_fuzz::blocks;
use bsv_minerid::formats::{Coinbase2, CoinbaseReference, MinerInfo, MinerInfoScript};
use bsv_minerid::verify::verify;
use bsv_tx::{OutPoint, PrivateKey, Script, Transaction, TxIn, TxOut, sha256};
use libfuzzer_sys::fuzz_target;

static KEY: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::from_bytes(&[7; 32]).unwrap());

fuzz_target!(|bytes: &[u8]| {
    let signature = KEY.sign(&sha256(bytes)).to_der();
    let script = MinerInfoScript { document: bytes.to_vec(), signature }.to_script();
    let input = TxIn {
        previous_output: OutPoint { vout: 0, ..OutPoint::NULL },
        unlocking_script: Script::default(),
        sequence: u32::MAX,
    };
    let outputs = vec![TxOut { satoshis: 0, locking_script: script }];
    let miner_info = Transaction { version: 1, inputs: vec![input], outputs, lock_time: 0 };
    let (block, evidence) = blocks::block(coinbase(&miner_info), Some(miner_info));
    let report = verify(&block, &evidence);
    let text = String::from_utf8_lossy(bytes);
    let document = MinerInfo::from_json(&text);
    if let Some(claim) = report.identity() {
        let document = document.as_ref().unwrap();
        assert_eq!(claim.miner_id, KEY.public_key());
        assert_eq!((document.height, document.miner_id.current), (800_000, claim.miner_id));
        assert!(document.miner_id.holds() && document.revocation_key.holds());
        let (revocation_key, miner_id) =
            (&document.revocation_key.current, &document.miner_id.previous);
        assert!(document.revocation.is_none_or(|it| it.holds(revocation_key, miner_id)));
    }
    if let Ok(document) = document {
        assert_eq!(MinerInfo::from_json(&document.to_json()), Ok(document));
    }
});

/// A coinbase transaction of height 800,000 that refers to a miner-info transaction.
fn coinbase(miner_info: &Transaction) -> Transaction {
    let end = hex::decode("ffffffff0100f2052a01000000015100000000").unwrap();
    let end = Coinbase2::parse(&end).unwrap();
    let (txid, previous) = (miner_info.txid(), blocks::PREVIOUS_BLOCK);
    let reference =
        CoinbaseReference::sign(&*KEY, txid, &end, &previous, &[*txid.as_bytes()]).unwrap();
    let end = end.with_output(&reference.to_script()).unwrap();
    let start = format!("0100000001{}ffffffff0403{}", "00".repeat(32), "00350c");
    Transaction::from_hex(&(start + &hex::encode(end))).unwrap()
}
