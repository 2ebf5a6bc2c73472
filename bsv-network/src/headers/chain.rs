use std::hash::{BuildHasher, RandomState};

use bsv_tx::{BlockHash, BlockHeader, MerkleRoot, Network, sha256d};
use hashbrown::HashTable;

use super::checkpoint::Checkpoint;
use super::rules::{Ancestor, Ancestors, HeaderError, HeaderRules, MOST_AHEAD, median_time, work};

/// Valid headers from a checkpoint on, and the branch of them with most work. Of two branches with
/// the same work the first one seen stays.
#[derive(Clone, Debug)]
pub struct HeaderChain {
    rules: HeaderRules,
    /// In the order of their arrival: each one comes after its parent.
    headers: Vec<Known>,
    /// The place in `headers` of each one, found by its hash.
    by_hash: HashTable<u32>,
    hasher: RandomState,
    /// The parent of the first header.
    before: BlockHash,
    /// The place in `headers` of each header of the best branch, the lowest first.
    best: Vec<u32>,
    /// The height of the first header in `best`.
    lowest: u32,
    /// The height of the checkpoint.
    checkpoint: u32,
    /// Whether the bytes of the first header are unknown, of which there is the hash only.
    begins_with_hash: bool,
}

/// A header in its chain, which has the hash of its parent.
#[derive(Clone, Debug)]
struct Known {
    version: i32,
    merkle_root: MerkleRoot,
    time: u32,
    bits: u32,
    nonce: u32,
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
    /// How many of them were not known.
    pub new: usize,
    /// The height of the last valid one.
    pub height: Option<u32>,
    /// The hash of the last valid one.
    pub last: Option<BlockHash>,
    /// How the best branch has changed, if it has.
    pub change: Option<Change>,
    /// Why the header after the valid ones was not taken.
    pub refusal: Option<HeaderError>,
    /// Whether that header would be the tip if this machine's clock were up to two hours later: it is
    /// [too new](HeaderError::TooNew), and has more work. A header of the test network that is easy
    /// because it comes late does not count.
    pub is_ahead: bool,
}

/// Blocks of a chain, the highest first, from which a source finds where its chain parts from ours.
pub type Locator = Vec<(u32, BlockHash)>;

const NO_HASH: BlockHash = BlockHash::from_bytes([0; 32]);

/// In place of a checkpoint's header of which only the hash is known. Nobody reads it.
const UNKNOWN: BlockHeader = BlockHeader {
    version: 0,
    previous_block: NO_HASH,
    merkle_root: MerkleRoot::from_bytes([0; 32]),
    time: 0,
    bits: 0,
    nonce: 0,
};

/// How many headers a source gives at once at most.
pub(super) const MOST_AT_ONCE: usize = 2_000;

/// By how many headers more than the best branch has the others may be, and how many more remain when
/// they are too many. A branch that a source is about to give has its place among these, and may be
/// as long as the best one.
const MOST_ASIDE: usize = 40_000;
const KEPT_ASIDE: usize = 20_000;

impl HeaderChain {
    /// A chain that begins at a checkpoint.
    pub fn new(network: Network, checkpoint: &Checkpoint) -> Self {
        let mut chain = Self {
            rules: HeaderRules::of(network),
            headers: Vec::new(),
            by_hash: HashTable::new(),
            hasher: RandomState::new(),
            before: checkpoint.window.first().map_or(NO_HASH, |first| first.previous_block),
            best: Vec::new(),
            lowest: checkpoint.lowest(),
            checkpoint: checkpoint.height(),
            begins_with_hash: checkpoint.window.is_empty(),
        };
        let own_work = |header: &BlockHeader| header.target().map_or(0, work);
        let of_window = checkpoint.window.iter().map(own_work).sum();
        let mut height = chain.lowest;
        let mut total = checkpoint.work.saturating_sub(of_window);
        for header in &checkpoint.window {
            total += own_work(header);
            let parent = chain.best.last().copied().unwrap_or_default();
            let place = chain.insert(header, header.block_hash(), height, parent, total);
            chain.best.push(place);
            height += 1;
        }
        if chain.begins_with_hash {
            let place = chain.insert(&UNKNOWN, checkpoint.hash(), height, 0, total);
            chain.best.push(place);
        }
        chain
    }

