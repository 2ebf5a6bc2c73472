use std::fmt;
use std::str::FromStr;

use crate::encode::{DecodeError, Reader, write_var_int};
use crate::hash::{HashParseError, MerkleRoot, Txid, sha256d};

/// What a Merkle node is hashed with on the way from a transaction to the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sibling {
    /// Another hash, in internal byte order.
    Hash([u8; 32]),
    /// The node itself: it is the last of a level with an odd number of nodes.
    Duplicate,
}

impl fmt::Display for Sibling {
    /// Writes a hash in display order, or `*` for a duplicate, as nodes and merchant APIs do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hash(hash) => MerkleRoot::from_bytes(*hash).fmt(f),
            Self::Duplicate => f.write_str("*"),
        }
    }
}

impl FromStr for Sibling {
    type Err = HashParseError;

    fn from_str(text: &str) -> Result<Self, HashParseError> {
        match text {
            "*" => Ok(Self::Duplicate),
            hash => hash.parse().map(|hash: MerkleRoot| Self::Hash(*hash.as_bytes())),
        }
    }
}

/// The path from a transaction to the Merkle root of its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MerkleBranch {
    /// The place of the transaction in the block; 0 is the coinbase.
    pub position: u64,
    /// The siblings, from the level of the transactions upwards.
    pub siblings: Vec<Sibling>,
}

/// The byte before a sibling in an encoded branch.
mod kind {
    pub(super) const DUPLICATE: u8 = 0;
    pub(super) const HASH: u8 = 1;
}

impl MerkleBranch {
    /// The largest number of siblings. A position of 64 bits tells the side of so many.
    pub const MAX_SIBLINGS: usize = u64::BITS as usize;

    /// The branch of a coinbase transaction, whose siblings are all on the right. Mining candidates
    /// carry it as `merkleProof`. `siblings` are in internal byte order.
    pub fn of_coinbase(siblings: &[[u8; 32]]) -> Self {
        let siblings = siblings.iter().copied().map(Sibling::Hash).collect();
        Self { position: 0, siblings }
    }

    /// The Merkle root of a block that holds `txid` at the branch's position.
    ///
    /// Answers `None` if the position does not fit the branch: the position needs more levels than
    /// there are siblings, or a duplicate stands beside a right-hand node.
    pub fn root(&self, txid: &Txid) -> Option<MerkleRoot> {
        let mut node = *txid.as_bytes();
        let mut position = self.position;
        for sibling in &self.siblings {
            let is_right = position & 1 == 1;
            node = match (sibling, is_right) {
                (Sibling::Hash(left), true) => parent(left, &node),
                (Sibling::Hash(right), false) => parent(&node, right),
                (Sibling::Duplicate, false) => parent(&node, &node),
                (Sibling::Duplicate, true) => return None,
            };
            position >>= 1;
        }
        (position == 0).then_some(MerkleRoot::from_bytes(node))
    }

    /// Decodes a branch that fills `bytes` to the last byte.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let position = reader.var_int()?;
        let siblings = reader.list(1, Sibling::read)?;
        reader.finish()?;
        if siblings.len() > Self::MAX_SIBLINGS {
            return Err(DecodeError::TooManySiblings(siblings.len()));
        }
        Ok(Self { position, siblings })
    }

    /// Appends the branch to `out` in the format that this project's stores use: the position and
    /// the number of siblings as variable-length integers, then for each sibling 0 for a duplicate,
    /// or 1 and the hash.
    pub fn encode(&self, out: &mut Vec<u8>) {
        write_var_int(out, self.position);
        write_var_int(out, self.siblings.len() as u64);
        for sibling in &self.siblings {
            match sibling {
                Sibling::Duplicate => out.push(kind::DUPLICATE),
                Sibling::Hash(hash) => {
                    out.push(kind::HASH);
                    out.extend_from_slice(hash);
                }
            }
        }
    }

    /// The encoded branch.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }
}

/// The Merkle tree of a block, which yields the branch of every transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MerkleTree(Vec<Vec<[u8; 32]>>);

impl MerkleTree {
    /// The tree of all transactions of a block, in block order.
    pub fn of(txids: &[Txid]) -> Self {
        let mut level: Vec<[u8; 32]> = txids.iter().map(|txid| *txid.as_bytes()).collect();
        let mut levels = Vec::new();
        while level.len() > 1 {
            let pairs = level.chunks(2);
            let next =
                pairs.map(|pair| parent(&pair[0], pair.last().unwrap_or(&pair[0]))).collect();
            levels.push(std::mem::replace(&mut level, next));
        }
        levels.push(level);
        Self(levels)
    }

