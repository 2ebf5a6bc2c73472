//! How long it takes to read and verify a BEEF of ten transactions, in multiples of the time that
//! its unavoidable hashes take.

#![allow(clippy::unwrap_used, reason = "what fails here fails a measurement")]

mod comparison;

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;

use bsv_tests::{Dice, Lineage};
use bsv_tx::{Beef, BeefVersion, Bump, MerkleRoot, Tip, sha256, sha256d};
use comparison::Comparison;
use secp256k1::{Message, PublicKey, SecretKey, ecdsa};

/// A payment by BEEF may take this many times as long as its hashes and signatures alone.
const OVERHEAD: f64 = 1.3;

const TRANSACTIONS: usize = 10;

/// How many BEEFs are used in turn. If the same few came again and again, the processor's branch
/// prediction would learn them.
const DIFFERENT_BEEFS: usize = 256;

const TIP: Tip = Tip { height: 900_000, median_time: 1_700_000_000 };

/// A BEEF as it arrives, and what is hashed and signed of it.
struct Arrival {
    bytes: Vec<u8>,
    roots: BTreeMap<u32, MerkleRoot>,
    transactions: Vec<Vec<u8>>,
    /// How many nodes of Merkle trees the verification computes.
    nodes: usize,
    /// One signature for each input of an unmined transaction.
    signatures: Vec<Signed>,
}

struct Signed {
    signature: ecdsa::SerializedSignature,
    message: Message,
    key: [u8; 33],
}

fn main() {
    let arrivals: Vec<_> = (0..).filter_map(Arrival::new).take(DIFFERENT_BEEFS).collect();
    let mut hashed = arrivals.iter().cycle();
    let hashes = || hashed.next().unwrap().hash();
    comparison::run("beef", ("hashes", hashes), |comparison: &mut Comparison<'_>| {
        let mut arrivals = arrivals.iter().cycle();
        comparison.add("read", None, || Beef::from_bytes(&arrivals.next().unwrap().bytes));
        comparison.add("read and verify", None, || arrivals.next().unwrap().verify());
    });
    let mut checked = arrivals.iter().cycle();
    let bare = || {
        let arrival = checked.next().unwrap();
        arrival.hash();
        arrival.check_signatures();
    };
    comparison::run("beef-signed", ("hashes, signatures", bare), |comparison| {
        let mut arrivals = arrivals.iter().cycle();
        comparison.add("read and verify, signatures", Some(OVERHEAD), || {
            let arrival = arrivals.next().unwrap();
            arrival.check_signatures();
            arrival.verify()
        });
    });
}

impl Arrival {
    /// `None` if the random BEEF of this seed has more or fewer transactions.
    fn new(seed: u64) -> Option<Self> {
        let lineage = Lineage::with(&mut Dice::new(1000 * seed), &[2, 2], TRANSACTIONS - 5);
        let beef = Beef::new(BeefVersion::V2, lineage.subject, lineage.ancestry).unwrap();
        let transactions: Vec<_> = beef.transactions().map(|(_, each)| each.to_bytes()).collect();
        if transactions.len() != TRANSACTIONS {
            return None;
        }
        let inputs = beef.unmined().map(|(_, transaction)| transaction.inputs.len()).sum();
        let numbers = (1..=inputs).map(|input| 1000 * seed as usize + input);
        Some(Self {
            nodes: beef.bumps().iter().map(computed_nodes).sum(),
            bytes: beef.into_atomic().unwrap().to_bytes(),
            roots: lineage.roots,
            transactions,
            signatures: numbers.map(Signed::new).collect(),
        })
    }

    fn hash(&self) {
        for transaction in &self.transactions {
            black_box(sha256d(black_box(transaction)));
        }
        for _ in 0..self.nodes {
            black_box(sha256d(black_box(&[7; 64])));
        }
    }

    fn check_signatures(&self) {
        for Signed { signature, message, key } in &self.signatures {
            let key = PublicKey::from_slice(black_box(key)).unwrap();
            let signature = ecdsa::Signature::from_der(black_box(signature)).unwrap();
            assert!(ecdsa::verify(&signature, *message, &key).is_ok());
        }
    }

    fn verify(&self) -> Result<Beef, bsv_tx::BeefVerificationError> {
        let beef = Beef::from_bytes(black_box(&self.bytes)).unwrap();
        let has_root = |height, root| self.roots.get(&height).map(|right| *right == root);
        beef.verify(TIP, has_root, |_| None)?;
        Ok(beef)
    }
}

/// How many nodes of its tree a check of a BUMP computes.
fn computed_nodes(bump: &Bump) -> usize {
    let branches = bump.txids().map(|txid| bump.branch(&txid).unwrap());
    let parents = branches.flat_map(|branch| {
        let position = branch.position;
        (1..=branch.siblings.len()).map(move |level| (level, position >> level))
    });
    parents.collect::<BTreeSet<_>>().len()
}

impl Signed {
    fn new(number: usize) -> Self {
        let digest = sha256(&number.to_le_bytes());
        let key = SecretKey::from_secret_bytes(digest).unwrap();
        let message = Message::from_digest(digest);
        let signature = ecdsa::sign(message, &key).serialize_der();
        Self { signature, message, key: PublicKey::from_secret_key(&key).serialize() }
    }
}
