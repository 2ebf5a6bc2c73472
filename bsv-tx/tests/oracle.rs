//! Compares this crate with an independent implementation. The script beside
//! `vectors/transactions.json` made every vector in that file.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::sync::LazyLock;

use bsv_tx::{
    Address, ExtendedPrivateKey, Instruction, MerkleBranch, Network, PrivateKey, PublicKey, Script,
    ScriptBuilder, Sibling, SighashCache, SighashType, Signature, Transaction, TxOut, Txid,
};
use serde::Deserialize;

/// The types in the order of the digests and unlocking scripts in the vectors.
const TYPES: [SighashType; 6] = [
    SighashType::ALL,
    SighashType::NONE,
    SighashType::SINGLE,
    SighashType::ALL.anyone_can_pay(),
    SighashType::NONE.anyone_can_pay(),
    SighashType::SINGLE.anyone_can_pay(),
];

/// The networks in the order of the addresses and WIF keys in the vectors.
const NETWORKS: [Network; 2] = [Network::Livenet, Network::Testnet];

#[derive(Deserialize)]
struct Vectors {
    transactions: Vec<TransactionVector>,
    sighashes: Vec<SighashVector>,
    keys: Vec<KeyVector>,
    spends: Vec<SpendVector>,
    extended_keys: Vec<ExtendedKeyVector>,
    pushes: Vec<PushVector>,
    numbers: Vec<NumberVector>,
    trees: Vec<TreeVector>,
}

#[derive(Deserialize)]
struct TransactionVector {
    hex: String,
    txid: String,
    version: i32,
    lock_time: u32,
    /// Output index, script length, sequence number.
    inputs: Vec<(u32, usize, u32)>,
    /// Amount in decimal, script length.
    outputs: Vec<(String, usize)>,
}

#[derive(Deserialize)]
struct SighashVector {
    transaction: usize,
    input: usize,
    satoshis: String,
    script_seed: String,
    script_length: usize,
    digests: [String; 6],
}

#[derive(Deserialize)]
struct KeyVector {
    private: String,
    public: String,
    wif: [String; 2],
    address: [String; 2],
}

#[derive(Deserialize)]
struct SpendVector {
    transaction: usize,
    input: usize,
    key: usize,
    satoshis: String,
    unlocking: [String; 6],
}

#[derive(Deserialize)]
struct ExtendedKeyVector {
    text: String,
    wif: String,
}

#[derive(Deserialize)]
struct PushVector {
    seed: String,
    length: usize,
    prefix: String,
}

#[derive(Deserialize)]
struct NumberVector {
    data: String,
    script: String,
}

#[derive(Deserialize)]
struct TreeVector {
    txids: Vec<String>,
    root: String,
    branches: Vec<Vec<Option<String>>>,
}

static VECTORS: LazyLock<Vectors> = LazyLock::new(|| {
    serde_json::from_str(include_str!("vectors/transactions.json"))
        .expect("the vectors are checked in")
});

impl TransactionVector {
    fn decode(&self) -> Transaction {
        Transaction::from_hex(&self.hex).unwrap()
    }
}

impl KeyVector {
    fn private_key(&self) -> PrivateKey {
        PrivateKey::from_wif(&self.wif[0], Network::Livenet).unwrap()
    }
}

/// The bytes of the seed, repeated.
fn repeat(seed: &str, length: usize) -> Vec<u8> {
    hex::decode(seed).unwrap().into_iter().cycle().take(length).collect()
}

#[test]
fn transactions_decode_to_the_same_fields_and_encode_to_the_same_bytes() {
    assert!(VECTORS.transactions.len() >= 200);
    for vector in &VECTORS.transactions {
        let transaction = vector.decode();
        assert_eq!(transaction.to_hex(), vector.hex);
        assert_eq!(transaction.txid().to_string(), vector.txid);
        assert_eq!(transaction.version, vector.version);
        assert_eq!(transaction.lock_time, vector.lock_time);
        let inputs: Vec<_> = transaction
            .inputs
            .iter()
            .map(|input| {
                let script_length = input.unlocking_script.as_bytes().len();
                (input.previous_output.vout, script_length, input.sequence)
            })
            .collect();
        assert_eq!(inputs, vector.inputs);
        let outputs: Vec<_> = transaction
            .outputs
            .iter()
            .map(|output| (output.satoshis.to_string(), output.locking_script.as_bytes().len()))
            .collect();
        assert_eq!(outputs, vector.outputs);
    }
}

#[test]
fn signature_hashes_of_every_type_agree() {
    let mut without_output = 0;
    for vector in &VECTORS.sighashes {
        let transaction = VECTORS.transactions[vector.transaction].decode();
        without_output += usize::from(vector.input >= transaction.outputs.len());
        let spent = TxOut {
            satoshis: vector.satoshis.parse().unwrap(),
            locking_script: Script::from_bytes(repeat(&vector.script_seed, vector.script_length)),
        };
        let cache = SighashCache::new(&transaction);
        for (sighash_type, digest) in TYPES.into_iter().zip(&vector.digests) {
            let ours = cache.sighash(vector.input, &spent, sighash_type).unwrap();
            assert_eq!(
                hex::encode(ours),
                *digest,
                "{sighash_type:?} of input {} of transaction {}",
                vector.input,
                vector.transaction
            );
        }
    }
    assert!(without_output > 0, "SINGLE is tried where there is no output of the same index");
}

