use std::collections::HashMap;
use std::sync::Arc;

use bsv_tx::opcode::{OP_1, OP_16};
use bsv_tx::{BlockHeader, Instruction, MerkleBranch, OutPoint, Transaction, Txid};

use super::data_refs::DataOutputs;
use super::report::{Check, Findings};

/// A coinbase transaction, and the proof that it is in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockProof {
    /// The header of the block.
    pub header: BlockHeader,
    /// The height of the block. If it is unknown, the height that the coinbase transaction states
    /// (BIP34) is used.
    pub height: Option<u32>,
    /// The coinbase transaction.
    pub coinbase: Transaction,
    /// The branch from the coinbase transaction to the header's Merkle root.
    pub branch: MerkleBranch,
}

/// The evidence besides the block. All of it is optional.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The miner-info transaction (1.0).
    pub miner_info: MinerInfoEvidence,
    /// The states of validity check outputs (0.2).
    pub vctxs: HashMap<OutPoint, VctxState>,
    /// The contents of the transactions that references to data name.
    pub data: HashMap<Txid, Arc<DataOutputs>>,
}

/// The evidence about the miner-info transaction that a coinbase transaction refers to.
#[derive(Clone, Debug, Default)]
pub enum MinerInfoEvidence {
    /// Nothing.
    #[default]
    Unknown,
    /// The transaction is not in the block.
    NotInBlock,
    /// The transaction.
    Found {
        /// The transaction.
        transaction: Transaction,
        /// The branch from the transaction to the block's Merkle root, if known.
        branch: Option<MerkleBranch>,
    },
}

/// The state of a validity check output. Outputs in an unknown state are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VctxState {
    /// The output is in the chain and unspent.
    Unspent,
    /// The output was in the chain and is spent.
    Spent,
}

impl BlockProof {
    /// The height that documents are compared with.
    pub(super) fn height(&self) -> Option<u32> {
        self.height.or_else(|| stated_height(&self.header, &self.coinbase))
    }

    pub(super) fn examine(&self, findings: &mut Findings) {
        if self.header.has_proof_of_work() {
            findings.holds(Check::ProofOfWork);
        } else {
            findings.refused(Check::ProofOfWork, "the header's hash does not meet its target");
        }
        let root = self.branch.root(&self.coinbase.txid());
        if !matches!(&self.coinbase.inputs[..], [input] if input.previous_output == OutPoint::NULL)
        {
            let reason = "the transaction is not a coinbase transaction";
            findings.refused(Check::CoinbaseInclusion, reason);
        } else if self.branch.position != 0 {
            let reason = "a coinbase transaction is the first of its block";
            findings.refused(Check::CoinbaseInclusion, reason);
        } else if root != Some(self.header.merkle_root) {
            let reason = "the Merkle branch does not lead to the header's root";
            findings.refused(Check::CoinbaseInclusion, reason);
        } else {
            findings.holds(Check::CoinbaseInclusion);
        }
    }
}

/// The height at the start of a coinbase transaction's unlocking script. Blocks of version 2 and
/// later must state it (BIP34).
fn stated_height(header: &BlockHeader, coinbase: &Transaction) -> Option<u32> {
    if header.version < 2 {
        return None;
    }
    let script = &coinbase.inputs.first()?.unlocking_script;
    match script.instructions().next()?.ok()? {
        Instruction::Op(op @ OP_1..=OP_16) => Some(u32::from(op - OP_1) + 1),
        Instruction::Op(_) => None,
        Instruction::Push(number) => {
            let mut bytes = [0; 4];
            bytes.get_mut(..number.len())?.copy_from_slice(number);
            i32::from_le_bytes(bytes).try_into().ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use bsv_tx::{Script, TxIn};

    use super::*;

    fn stated(version: i32, script: &str) -> Option<u32> {
        let header = BlockHeader { version, ..BlockHeader::from_bytes(&[0; 80]).unwrap() };
        let unlocking_script = Script::from_hex(script).unwrap();
        let input = TxIn { previous_output: OutPoint::NULL, unlocking_script, sequence: 0 };
        let coinbase =
            Transaction { version: 1, inputs: vec![input], outputs: vec![], lock_time: 0 };
        stated_height(&header, &coinbase)
    }

    #[test]
    fn a_coinbase_transaction_states_its_height_in_blocks_from_version_2_on() {
        for (script, height) in [
            ("51", Some(1)),
            ("60ff", Some(16)),
            ("0111", Some(17)),
            ("02ff0004aabb", Some(255)),
            ("03a08601", Some(100_000)),
            ("04ffffff7f", Some(i32::MAX as u32)),
            ("04ffffffff", None),
            ("050000000001", None),
            ("03a086", None),
            ("6a", None),
            ("", None),
        ] {
            assert_eq!(stated(2, script), height, "{script}");
            assert_eq!(stated(0x2000_0000, script), height, "{script}");
            assert_eq!(stated(1, script), None, "{script}");
        }
    }
}