    /// The last block of the best branch.
    pub fn tip(&self) -> Tip {
        let last = &self.headers[self.tip_place()];
        let time = (!self.is_unknown(self.tip_place())).then_some(last.time);
        Tip { height: last.height, hash: last.hash, time }
    }

    /// Whether the block at a height of the best branch has a Merkle root, for
    /// [`Beef::verify`](bsv_tx::Beef::verify). `None` above the tip, and below the first header whose
    /// bytes are known.
    pub fn has_root(&self, height: u32, root: MerkleRoot) -> Option<bool> {
        self.header_at(height).map(|header| header.merkle_root == root)
    }

    /// The median time of the last 11 headers, in seconds since 1970, which nodes compare lock times
    /// with (BIP 113). `None` if not all of them are known.
    pub fn median_time(&self) -> Option<u32> {
        median_time(&Branch { chain: self, parent: self.tip_place() })
    }

    /// The height of the checkpoint.
    pub fn checkpoint_height(&self) -> u32 {
        self.checkpoint
    }

    /// The header at a height of the best branch. `None` above the tip and below the first header
    /// whose bytes are known.
    pub fn header_at(&self, height: u32) -> Option<BlockHeader> {
        self.header(self.place_at(height)?)
    }

    /// The height of a block, if the best branch has it.
    pub fn height_of(&self, hash: &BlockHash) -> Option<u32> {
        let place = self.place_of(hash)? as usize;
        let height = self.headers[place].height;
        (self.place_at(height) == Some(place)).then_some(height)
    }

    /// The header of a block on any branch that is not forgotten, and its height. `None` also for a
    /// checkpoint whose bytes are unknown.
    pub fn find(&self, hash: &BlockHash) -> Option<(u32, BlockHeader)> {
        let place = self.place_of(hash)? as usize;
        Some((self.headers[place].height, self.header(place)?))
    }

    /// Whether a block may be one of those before the first header whose bytes are known, which no branch
    /// leaves. Only its work tells: a block of a network for tests has too little.
    pub fn may_begin_with(&self, height: u32, hash: &BlockHash) -> bool {
        match self.place_at(height) {
            Some(place) => self.headers[place].hash == *hash,
            None => height < self.lowest && self.rules.has_least_work(hash),
        }
    }

    /// How the best branch has changed since it had this tip. `None` if the block is unknown, or on a
    /// branch that is forgotten: then what follows the checkpoint may have changed.
    pub fn change_since(&self, tip: &BlockHash) -> Option<Change> {
        let place = self.place_of(tip)? as usize;
        let stays = self.headers[self.fork_of(place)].height;
        Some(Change { stays, left: self.headers[place].height - stays })
    }

    /// The blocks from which a source finds where its chain parts from the branch that ends with
    /// `hash`, or from the best branch if no header has that hash.
    pub fn locator(&self, hash: Option<BlockHash>) -> Locator {
        let known = hash.and_then(|hash| self.place_of(&hash));
        let mut place = known.map_or(self.tip_place(), |place| place as usize);
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
        let known = self.headers.len();
        let mut extended = Extended {
            valid: 0,
            new: 0,
            height: None,
            last: None,
            change: None,
            refusal: None,
            is_ahead: false,
        };
        let mut stays = u32::MAX;
        for header in headers {
            match self.add(header, now) {
                Ok((place, fork)) => {
                    extended.valid += 1;
                    let Known { height, hash, .. } = self.headers[place as usize];
                    (extended.height, extended.last) = (Some(height), Some(hash));
                    stays = stays.min(fork.unwrap_or(u32::MAX));
                }
                Err(refusal) => {
                    extended.refusal = Some(refusal);
                    extended.is_ahead = matches!(refusal, HeaderError::TooNew(_))
                        && self.would_lead_soon(header, now);
                    break;
                }
            }
        }
        if self.tip_place() != before {
            let left = self.headers[before].height.saturating_sub(stays);
            extended.change = Some(Change { stays, left });
        }
        extended.new = self.headers.len() - known;
        if self.headers.len() > 2 * self.best.len() + MOST_ASIDE {
            self.forget_old_branches();
        }
        extended
    }

