use std::collections::HashMap;

use bsv_tx::{BlockHash, BlockHeader, MerkleRoot, Network};

use super::checkpoint::Checkpoint;
use super::rules::{Ancestors, HeaderError, HeaderRules, work};

/// Valid headers from a checkpoint on, and the branch of them with most work. Of two branches with
/// the same work the first one seen stays.
#[derive(Clone, Debug)]
pub struct HeaderChain {
    rules: HeaderRules,
    /// In the order of their arrival: each one comes after its parent.
    headers: Vec<Known>,
    by_hash: HashMap<BlockHash, u32>,
    /// The place in `headers` of each header of the best branch, the lowest first.
    best: Vec<u32>,
    /// The height of the first header in `best`.
    lowest: u32,
    /// The height of the checkpoint.
    checkpoint: u32,
    /// Whether the bytes of the first header are unknown, of which there is the hash only.
    begins_with_hash: bool,
}

/// A header in its chain.
#[derive(Clone, Debug)]
struct Known {
    header: BlockHeader,
    hash: BlockHash,
    height: u32,
    /// The place of the parent. The first header names itself.
    parent: u32,
    /// The work of all known headers up to this one.
    work: u128,
}

/// The last block of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    /// Its height.
    pub height: u32,
    /// Its hash.
    pub hash: BlockHash,
    /// Its time in seconds since 1970, as its miner claims it. `None` if nothing follows a checkpoint
    /// of which only the hash is known.
    pub time: Option<u32>,
}

/// How the best branch has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The height of the last header that stays.
    pub stays: u32,
    /// How many headers have left the best branch.
    pub left: u32,
}

/// What a chain did with headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    /// How many headers were valid, known ones included. If it is fewer than were given, `refusal`
    /// concerns the next one.
    pub valid: usize,
    /// How the best branch has changed, if it has.
    pub change: Option<Change>,
    /// Why the header after the valid ones was not taken.
    pub refusal: Option<HeaderError>,
}

/// Blocks of a chain, the highest first, from which a source finds where its chain parts from ours.
pub type Locator = Vec<(u32, BlockHash)>;

/// In place of a checkpoint's header of which only the hash is known. Nobody reads it.
const UNKNOWN: BlockHeader = BlockHeader {
    version: 0,
    previous_block: BlockHash::from_bytes([0; 32]),
    merkle_root: MerkleRoot::from_bytes([0; 32]),
    time: 0,
    bits: 0,
    nonce: 0,
};

/// How many headers a source gives at once at most.
pub(super) const MOST_AT_ONCE: usize = 2_000;

/// How many headers outside of the best branch are kept.
const MOST_ASIDE: usize = 10_000;

impl HeaderChain {
    /// A chain that begins at a checkpoint.
    pub fn new(network: Network, checkpoint: &Checkpoint) -> Self {
        let mut chain = Self {
            rules: HeaderRules::of(network),
            headers: Vec::new(),
            by_hash: HashMap::new(),
            best: Vec::new(),
            lowest: checkpoint.lowest(),
            checkpoint: checkpoint.height(),
            begins_with_hash: checkpoint.window.is_empty(),
        };
        let mut height = chain.lowest;
        let mut total = 0;
        for header in &checkpoint.window {
            total += header.target().map_or(0, work);
            let place = chain.insert(*header, header.block_hash(), height, total);
            chain.best.push(place);
            height += 1;
        }
        if chain.begins_with_hash {
            let place = chain.insert(UNKNOWN, checkpoint.hash(), height, total);
            chain.best.push(place);
        }
        chain
    }

    /// The last block of the best branch.
    pub fn tip(&self) -> Tip {
        let last = &self.headers[self.tip_place()];
        let time = (!self.is_unknown(self.tip_place())).then_some(last.header.time);
        Tip { height: last.height, hash: last.hash, time }
    }

    /// The height of the checkpoint.
    pub fn checkpoint_height(&self) -> u32 {
        self.checkpoint
    }

    /// The header at a height of the best branch. `None` above the tip and below the first header
    /// whose bytes are known.
    pub fn header_at(&self, height: u32) -> Option<&BlockHeader> {
        let place = self.place_at(height)?;
        (!self.is_unknown(place)).then(|| &self.headers[place].header)
    }

    /// The height of a block, if the best branch has it.
    pub fn height_of(&self, hash: &BlockHash) -> Option<u32> {
        let place = *self.by_hash.get(hash)? as usize;
        let height = self.headers[place].height;
        (self.place_at(height) == Some(place)).then_some(height)
    }

    /// The blocks from which a source finds where its chain parts from the branch that ends with
    /// `hash`, or from the best branch if no header has that hash.
    pub fn locator(&self, hash: Option<BlockHash>) -> Locator {
        let known = hash.and_then(|hash| self.by_hash.get(&hash));
        let mut place = known.map_or(self.tip_place(), |place| *place as usize);
        let mut locator = Vec::new();
        let mut step = 1;
        loop {
            let Known { hash, height, .. } = self.headers[place];
            locator.push((height, hash));
            if height <= self.checkpoint {
                return locator;
            }
            if locator.len() >= 10 {
                step *= 2;
            }
            let next = height.saturating_sub(step).max(self.checkpoint);
            place = self.ancestor(place, next);
        }
    }