#[test]
fn keys_addresses_and_wallet_import_format_agree() {
    for vector in &VECTORS.keys {
        let bytes: [u8; 32] = hex::decode(&vector.private).unwrap().try_into().unwrap();
        let key = PrivateKey::from_bytes(&bytes).unwrap();
        assert_eq!(key.public_key().to_string(), vector.public);
        for (network, (wif, address)) in
            NETWORKS.into_iter().zip(vector.wif.iter().zip(&vector.address))
        {
            assert_eq!(*key.to_wif(network), *wif);
            let read = PrivateKey::from_wif(wif, network).unwrap();
            assert_eq!(read.public_key(), key.public_key());
            let made = Address::p2pkh(&key.public_key(), network);
            assert_eq!(made.to_string(), *address);
            assert_eq!(Address::parse(address, network), Ok(made));
        }
    }
}

#[test]
fn extended_keys_hold_the_same_private_key() {
    for vector in &VECTORS.extended_keys {
        let extended: ExtendedPrivateKey = vector.text.parse().unwrap();
        assert_eq!(*extended.private_key().to_wif(Network::Livenet), vector.wif, "{}", vector.text);
    }
}

#[test]
fn p2pkh_unlocking_scripts_are_the_same_to_the_byte() {
    for vector in &VECTORS.spends {
        let transaction = VECTORS.transactions[vector.transaction].decode();
        let key = VECTORS.keys[vector.key].private_key();
        let spent = TxOut {
            satoshis: vector.satoshis.parse().unwrap(),
            locking_script: Script::p2pkh(&key.public_key().hash()),
        };
        let cache = SighashCache::new(&transaction);
        let signed = cache.sign_p2pkh(vector.input, &spent, &key).unwrap();
        assert_eq!(signed.to_hex(), vector.unlocking[0]);
        for (sighash_type, unlocking) in TYPES.into_iter().zip(&vector.unlocking) {
            let digest = cache.sighash(vector.input, &spent, sighash_type).unwrap();
            let mut signature = key.sign(&digest).to_der();
            signature.push(sighash_type.to_byte());
            let ours = ScriptBuilder::new()
                .push(&signature)
                .push(&key.public_key().to_bytes())
                .into_script();
            assert_eq!(ours.to_hex(), *unlocking, "{sighash_type:?}");
            assert_unlocks(unlocking, &digest, sighash_type, &key.public_key());
        }
    }
}

/// Extracts the signature of the other implementation from its script.
fn assert_unlocks(
    unlocking: &str,
    digest: &[u8; 32],
    sighash_type: SighashType,
    owner: &PublicKey,
) {
    let script = Script::from_hex(unlocking).unwrap();
    let pushes: Vec<_> = script.instructions().map(Result::unwrap).collect();
    let [Instruction::Push(signature), Instruction::Push(public_key)] = pushes.as_slice() else {
        panic!("a signature and a public key, not {pushes:?}");
    };
    assert_eq!(*public_key, owner.to_bytes());
    let (type_byte, der) = signature.split_last().unwrap();
    assert_eq!(*type_byte, sighash_type.to_byte());
    assert!(owner.verify(digest, &Signature::from_der(der).unwrap()));
}

#[test]
fn pushes_have_the_same_prefix() {
    for vector in &VECTORS.pushes {
        let data = repeat(&vector.seed, vector.length);
        let script = ScriptBuilder::new().push_bytes(&data).into_script();
        let expected = vector.prefix.clone() + &hex::encode(&data);
        assert!(script.to_hex() == expected, "push of {} bytes", vector.length);
    }
}

#[test]
fn small_numbers_have_the_same_opcodes() {
    for vector in &VECTORS.numbers {
        let data = hex::decode(&vector.data).unwrap();
        assert_eq!(ScriptBuilder::new().push(&data).into_script().to_hex(), vector.script);
    }
}

#[test]
fn every_leaf_of_every_tree_leads_to_the_root() {
    for tree in &VECTORS.trees {
        assert_eq!(tree.branches.len(), tree.txids.len());
        for (position, (txid, siblings)) in tree.txids.iter().zip(&tree.branches).enumerate() {
            let txid: Txid = txid.parse().unwrap();
            let branch = MerkleBranch {
                position: position as u64,
                siblings: siblings.iter().map(|text| sibling(text.as_deref())).collect(),
            };
            let root = branch.root(&txid).expect("the position fits the branch");
            assert_eq!(root.to_string(), tree.root, "{position} of {}", tree.txids.len());
        }
    }
}

fn sibling(text: Option<&str>) -> Sibling {
    text.map_or(Sibling::Duplicate, |text| Sibling::Hash(*text.parse::<Txid>().unwrap().as_bytes()))
}