    /// The root, or `None` if there is no transaction.
    pub fn root(&self) -> Option<MerkleRoot> {
        let top = self.0.last()?.first()?;
        Some(MerkleRoot::from_bytes(*top))
    }

    /// The branch of the transaction at `position`, or `None` if the block has fewer transactions.
    pub fn branch(&self, position: usize) -> Option<MerkleBranch> {
        let (top, levels) = self.0.split_last()?;
        levels.first().unwrap_or(top).get(position)?;
        let mut siblings = Vec::with_capacity(levels.len());
        let mut place = position;
        for level in levels {
            let sibling = level.get(place ^ 1);
            siblings.push(sibling.map_or(Sibling::Duplicate, |hash| Sibling::Hash(*hash)));
            place /= 2;
        }
        Some(MerkleBranch { position: position as u64, siblings })
    }
}

impl Sibling {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.array()? {
            [kind::DUPLICATE] => Ok(Self::Duplicate),
            [kind::HASH] => Ok(Self::Hash(reader.array()?)),
            [other] => Err(DecodeError::UnknownSibling(other)),
        }
    }
}

/// The hash of the node above two others.
pub(crate) fn parent(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    let mut children = [0; 64];
    children[..32].copy_from_slice(left);
    children[32..].copy_from_slice(right);
    sha256d(&children)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The root of a whole tree, computed by the definition.
    fn root_of(mut level: Vec<[u8; 32]>) -> [u8; 32] {
        while level.len() > 1 {
            level = level.chunks(2).map(|pair| parent(&pair[0], pair.last().unwrap())).collect();
        }
        level[0]
    }

    #[test]
    fn every_leaf_of_small_trees_leads_to_the_root() {
        for count in 1..=17u8 {
            let leaves: Vec<_> = (0..count).map(|n| sha256d(&[n])).collect();
            let root = MerkleRoot::from_bytes(root_of(leaves.clone()));
            let txids: Vec<_> = leaves.into_iter().map(Txid::from_bytes).collect();
            let tree = MerkleTree::of(&txids);
            assert_eq!((tree.root(), tree.branch(txids.len())), (Some(root), None));
            for (position, txid) in txids.iter().enumerate() {
                let branch = tree.branch(position).unwrap();
                assert_eq!(branch.root(txid), Some(root), "{position} of {count}");
                let deeper = MerkleBranch {
                    position: branch.position + (1 << branch.siblings.len()),
                    ..branch
                };
                assert_eq!(deeper.root(txid), None);
            }
        }
    }

    #[test]
    fn no_transactions_have_no_root() {
        let tree = MerkleTree::of(&[]);
        assert_eq!((tree.root(), tree.branch(0)), (None, None));
    }

    #[test]
    fn a_branch_is_encoded_and_nothing_else_decodes() {
        let branch = MerkleBranch {
            position: 2,
            siblings: vec![Sibling::Duplicate, Sibling::Hash([7; 32])],
        };
        let bytes = [&[2, 2, 0, 1][..], &[7; 32]].concat();
        assert_eq!(branch.to_bytes(), bytes);
        assert_eq!(MerkleBranch::from_bytes(&bytes), Ok(branch));
        assert_eq!(MerkleBranch::from_bytes(&[0, 1, 2]), Err(DecodeError::UnknownSibling(2)));
        let highest = MerkleBranch { position: 0, siblings: vec![Sibling::Duplicate; 64] };
        assert_eq!(MerkleBranch::from_bytes(&highest.to_bytes()), Ok(highest));
        let higher = MerkleBranch { position: 0, siblings: vec![Sibling::Duplicate; 65] };
        assert_eq!(
            MerkleBranch::from_bytes(&higher.to_bytes()),
            Err(DecodeError::TooManySiblings(65))
        );
    }

    #[test]
    fn a_sibling_is_written_as_it_is_read() {
        let hash = format!("{}ab", "00".repeat(31));
        assert_eq!(hash.parse::<Sibling>().unwrap().to_string(), hash);
        let mut bytes = [0; 32];
        bytes[0] = 0xab;
        assert_eq!(hash.parse(), Ok(Sibling::Hash(bytes)));
        assert_eq!("*".parse(), Ok(Sibling::Duplicate));
        assert_eq!(Sibling::Duplicate.to_string(), "*");
        assert!("**".parse::<Sibling>().is_err());
    }

    #[test]
    fn a_right_node_is_never_its_own_sibling() {
        let branch = MerkleBranch { position: 1, siblings: vec![Sibling::Duplicate] };
        assert_eq!(branch.root(&Txid::from_bytes([1; 32])), None);
    }
}
