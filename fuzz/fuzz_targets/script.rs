//! Bytes as a script, which is parsed and rebuilt, and as the text of an address, a key or an
//! outpoint.

#![no_main]

use std::fmt::Display;
use std::str::FromStr;

use bsv_tx::opcode::{OP_PUSHDATA1, OP_PUSHDATA4};
use bsv_tx::{
    Address, BlockHash, ExtendedPrivateKey, Instruction, Network, OutPoint, PrivateKey, PublicKey,
    Script, ScriptBuilder, Signature, Txid,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    rebuild(&Script::from_bytes(bytes));
    if let Ok(signature) = Signature::from_der(bytes) {
        assert_eq!(signature.to_der(), bytes);
    }
    read_text(&String::from_utf8_lossy(bytes));
});

/// A script whose pushes have the shortest prefixes is rebuilt to the same bytes. Any other script
/// is rebuilt to the same instructions.
fn rebuild(script: &Script) {
    let read: Vec<_> = script.instructions().collect();
    let Ok(read) = read.into_iter().collect::<Result<Vec<_>, _>>() else { return };
    let rebuilt = read
        .iter()
        .fold(ScriptBuilder::new(), |builder, instruction| match instruction {
            Instruction::Push(data) => builder.push_bytes(data),
            Instruction::Op(op) => builder.op(*op),
        })
        .into_script();
    assert!(rebuilt.instructions().map(Result::unwrap).eq(read.iter().copied()));
    assert!(rebuilt.as_bytes().len() <= script.as_bytes().len());
    let longer_prefixes = OP_PUSHDATA1..=OP_PUSHDATA4;
    let has_longer_prefix = script.as_bytes().iter().any(|byte| longer_prefixes.contains(byte));
    if rebuilt.as_bytes().len() == script.as_bytes().len() || !has_longer_prefix {
        assert_eq!(rebuilt, *script);
    }
}

fn read_text(text: &str) {
    for network in [Network::Livenet, Network::Testnet] {
        if let Ok(address) = Address::parse(text, network) {
            assert_eq!(address.to_string(), text);
        }
        if let Ok(key) = PrivateKey::from_wif(text, network) {
            assert_eq!(*key.to_wif(network), text);
        }
    }
    if let Ok(key) = text.parse::<ExtendedPrivateKey>() {
        assert_eq!(key.as_text(), text.trim());
    }
    reads_back::<OutPoint>(text);
    reads_back::<Txid>(text);
    reads_back::<BlockHash>(text);
    reads_back::<PublicKey>(text);
    reads_back::<Signature>(text);
    if let Ok(script) = Script::from_hex(text) {
        assert_eq!(script.to_hex(), text.to_ascii_lowercase());
        rebuild(&script);
    }
}

/// Hexadecimal digits are read in either case and written in lower case.
fn reads_back<T: FromStr + Display>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        assert_eq!(value.to_string(), text.to_ascii_lowercase());
    }
}
