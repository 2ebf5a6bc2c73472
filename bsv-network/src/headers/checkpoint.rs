use bsv_tx::{BlockHash, BlockHeader, MerkleRoot, Network};
use thiserror::Error;

use super::rules::{HeaderRules, WINDOW};

/// A block that is trusted, where a chain of headers begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub(super) height: u32,
    pub(super) hash: BlockHash,
    /// The headers up to the block: all that the difficulty of later blocks depends on, or none.
    pub(super) window: Vec<BlockHeader>,
    /// The work of all headers of the chain up to the block.
    pub(super) work: u128,
}

/// The headers make no checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CheckpointError {
    /// The number of bytes is wrong.
    #[error("a checkpoint takes 147 headers of 80 bytes up to its height, not {0} bytes")]
    Length(usize),
    /// The difficulty of the next block follows an older rule, which is not judged.
    #[error("the block has the height {height}: headers are judged from {first} on")]
    BeforeRule {
        /// The height.
        height: u32,
        /// The lowest height of a checkpoint.
        first: u32,
    },
    /// A header does not follow the one before it.
    #[error("header {0} does not follow the one before it")]
    Unlinked(usize),
    /// A header has no proof of work.
    #[error("header {0} has no proof of work")]
    NoProofOfWork(usize),
}

/// The headers of blocks 916,671 to 916,817 of the main network. Two public lists of headers pin
/// the file that they come from (`mainNet_9.headers` of go-chaintracks and of chaintracks-server).
const LIVENET: &[u8] = include_bytes!("main-checkpoint-916817.headers");
const LIVENET_HEIGHT: u32 = 916_817;
/// As nodes count it.
const LIVENET_WORK: u128 = 0x168_f8ae_2139_6bd6_00d1_1ab7;

/// The last checkpoint of nodes for the test network.
const TESTNET: &str = "0000000000170ed0918077bde7b4d36cc4c91be69fa09211f748240dabe047fb";
const TESTNET_HEIGHT: u32 = 1_188_697;

/// Block 0 of regtest.
const REGTEST: BlockHeader = BlockHeader {
    version: 1,
    previous_block: BlockHash::from_bytes([0; 32]),
    merkle_root: GENESIS_ROOT,
    time: 1_296_688_602,
    bits: 0x207f_ffff,
    nonce: 2,
};

/// The id of the only transaction in block 0 of each network.
const GENESIS_ROOT: MerkleRoot = MerkleRoot::from_bytes([
    0x3b, 0xa3, 0xed, 0xfd, 0x7a, 0x7b, 0x12, 0xb2, 0x7a, 0xc7, 0x2c, 0x3e, 0x67, 0x76, 0x8f, 0x61,
    0x7f, 0xc8, 0x1b, 0xc3, 0x88, 0x8a, 0x51, 0x32, 0x3a, 0x9f, 0xb8, 0xaa, 0x4b, 0x1e, 0x5e, 0x4a,
]);

impl Checkpoint {
    /// The checkpoint that is compiled in. Of the test network it has the hash only: the difficulty
    /// of the first 147 headers after it is not judged.
    pub fn of(network: Network) -> Self {
        match network {
            Network::Livenet => Self::from_headers(network, LIVENET_HEIGHT, LIVENET, LIVENET_WORK)
                .expect("the headers that are compiled in make a checkpoint"),
            Network::Testnet => Self {
                height: TESTNET_HEIGHT,
                hash: TESTNET.parse().expect("the hash is a constant"),
                window: Vec::new(),
                work: 0,
            },
            Network::Regtest => {
                Self { height: 0, hash: REGTEST.block_hash(), window: vec![REGTEST], work: 2 }
            }
        }
    }

    /// Trusts 147 headers, of 80 bytes each, of which the last one has this height. `work` is the
    /// work of all headers of the chain up to that one (`chainwork` of a node), or 0 if it is not
    /// known.
    pub fn from_headers(
        network: Network,
        height: u32,
        bytes: &[u8],
        work: u128,
    ) -> Result<Self, CheckpointError> {
        let length = CheckpointError::Length(bytes.len());
        if bytes.len() != WINDOW * BlockHeader::LEN || (height as usize) < WINDOW - 1 {
            return Err(length);
        }
        let first = HeaderRules::of(network).adjusts_from.unwrap_or_default();
        if height < first {
            return Err(CheckpointError::BeforeRule { height, first });
        }
        let mut window: Vec<BlockHeader> = Vec::with_capacity(WINDOW);
        for (index, bytes) in bytes.chunks_exact(BlockHeader::LEN).enumerate() {
            let header = BlockHeader::from_bytes(bytes).map_err(|_| length)?;
            if !header.has_proof_of_work() {
                return Err(CheckpointError::NoProofOfWork(index));
            }
            if window.last().is_some_and(|last| last.block_hash() != header.previous_block) {
                return Err(CheckpointError::Unlinked(index));
            }
            window.push(header);
        }
        let hash = window[WINDOW - 1].block_hash();
        Ok(Self { height, hash, window, work })
    }

    /// The height of the block.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The height of the first header that comes with it.
    pub(super) fn lowest(&self) -> u32 {
        self.height - self.window.len().saturating_sub(1) as u32
    }

    /// The hash of the block.
    pub fn hash(&self) -> BlockHash {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkpoints_are_the_blocks_that_are_known_elsewhere() {
        for (network, height, hash) in [
            (
                Network::Livenet,
                916_817,
                "00000000000000002530fb16feba5e3beffd243e5ba89264f27f0f425cbd5436",
            ),
            (Network::Testnet, TESTNET_HEIGHT, TESTNET),
            (
                Network::Regtest,
                0,
                "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206",
            ),
        ] {
            let checkpoint = Checkpoint::of(network);
            assert_eq!(
                (checkpoint.height(), checkpoint.hash().to_string().as_str()),
                (height, hash)
            );
        }
    }

    #[test]
    fn headers_that_do_not_belong_together_make_no_checkpoint() {
        let from_headers =
            |bytes: &[u8]| Checkpoint::from_headers(Network::Livenet, LIVENET_HEIGHT, bytes, 0);
        let altered = |at: usize| {
            let mut bytes = LIVENET.to_vec();
            bytes[at] ^= 1;
            from_headers(&bytes)
        };
        assert_eq!(altered(80), Err(CheckpointError::NoProofOfWork(1)));
        let mut swapped = LIVENET.to_vec();
        swapped.copy_within(160..240, 80);
        let found = from_headers(&swapped);
        assert_eq!(found, Err(CheckpointError::Unlinked(1)));
        let short = from_headers(&LIVENET[80..]);
        assert_eq!(short, Err(CheckpointError::Length(LIVENET.len() - 80)));
    }

    #[test]
    fn a_checkpoint_lies_where_the_difficulty_can_be_judged() {
        let at = |network, height| Checkpoint::from_headers(network, height, LIVENET, 0);
        for (network, first) in [(Network::Livenet, 504_031), (Network::Testnet, 1_188_697)] {
            let height = first - 1;
            assert_eq!(at(network, height), Err(CheckpointError::BeforeRule { height, first }));
            assert!(at(network, first).is_ok());
        }
        // 147 headers reach down to block 0 at least.
        assert!(at(Network::Regtest, 146).is_ok());
        let length = CheckpointError::Length(LIVENET.len());
        assert_eq!(at(Network::Regtest, 145), Err(length));
    }
}
