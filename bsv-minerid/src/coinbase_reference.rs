use bsv_tx::{BlockHash, MerkleBranch, OutPoint, Script, Transaction, Txid, sha256};

use crate::coinbase2::Coinbase2;
use crate::output_script::{self, MinerInfoScriptError};
use crate::signer::{Signer, SignerError};

/// The content of a coinbase output script of generation 1.0. The reference names the transaction
/// in the same block that carries the miner-info document, and binds that transaction to the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoinbaseReference {
    /// The miner-info transaction.
    pub miner_info_txid: Txid,
    /// The block's [`block_bind`].
    pub block_bind: [u8; 32],
    /// The signature by the document's `minerId` over the block binding, in DER form.
    pub signature: Vec<u8>,
}

/// The unlocking script of the modified coinbase transaction.
const ZEROS: [u8; 8] = [0; 8];
/// The length of the part of the reference's script that stays in the modified coinbase
/// transaction: everything up to the push of the transaction id, which is included.
const PLACEHOLDER_LEN: usize = 42;

impl CoinbaseReference {
    /// Binds a miner-info transaction to the block that follows `previous_block` and has
    /// `coinbase2` as the second part of its coinbase transaction. `merkle_branch` is the coinbase
    /// transaction's branch from the bottom, in internal byte order.
    pub fn sign(
        key: &dyn Signer,
        miner_info_txid: Txid,
        coinbase2: &Coinbase2<'_>,
        previous_block: &BlockHash,
        merkle_branch: &[[u8; 32]],
    ) -> Result<Self, SignerError> {
        let placeholder = output_script::versioned([miner_info_txid.as_bytes()]);
        let modified_txid = coinbase2.modified_txid(placeholder.as_bytes());
        let branch = MerkleBranch::of_coinbase(merkle_branch);
        let block_bind = bind(&modified_txid, previous_block, &branch)
            .expect("position 0 fits a branch of any length");
        let signature = key.sign(&block_bind)?.to_der();
        Ok(Self { miner_info_txid, block_bind, signature })
    }

    /// Parses an output script as a node does: it ignores the form of the pushes and everything
    /// after them.
    pub fn parse(script: &Script) -> Result<Self, MinerInfoScriptError> {
        let mut pushes = output_script::versioned_pushes(script)?;
        Ok(Self {
            miner_info_txid: Txid::from_bytes(pushes.next_array("a transaction id")?),
            block_bind: pushes.next_array("a block binding")?,
            signature: pushes.next("a signature")?.to_vec(),
        })
    }

    /// Builds the output script.
    pub fn to_script(&self) -> Script {
        let Self { miner_info_txid, block_bind, signature } = self;
        output_script::versioned([miner_info_txid.as_bytes(), block_bind, signature])
    }
}

/// The coinbase transaction that the block binding is computed from: of version 1, with zeros for
/// an unlocking script, and with the first reference to a miner-info transaction cut off after the
/// transaction id. So the binding can be computed before the extranonce and the reference exist.
///
/// Answers `None` for a transaction without an input or without a reference.
pub fn modified_coinbase(coinbase: &Transaction) -> Option<Transaction> {
    let mut outputs = coinbase.outputs.iter().map(|output| output.locking_script.as_bytes());
    let reference = outputs.position(output_script::is_miner_info)?;
    let mut script = coinbase.outputs[reference].locking_script.as_bytes().to_vec();
    script.resize(PLACEHOLDER_LEN, 0);
    modify(coinbase, reference, Script::from_bytes(script))
}

/// The coinbase transaction that a binding is computed from: of version 1, with zeros for an
/// unlocking script, and with `script` in an output.
pub(crate) fn modify(coinbase: &Transaction, output: usize, script: Script) -> Option<Transaction> {
    let mut modified = Transaction { version: 1, ..coinbase.clone() };
    let input = modified.inputs.first_mut()?;
    input.previous_output = OutPoint::NULL;
    input.unlocking_script = Script::from_bytes(ZEROS);
    modified.outputs.get_mut(output)?.locking_script = script;
    Some(modified)
}

/// The hash that binds a miner-info transaction to its block: SHA-256 of the Merkle root that the
/// block would have with the [`modified_coinbase`], followed by the hash of the previous block,
/// both in internal byte order.
///
/// Answers `None` if there is no modified coinbase transaction, or if `branch` does not fit the
/// first transaction of a block.
pub fn block_bind(
    coinbase: &Transaction,
    previous_block: &BlockHash,
    branch: &MerkleBranch,
) -> Option<[u8; 32]> {
    bind(&modified_coinbase(coinbase)?.txid(), previous_block, branch)
}

