use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::encode::{DecodeError, Reader, write_var_int};
use crate::hash::{MerkleRoot, Txid};
use crate::merkle::{MerkleBranch, Sibling, parent};

/// A BSV Unified Merkle Path (BRC-74): the paths from one or more transactions of a block to its
/// Merkle root.
///
/// Every value of this type is one consistent tree: all its nodes lead to the same root. The caller
/// checks whether the root is that of a block of the main chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bump {
    height: u32,
    /// The nodes that the BUMP carries, from the level of the transactions upwards, in the order of
    /// the bytes.
    levels: Vec<Vec<Node>>,
    root: MerkleRoot,
}

/// Why bytes, or branches, are not a BUMP.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BumpError {
    /// The bytes end early, go on after the end, or hold an integer in a longer form than it needs.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The block height does not fit in 32 bits.
    #[error("the block height {0} is beyond 32 bits")]
    Height(u64),
    /// There are no levels, or more than 64.
    #[error("a merkle tree has 1 to 64 levels, not {0}")]
    Levels(usize),
    /// A node's flags are unknown, or mark a transaction above the lowest level.
    #[error("a node on level {level} has the flags {flags}")]
    Flags {
        /// The level, 0 for the transactions.
        level: usize,
        /// The unknown flags.
        flags: u8,
    },
    /// Two nodes have the same place.
    #[error("level {level} has two nodes at offset {offset}")]
    SameOffset {
        /// The level, 0 for the transactions.
        level: usize,
        /// The place of both on the level.
        offset: u64,
    },
    /// A parent cannot be computed, because one of its two nodes is neither carried nor computed.
    #[error("level {level} has no node at offset {offset}")]
    MissingNode {
        /// The level, 0 for the transactions.
        level: usize,
        /// The place on the level.
        offset: u64,
    },
    /// A duplicate does not stand to the right of the last node of its level.
    #[error("level {level} has a duplicate at offset {offset}, which is not the end of the level")]
    MisplacedDuplicate {
        /// The level, 0 for the transactions.
        level: usize,
        /// The place on the level.
        offset: u64,
    },
    /// A node is not the hash of the two below it.
    #[error("the node on level {level} at offset {offset} is not the hash of those below it")]
    WrongHash {
        /// The level, 0 for the transactions.
        level: usize,
        /// The place on the level.
        offset: u64,
    },
    /// A place on a level is beyond what the number of levels allows.
    #[error("an offset is beyond the width of a tree of {0} levels")]
    TooWide(usize),
    /// The heights, levels or roots of branches or BUMPs differ.
    #[error("the merkle paths are not of the same block")]
    DifferentBlocks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    offset: u64,
    kind: Kind,
    /// In internal byte order; all zeros for a duplicate.
    hash: [u8; 32],
}

/// The order of nodes at the same place: a computed node comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Sibling,
    /// The node to its left again, as the last node of a level with an odd number of nodes.
    Duplicate,
    /// A transaction that the BUMP is about.
    Txid,
    /// The hash of two nodes below, which the BUMP does not carry.
    Computed,
}

/// The flags before a node (BRC-74).
mod flags {
    pub(super) const SIBLING: u8 = 0;
    pub(super) const DUPLICATE: u8 = 1;
    pub(super) const TXID: u8 = 2;
}

impl Bump {
    /// The limit on levels in BRC-74.
    const MAX_LEVELS: usize = MerkleBranch::MAX_SIBLINGS;

    /// Makes the BUMP of transactions of the block at `height`. The BUMP carries no node that can
    /// be computed from others.
    ///
    /// Fails with [`BumpError::DifferentBlocks`] unless all branches have the same root and the
    /// same number of levels. Fails with other errors if a branch does not fit its position, or if
    /// there is no branch.
    pub fn of(height: u32, branches: &[(Txid, MerkleBranch)]) -> Result<Self, BumpError> {
        let (txid, first) = branches.first().ok_or(BumpError::Levels(0))?;
        let root = first.root(txid);
        // A block of one transaction has a tree of one node, for which BRC-74 needs a level.
        let mut levels = vec![BTreeMap::new(); first.siblings.len().max(1)];
        for (txid, branch) in branches {
            let own_root = branch.root(txid).ok_or(BumpError::TooWide(branch.siblings.len()))?;
            if branch.siblings.len() != first.siblings.len() || Some(own_root) != root {
                return Err(BumpError::DifferentBlocks);
            }
            let place = branch.position;
            let leaf = Node { offset: place, kind: Kind::Txid, hash: *txid.as_bytes() };
            insert(&mut levels[0], leaf);
            for (level, sibling) in branch.siblings.iter().enumerate() {
                insert(&mut levels[level], sibling_node((place >> level) ^ 1, sibling));
            }
        }
        Self::without_computed(height, levels)
    }