    /// Makes room for further headers.
    pub(super) fn reserve(&mut self, headers: usize) {
        self.headers.reserve_exact(headers);
        let key = |place: &u32| self.hasher.hash_one(self.headers[*place as usize].hash);
        self.by_hash.reserve(headers, key);
        self.best.reserve_exact(headers);
    }

    /// Takes encoded headers that were judged before they were stored, each the child of the one
    /// before it, until one does not follow or has no proof of work. Answers how many were taken.
    pub(super) fn load(&mut self, bytes: &[u8]) -> usize {
        let encoded = bytes.chunks_exact(BlockHeader::LEN);
        let count = encoded.len();
        for (taken, bytes) in encoded.enumerate() {
            let hash = BlockHash::from_bytes(sha256d(bytes));
            let Ok(header) = BlockHeader::from_bytes(bytes) else { return taken };
            let tip = self.tip_place();
            let Known { hash: parent, height, work, .. } = self.headers[tip];
            let own = self.rules.proved_work(&header, hash);
            let Some(own) = own.filter(|_| header.previous_block == parent) else { return taken };
            let work = work.saturating_add(own);
            let place = self.insert(&header, hash, height + 1, tip as u32, work);
            self.best.push(place);
        }
        count
    }

    /// Takes one header. Answers its place, and the height of the last header of the best branch that
    /// stays, if the best branch changes.
    fn add(&mut self, header: &BlockHeader, now: u64) -> Result<(u32, Option<u32>), HeaderError> {
        let hash = header.block_hash();
        if let Some(place) = self.place_of(&hash) {
            return Ok((place, None));
        }
        let parent_place = self.place_of(&header.previous_block);
        let parent_place = parent_place.ok_or(HeaderError::UnknownParent(header.previous_block))?;
        let parent = parent_place as usize;
        let Known { height, work, .. } = self.headers[parent];
        if height < self.checkpoint {
            return Err(HeaderError::BelowCheckpoint(height + 1));
        }
        let own = self.rules.judge(header, hash, &Branch { chain: self, parent }, now)?;
        let work = work.saturating_add(own);
        let is_best = work > self.headers[self.tip_place()].work;
        let place = self.insert(header, hash, height + 1, parent_place, work);
        Ok((place, is_best.then(|| self.follow(place))))
    }

    /// Whether a header would be the tip if the clock were two hours later, and has the work of an
    /// ordinary block: anybody can make an easy one for the test network.
    fn would_lead_soon(&self, header: &BlockHeader, now: u64) -> bool {
        let Some(parent) = self.place_of(&header.previous_block) else { return false };
        let parent = parent as usize;
        let own = header.target().map_or(0, work);
        let required = self.rules.required_in_time(&Branch { chain: self, parent });
        self.headers[parent].work.saturating_add(own) > self.headers[self.tip_place()].work
            && required == Some(header.bits)
            && u64::from(header.time) <= now.saturating_add(2 * MOST_AHEAD)
    }

    /// Makes the branch that ends with a header the best one. Answers the height of the last header
    /// that stays.
    fn follow(&mut self, tip: u32) -> u32 {
        let fork = self.fork_of(tip as usize);
        let stays = self.headers[fork].height;
        self.best.truncate((stays - self.lowest + 1) as usize);
        let kept = self.best.len();
        let mut place = tip;
        while place as usize != fork {
            self.best.push(place);
            place = self.headers[place as usize].parent;
        }
        self.best[kept..].reverse();
        stays
    }

    /// The place of the last header of the best branch on the branch that ends at `place`.
    fn fork_of(&self, mut place: usize) -> usize {
        while self.place_at(self.headers[place].height) != Some(place) {
            place = self.headers[place].parent as usize;
        }
        place
    }