    /// Takes headers, each the child of the one before it or of any other known header, until one
    /// is not valid. `now` is the time of this machine's clock, in seconds since 1970.
    pub fn extend(&mut self, headers: &[BlockHeader], now: u64) -> Extended {
        let before = self.tip_place();
        let mut extended = Extended { valid: 0, change: None, refusal: None };
        let mut stays = u32::MAX;
        for header in headers {
            match self.add(header, now) {
                Ok(fork) => {
                    extended.valid += 1;
                    stays = stays.min(fork.unwrap_or(u32::MAX));
                }
                Err(refusal) => {
                    extended.refusal = Some(refusal);
                    break;
                }
            }
        }
        if self.tip_place() != before {
            let left = self.headers[before].height.saturating_sub(stays);
            extended.change = Some(Change { stays, left });
        }
        if self.headers.len() > self.best.len() + MOST_ASIDE {
            self.forget_other_branches();
        }
        extended
    }

    /// Takes one header. Answers the height of the last header of the best branch that stays, if
    /// the best branch changes.
    fn add(&mut self, header: &BlockHeader, now: u64) -> Result<Option<u32>, HeaderError> {
        let hash = header.block_hash();
        if self.by_hash.contains_key(&hash) {
            return Ok(None);
        }
        let parent = self.by_hash.get(&header.previous_block).map(|place| *place as usize);
        let parent = parent.ok_or(HeaderError::UnknownParent(header.previous_block))?;
        let Known { height, work, .. } = self.headers[parent];
        if height < self.checkpoint {
            return Err(HeaderError::BelowCheckpoint(height + 1));
        }
        let own = self.rules.judge(header, hash, &Branch { chain: self, parent }, now)?;
        let work = work.saturating_add(own);
        let is_best = work > self.headers[self.tip_place()].work;
        let place = self.insert(*header, hash, height + 1, work);
        Ok(is_best.then(|| self.follow(place)))
    }

    /// Makes the branch that ends with a header the best one. Answers the height of the last header
    /// that stays.
    fn follow(&mut self, tip: u32) -> u32 {
        let mut branch = Vec::new();
        let mut place = tip;
        let stays = loop {
            let Known { height, parent, .. } = self.headers[place as usize];
            if self.place_at(height) == Some(place as usize) {
                break height;
            }
            branch.push(place);
            place = parent;
        };
        self.best.truncate((stays - self.lowest + 1) as usize);
        self.best.extend(branch.iter().rev());
        stays
    }

    /// Keeps the best branch only. A source gives other branches again.
    fn forget_other_branches(&mut self) {
        let best = std::mem::take(&mut self.best);
        let headers = best.iter().map(|place| self.headers[*place as usize].clone()).collect();
        self.headers = headers;
        self.best = (0..).take(best.len()).collect();
        self.by_hash = self.headers.iter().map(|known| known.hash).zip(0..).collect();
        for (child, parent) in self.headers.iter_mut().skip(1).zip(0..) {
            child.parent = parent;
        }
    }

    fn insert(&mut self, header: BlockHeader, hash: BlockHash, height: u32, work: u128) -> u32 {
        let place = u32::try_from(self.headers.len()).expect("4,000 million headers fill 600 GB");
        let parent = self.by_hash.get(&header.previous_block).copied().unwrap_or(place);
        if self.headers.len() == self.headers.capacity() {
            // Doubling would take twice the memory.
            self.headers.reserve_exact(self.headers.len() / 8 + 2_048);
        }
        self.headers.push(Known { header, hash, height, parent, work });
        self.by_hash.insert(hash, place);
        place
    }

    fn tip_place(&self) -> usize {
        *self.best.last().expect("a chain has its checkpoint") as usize
    }

    fn place_at(&self, height: u32) -> Option<usize> {
        let index = height.checked_sub(self.lowest)?;
        self.best.get(index as usize).map(|place| *place as usize)
    }

    fn is_unknown(&self, place: usize) -> bool {
        self.begins_with_hash && place == 0
    }

    /// The place of the header at `height` of the branch that ends at `place`.
    fn ancestor(&self, mut place: usize, height: u32) -> usize {
        loop {
            let known = &self.headers[place];
            if known.height <= height {
                return place;
            }
            if self.place_at(known.height) == Some(place) {
                return self.place_at(height).unwrap_or(0);
            }
            place = known.parent as usize;
        }
    }
}

/// The branch that ends with a parent.
struct Branch<'a> {
    chain: &'a HeaderChain,
    parent: usize,
}

impl Ancestors for Branch<'_> {
    fn height(&self) -> u32 {
        self.chain.headers[self.parent].height
    }

    fn get(&self, below: u32) -> Option<(&BlockHeader, u128)> {
        let height = self.height().checked_sub(below)?;
        if height < self.chain.lowest {
            return None;
        }
        let place = self.chain.ancestor(self.parent, height);
        let Known { header, work, .. } = &self.chain.headers[place];
        (!self.chain.is_unknown(place)).then_some((header, *work))
    }
}