    /// The height of the block.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The root that all paths lead to.
    pub fn root(&self) -> MerkleRoot {
        self.root
    }

    /// The transactions that are marked as those the BUMP is about.
    pub fn txids(&self) -> impl Iterator<Item = Txid> {
        let marked = self.levels[0].iter().filter(|node| node.kind == Kind::Txid);
        marked.map(|node| Txid::from_bytes(node.hash))
    }

    /// All transactions of the block that the BUMP carries, including those that only serve as
    /// siblings.
    pub fn leaves(&self) -> impl Iterator<Item = Txid> {
        let hashes = self.levels[0].iter().filter(|node| node.kind != Kind::Duplicate);
        hashes.map(|node| Txid::from_bytes(node.hash))
    }

    /// The branch of a transaction, or `None` if the transaction is not on the lowest level.
    pub fn branch(&self, txid: &Txid) -> Option<MerkleBranch> {
        let position = self.levels[0]
            .iter()
            .find(|node| node.kind != Kind::Duplicate && node.hash == *txid.as_bytes())?
            .offset;
        let mut siblings = Vec::with_capacity(self.levels.len());
        climb(&self.levels, |level, nodes| {
            let sibling = (position >> level) ^ 1;
            if let Ok(found) = nodes.binary_search_by_key(&sibling, |node| node.offset) {
                siblings.push(match nodes[found].kind {
                    Kind::Duplicate => Sibling::Duplicate,
                    _ => Sibling::Hash(nodes[found].hash),
                });
            }
        })
        .expect("a BUMP is checked when it is made");
        Some(MerkleBranch { position, siblings })
    }

    /// Merges two BUMPs of the same block into one about the transactions of both.
    ///
    /// Fails with [`BumpError::DifferentBlocks`] if they are of different blocks.
    pub fn combine(&self, other: &Self) -> Result<Self, BumpError> {
        let block = |bump: &Self| (bump.height, bump.root, bump.levels.len());
        if block(self) != block(other) {
            return Err(BumpError::DifferentBlocks);
        }
        let mut levels = vec![BTreeMap::new(); self.levels.len()];
        for bump in [self, other] {
            for (level, nodes) in levels.iter_mut().zip(&bump.levels) {
                nodes.iter().for_each(|node| insert(level, *node));
            }
        }
        Self::without_computed(self.height, levels)
    }

    /// Decodes a BUMP that fills `bytes` to the last byte.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BumpError> {
        let mut reader = Reader::new(bytes);
        let bump = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(bump)
    }

    /// Reads a BUMP from the front of `reader`, and checks that it is one tree.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, BumpError> {
        let height = reader.var_int()?;
        let height = u32::try_from(height).map_err(|_| BumpError::Height(height))?;
        let [count] = reader.array()?;
        let count = usize::from(count);
        if !(1..=Self::MAX_LEVELS).contains(&count) {
            return Err(BumpError::Levels(count));
        }
        let levels = (0..count).map(|level| read_level(reader, level)).collect::<Result<_, _>>()?;
        Self::checked(height, levels)
    }

    /// Appends the BUMP to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        write_var_int(out, self.height.into());
        out.push(self.levels.len() as u8);
        for level in &self.levels {
            write_var_int(out, level.len() as u64);
            for node in level {
                write_var_int(out, node.offset);
                match node.kind {
                    Kind::Duplicate => out.push(flags::DUPLICATE),
                    kind => {
                        out.push(if kind == Kind::Txid { flags::TXID } else { flags::SIBLING });
                        out.extend_from_slice(&node.hash);
                    }
                }
            }
        }
    }

    /// The encoded BUMP.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// Removes the nodes above the transactions that can be computed from them.
    fn without_computed(
        height: u32,
        mut levels: Vec<BTreeMap<u64, Node>>,
    ) -> Result<Self, BumpError> {
        let positions: Vec<_> = levels[0].keys().copied().collect();
        for (level, nodes) in levels.iter_mut().enumerate().skip(1) {
            let computed: BTreeSet<_> =
                positions.iter().map(|position| position >> level).collect();
            nodes.retain(|offset, _| !computed.contains(offset));
        }
        Self::checked(
            height,
            levels.into_iter().map(|level| level.into_values().collect()).collect(),
        )
    }

    fn checked(height: u32, levels: Vec<Vec<Node>>) -> Result<Self, BumpError> {
        let root = match climb(&levels, |_, _| {})?.as_slice() {
            [Node { offset: 0, hash, .. }] => MerkleRoot::from_bytes(*hash),
            [] => return Err(BumpError::MissingNode { level: 0, offset: 0 }),
            _ => return Err(BumpError::TooWide(levels.len())),
        };
        Ok(Self { height, levels, root })
    }
}