    /// Keeps the best branch, and of the others those that were extended last. A source gives the
    /// others again.
    fn forget_old_branches(&mut self) {
        // The place of the last descendant of each header. Children come after their parents.
        let mut latest: Vec<u32> = (0..).take(self.headers.len()).collect();
        for (place, known) in self.headers.iter().enumerate().rev() {
            let parent = known.parent as usize;
            latest[parent] = latest[parent].max(latest[place]);
        }
        self.best.iter().for_each(|place| latest[*place as usize] = u32::MAX);
        let mut aside: Vec<u32> = latest.iter().copied().filter(|it| *it != u32::MAX).collect();
        aside.sort_unstable_by(|one, other| other.cmp(one));
        // Of this branch and of older ones, nothing remains.
        let most = self.best.len() + KEPT_ASIDE;
        let forgotten = aside.get(most).copied().unwrap_or_default();
        let mut places = vec![u32::MAX; self.headers.len()];
        let mut kept = Vec::with_capacity(self.best.len() + most);
        for (place, known) in std::mem::take(&mut self.headers).into_iter().enumerate() {
            if latest[place] > forgotten {
                places[place] = kept.len() as u32;
                kept.push(Known { parent: places[known.parent as usize], ..known });
            }
        }
        self.headers = kept;
        self.best.iter_mut().for_each(|place| *place = places[*place as usize]);
        self.by_hash = HashTable::with_capacity(self.headers.len());
        (0..self.headers.len() as u32).for_each(|place| self.index(place));
    }

    /// Takes a header at this height, whose parent has the place `parent`. `work` is that of all
    /// headers up to it. Answers its place.
    fn insert(
        &mut self,
        header: &BlockHeader,
        hash: BlockHash,
        height: u32,
        parent: u32,
        work: u128,
    ) -> u32 {
        let place = u32::try_from(self.headers.len()).expect("4,000 million headers fill 400 GB");
        let BlockHeader { version, previous_block: _, merkle_root, time, bits, nonce } = *header;
        if self.headers.len() == self.headers.capacity() {
            // Doubling would take twice the memory.
            self.headers.reserve_exact(self.headers.len() / 8 + 2_048);
        }
        self.headers.push(Known {
            version,
            merkle_root,
            time,
            bits,
            nonce,
            hash,
            height,
            parent,
            work,
        });
        self.index(place);
        place
    }

    /// Makes the header at a place one that is found by its hash.
    fn index(&mut self, place: u32) {
        let key = |place: &u32| self.hasher.hash_one(self.headers[*place as usize].hash);
        self.by_hash.insert_unique(key(&place), place, key);
    }

    /// The header at a place, unless it is a checkpoint whose bytes are unknown.
    fn header(&self, place: usize) -> Option<BlockHeader> {
        if self.is_unknown(place) {
            return None;
        }
        let Known { version, merkle_root, time, bits, nonce, parent, .. } = self.headers[place];
        let previous_block =
            if place == 0 { self.before } else { self.headers[parent as usize].hash };
        Some(BlockHeader { version, previous_block, merkle_root, time, bits, nonce })
    }

    /// The place of the header with a hash.
    fn place_of(&self, hash: &BlockHash) -> Option<u32> {
        let has_hash = |place: &u32| self.headers[*place as usize].hash == *hash;
        self.by_hash.find(self.hasher.hash_one(hash), has_hash).copied()
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

    fn get(&self, below: u32) -> Option<Ancestor> {
        let height = self.height().checked_sub(below)?;
        if height < self.chain.lowest {
            return None;
        }
        let place = self.chain.ancestor(self.parent, height);
        let Known { time, bits, work, .. } = self.chain.headers[place];
        (!self.chain.is_unknown(place)).then_some(Ancestor { time, bits, work })
    }
}

#[cfg(test)]
mod tests {
    use super::super::peer::tests::HEADERS;
    use super::*;

    #[test]
    fn an_easy_header_of_the_test_network_does_not_tell_that_the_clock_is_slow() {
        let window = &HEADERS[..147 * BlockHeader::LEN];
        let checkpoint = Checkpoint::from_headers(Network::Testnet, 1_200_000, window, 0).unwrap();
        let chain = HeaderChain::new(Network::Testnet, &checkpoint);
        let next = BlockHeader::from_bytes(&HEADERS[147 * BlockHeader::LEN..][..80]).unwrap();
        let now = u64::from(next.time) - MOST_AHEAD - 100;
        assert!(chain.would_lead_soon(&next, now));
        assert!(!chain.would_lead_soon(&next, now - MOST_AHEAD));
        let easy = BlockHeader { bits: 0x1d00_ffff, ..next };
        assert!(!chain.would_lead_soon(&easy, now));
    }
}
