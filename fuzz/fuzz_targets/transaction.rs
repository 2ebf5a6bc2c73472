//! Bytes as a transaction. If they decode, they encode to the same bytes, neither a part of them
//! nor more bytes decode, and the transaction's inputs can be hashed for signatures.

#![no_main]

use bsv_tx::{BlockHeader, Script, SighashCache, SighashType, Transaction, TxOut};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = BlockHeader::from_bytes(bytes) {
        assert_eq!(header.to_bytes(), bytes);
        header.has_proof_of_work();
    }
    let Ok(transaction) = Transaction::from_bytes(bytes) else { return };
    assert_eq!(transaction.to_bytes(), bytes);
    assert_eq!(Transaction::from_hex(&transaction.to_hex()).as_ref(), Ok(&transaction));
    assert!(Transaction::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    assert!(Transaction::from_bytes(&[bytes, &[0]].concat()).is_err());
    sign_inputs(&transaction);
});

fn sign_inputs(transaction: &Transaction) {
    let spent = TxOut { satoshis: 1, locking_script: Script::p2pkh(&[0; 20]) };
    let cache = SighashCache::new(transaction);
    let count = transaction.inputs.len();
    for index in [0, count / 2, count] {
        for base in [SighashType::ALL, SighashType::NONE, SighashType::SINGLE] {
            for sighash_type in [base, base.anyone_can_pay()] {
                let digest = cache.sighash(index, &spent, sighash_type);
                assert_eq!(digest.is_ok(), index < count);
            }
        }
    }
}
