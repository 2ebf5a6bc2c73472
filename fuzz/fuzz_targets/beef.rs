//! Bytes as a transaction in any of the forms that wallets send. If they decode, they encode to the
//! same bytes, and neither a part of them nor more bytes decode. A BEEF is valid only with the
//! Merkle roots of the chain.

#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bsv_tx::{
    Beef, BeefVerificationError, FormedTransaction, MerkleRoot, Script, Tip, Transaction, TxOut,
};
use libfuzzer_sys::fuzz_target;

const TIP: Tip = Tip { height: 800_000, median_time: 1_700_000_000 };

/// Stands in for every transaction of which the BEEF holds only the id.
static HELD: LazyLock<Transaction> = LazyLock::new(|| {
    let output = TxOut { satoshis: 1_000_000, locking_script: Script::default() };
    Transaction { version: 1, inputs: Vec::new(), outputs: vec![output; 8], lock_time: 0 }
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(formed) = FormedTransaction::from_bytes(bytes) else { return };
    assert_eq!(formed.to_bytes(), bytes);
    assert!(FormedTransaction::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    assert!(FormedTransaction::from_bytes(&[bytes, &[0]].concat()).is_err());
    if let FormedTransaction::Beef(beef) = formed {
        check(&beef);
    }
});

fn check(beef: &Beef) {
    assert_eq!(beef.subject().txid(), beef.subject_txid());
    if let Ok(atomic) = beef.clone().into_atomic() {
        assert_eq!(Beef::from_bytes(&atomic.to_bytes()), Ok(atomic));
    }
    let claimed: BTreeMap<_, _> = beef.claimed_roots().into_iter().collect();
    if verify(beef, |height, root| claimed.get(&height).map(|it| *it == root)).is_ok() {
        assert_eq!(claimed.len(), beef.claimed_roots().len());
        let other = verify(beef, |_, _| Some(false));
        assert_eq!(other.is_ok(), claimed.is_empty());
        let above = verify(beef, |_, _| None);
        let is_above = matches!(above, Err(BeefVerificationError::AboveTip { .. }));
        assert_eq!(is_above, !claimed.is_empty());
    }
}

fn verify(
    beef: &Beef,
    has_root: impl Fn(u32, MerkleRoot) -> Option<bool>,
) -> Result<(), BeefVerificationError> {
    beef.verify(TIP, has_root, |_| Some(&HELD))
}
