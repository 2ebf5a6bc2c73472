//! Bytes as a Merkle path in BUMP format. If they decode, they encode to the same bytes, the
//! branches of all their transactions lead to the root, and these branches make up an equivalent
//! path.

#![no_main]

use bsv_tx::{Bump, Txid};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(bump) = Bump::from_bytes(bytes) else { return };
    assert_eq!(bump.to_bytes(), bytes);
    assert!(Bump::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    assert!(Bump::from_bytes(&[bytes, &[0]].concat()).is_err());
    let branch = |txid: Txid| (txid, bump.branch(&txid).unwrap());
    let branches: Vec<_> = bump.leaves().map(branch).collect();
    for (txid, branch) in &branches {
        assert_eq!(branch.root(txid), Some(bump.root()));
    }
    let made = Bump::of(bump.height(), &branches).unwrap();
    assert_eq!(made.root(), bump.root());
    assert!(made.to_bytes().len() <= bytes.len());
    let combined = bump.combine(&made).unwrap();
    assert_eq!(combined.root(), bump.root());
    assert!(combined.txids().eq(made.txids()));
});