/// Inserts a node at its place. A transaction that a BUMP is about replaces one that only serves as
/// a sibling.
fn insert(level: &mut BTreeMap<u64, Node>, node: Node) {
    let known = level.entry(node.offset).or_insert(node);
    if node.kind == Kind::Txid {
        *known = node;
    }
}

fn sibling_node(offset: u64, sibling: &Sibling) -> Node {
    match sibling {
        Sibling::Hash(hash) => Node { offset, kind: Kind::Sibling, hash: *hash },
        Sibling::Duplicate => Node { offset, kind: Kind::Duplicate, hash: [0; 32] },
    }
}

/// Reads the nodes of a level. The announced number reserves no memory.
fn read_level(reader: &mut Reader<'_>, level: usize) -> Result<Vec<Node>, BumpError> {
    let mut nodes = Vec::new();
    let mut has_duplicate = false;
    for _ in 0..reader.var_int()? {
        let offset = reader.var_int()?;
        let node = match reader.array()? {
            // A second duplicate would be misplaced. Such a node takes far fewer bytes in the input
            // than in memory.
            [flags::DUPLICATE] if has_duplicate => {
                return Err(BumpError::MisplacedDuplicate { level, offset });
            }
            [flags::DUPLICATE] => sibling_node(offset, &Sibling::Duplicate),
            [flags::SIBLING] => sibling_node(offset, &Sibling::Hash(reader.array()?)),
            [flags::TXID] if level == 0 => Node { offset, kind: Kind::Txid, hash: reader.array()? },
            [flags] => return Err(BumpError::Flags { level, flags }),
        };
        has_duplicate |= node.kind == Kind::Duplicate;
        nodes.push(node);
    }
    Ok(nodes)
}

/// Computes every node that can be computed, and checks those that are also carried. Passes the
/// nodes of each level, in ascending order, to `visit`. Answers the nodes above the highest level.
fn climb(
    levels: &[Vec<Node>],
    mut visit: impl FnMut(usize, &[Node]),
) -> Result<Vec<Node>, BumpError> {
    if let [level] = levels
        && let [only @ Node { offset: 0, kind: Kind::Sibling | Kind::Txid, .. }] = level.as_slice()
    {
        // The only transaction of a block is the root of its tree.
        return Ok(vec![*only]);
    }
    let mut computed = Vec::new();
    for (level, carried) in levels.iter().enumerate() {
        computed.extend_from_slice(carried);
        let nodes = one_at_each_place(computed, level)?;
        visit(level, &nodes);
        computed = parents(&nodes, level)?;
    }
    Ok(computed)
}

fn one_at_each_place(mut nodes: Vec<Node>, level: usize) -> Result<Vec<Node>, BumpError> {
    nodes.sort_unstable_by_key(|node| (node.offset, node.kind));
    for pair in nodes.windows(2) {
        let (first, second) = (&pair[0], &pair[1]);
        let (offset, is_computed) = (first.offset, second.kind == Kind::Computed);
        if offset == second.offset && !is_computed {
            return Err(BumpError::SameOffset { level, offset });
        }
        if offset == second.offset && (first.kind == Kind::Duplicate || first.hash != second.hash) {
            return Err(BumpError::WrongHash { level, offset });
        }
    }
    nodes.dedup_by_key(|node| node.offset);
    Ok(nodes)
}

fn parents(nodes: &[Node], level: usize) -> Result<Vec<Node>, BumpError> {
    let mut parents = Vec::with_capacity(nodes.len() / 2 + 1);
    let mut rest = nodes;
    while let [left, after @ ..] = rest {
        let offset = left.offset ^ 1;
        let [right, after @ ..] = after else {
            return Err(BumpError::MissingNode { level, offset });
        };
        if left.kind == Kind::Duplicate || right.kind == Kind::Duplicate && !after.is_empty() {
            let misplaced = if left.kind == Kind::Duplicate { left } else { right };
            return Err(BumpError::MisplacedDuplicate { level, offset: misplaced.offset });
        }
        if left.offset & 1 == 1 || right.offset != offset {
            return Err(BumpError::MissingNode { level, offset });
        }
        let hash = match right.kind {
            Kind::Duplicate => parent(&left.hash, &left.hash),
            _ => parent(&left.hash, &right.hash),
        };
        parents.push(Node { offset: left.offset / 2, kind: Kind::Computed, hash });
        rest = after;
    }
    Ok(parents)
}

#[cfg(test)]
mod tests;