fn bind(
    modified_txid: &Txid,
    previous_block: &BlockHash,
    branch: &MerkleBranch,
) -> Option<[u8; 32]> {
    let root = branch.root(modified_txid).filter(|_| branch.position == 0)?;
    let mut preimage = [0; 64];
    preimage[..32].copy_from_slice(root.as_bytes());
    preimage[32..].copy_from_slice(previous_block.as_bytes());
    Some(sha256(&preimage))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference() -> CoinbaseReference {
        CoinbaseReference {
            miner_info_txid: Txid::from_bytes([1; 32]),
            block_bind: [2; 32],
            signature: vec![0x30; 70],
        }
    }

    #[test]
    fn a_script_reads_back_and_its_start_is_what_the_binding_covers() {
        let script = reference().to_script();
        assert_eq!(CoinbaseReference::parse(&script), Ok(reference()));
        let placeholder = output_script::versioned([&[1; 32]]);
        assert_eq!(placeholder.as_bytes().len(), PLACEHOLDER_LEN);
        assert_eq!(script.as_bytes()[..PLACEHOLDER_LEN], *placeholder.as_bytes());
    }

    #[test]
    fn scripts_are_read_as_a_node_reads_them() {
        let (txid, bind) = ("20".to_owned() + &"01".repeat(32), "20".to_owned() + &"02".repeat(32));
        let signature = "46".to_owned() + &"30".repeat(70);
        let script = |text: String| CoinbaseReference::parse(&Script::from_hex(&text).unwrap());
        let start = "006a04601dface";
        for right in [
            format!("{start}0100{txid}{bind}{signature}"),
            format!("{start}4c0100{txid}{bind}{signature}"),
            format!("{start}0100{txid}4c{bind}4c{signature}"),
            format!("{start}0100{txid}{bind}{signature}ac05aabb"),
        ] {
            assert_eq!(script(right.clone()), Ok(reference()), "{right}");
        }
        let short = |part, found| MinerInfoScriptError::Length { part, expected: 32, found };
        for (wrong, error) in [
            ("006a04ac1eed88".to_owned(), MinerInfoScriptError::Prefix),
            (start.to_owned(), MinerInfoScriptError::Version),
            (format!("{start}00{txid}{bind}{signature}"), MinerInfoScriptError::Version),
            (format!("{start}0101{txid}{bind}{signature}"), MinerInfoScriptError::Version),
            (format!("{start}020000{txid}{bind}{signature}"), MinerInfoScriptError::Version),
            (format!("{start}51{txid}{bind}{signature}"), MinerInfoScriptError::Version),
            (format!("{start}0100"), MinerInfoScriptError::Missing("a transaction id")),
            (format!("{start}010002aabb{bind}{signature}"), short("a transaction id", 2)),
            (format!("{start}0100{txid}"), MinerInfoScriptError::Missing("a block binding")),
            (format!("{start}0100{txid}ac"), MinerInfoScriptError::Missing("a block binding")),
            (format!("{start}0100{txid}{signature}"), short("a block binding", 70)),
            (format!("{start}0100{txid}{bind}"), MinerInfoScriptError::Missing("a signature")),
            (format!("{start}0100{txid}{bind}46"), MinerInfoScriptError::Missing("a signature")),
        ] {
            assert_eq!(script(wrong.clone()), Err(error), "{wrong}");
        }
    }

    #[test]
    fn there_is_no_binding_without_an_input_or_a_reference_or_off_the_first_place() {
        let coinbase = format!(
            "0200000001{}07000000020304ffffffff0200000000000000000151000000000000000092{}00000000",
            "00".repeat(32),
            reference().to_script().to_hex()
        );
        let mut coinbase = Transaction::from_hex(&coinbase).unwrap();
        let block = BlockHash::from_bytes([3; 32]);
        let branch = |position| MerkleBranch { position, ..MerkleBranch::of_coinbase(&[[4; 32]]) };
        let modified = modified_coinbase(&coinbase).unwrap();
        assert_eq!((modified.version, modified.inputs[0].sequence), (1, u32::MAX));
        assert_eq!(modified.outputs[0], coinbase.outputs[0]);
        assert_eq!(modified.outputs[1].locking_script.as_bytes().len(), PLACEHOLDER_LEN);
        assert!(block_bind(&coinbase, &block, &branch(0)).is_some());
        assert_eq!(block_bind(&coinbase, &block, &branch(1)), None);
        let without_input = Transaction { inputs: Vec::new(), ..coinbase.clone() };
        assert_eq!(block_bind(&without_input, &block, &branch(0)), None);
        coinbase.outputs.pop();
        assert_eq!(block_bind(&coinbase, &block, &branch(0)), None);
    }
}
