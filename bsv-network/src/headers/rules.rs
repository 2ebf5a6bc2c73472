use bsv_tx::{BlockHash, BlockHeader, Network};
use ruint::aliases::U256;
use thiserror::Error;

/// The rules of one network for headers: those of nodes 1.2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeaderRules {
    /// The easiest target, in compact form.
    easiest: u32,
    /// The height from which the difficulty of the next block follows the work of the last 144
    /// blocks. `None` if the difficulty never changes.
    pub(super) adjusts_from: Option<u32>,
    /// Whether a block that comes more than 20 minutes after its parent may have the easiest target.
    eases: bool,
    /// The height from which the version must be 4 or above (BIP 65).
    version_four_from: u32,
}

/// The seconds by which a header may be ahead of our clock.
pub(super) const MOST_AHEAD: u64 = 7200;

/// The seconds after which a block of the test network may have the easiest target.
const EASED_AFTER: u32 = 1200;

/// How many times the earliest allowed time is the median of.
const MEDIAN_OF: usize = 11;

/// Over how many blocks the difficulty is adjusted.
const ADJUSTED_OVER: u32 = 144;

/// How many headers, up to the parent, the required difficulty depends on.
pub(super) const WINDOW: usize = ADJUSTED_OVER as usize + 3;

/// The seconds between two blocks that the difficulty aims at.
const SPACING: u64 = 600;

/// Why a header is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// The parent is unknown. It may be that other headers must come first.
    #[error("the header names the parent {0}, which is not known")]
    UnknownParent(BlockHash),
    /// The header begins a branch below the checkpoint.
    #[error("the header begins a branch at height {0}, below the checkpoint")]
    BelowCheckpoint(u32),
    /// The stated difficulty is not the required one (`bad-diffbits`).
    #[error("the header states the difficulty {stated:#010x}, and {required:#010x} is required")]
    Difficulty {
        /// The header's target in compact form.
        stated: u32,
        /// The required target in compact form.
        required: u32,
    },
    /// The hash does not meet the stated target, or the target is easier than the network allows
    /// (`high-hash`).
    #[error("the header has no proof of work")]
    NoProofOfWork,
    /// The time is not after the median of the 11 headers before it (`time-too-old`).
    #[error("the header has the time {time}, which must be after {median}")]
    TooOld {
        /// The header's time, in seconds since 1970.
        time: u32,
        /// The median.
        median: u32,
    },
    /// The time is more than two hours ahead of our clock (`time-too-new`). The same header may be
    /// taken later.
    #[error("the header has the time {0}, more than two hours ahead of this machine's clock")]
    TooNew(u32),
    /// The version is below 4 (`bad-version`).
    #[error("the header has the version {0}, which must be 4 or above")]
    Version(i32),
}

/// The header that a new one follows, and the headers before it.
pub(super) trait Ancestors {
    /// The height of the parent.
    fn height(&self) -> u32;
    /// The header that lies `below` the parent, which is 0 for the parent itself. `None` if its bytes
    /// are not known.
    fn get(&self, below: u32) -> Option<Ancestor>;
}

/// What the rules for a header need of the headers before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ancestor {
    pub(super) time: u32,
    pub(super) bits: u32,
    /// The work of all headers up to this one.
    pub(super) work: u128,
}

impl HeaderRules {
    /// The rules of a network.
    pub(super) fn of(network: Network) -> Self {
        match network {
            Network::Livenet => Self {
                easiest: 0x1d00_ffff,
                adjusts_from: Some(504_031),
                eases: false,
                version_four_from: 388_381,
            },
            Network::Testnet => Self {
                easiest: 0x1d00_ffff,
                adjusts_from: Some(1_188_697),
                eases: true,
                version_four_from: 581_885,
            },
            Network::Regtest => Self {
                easiest: 0x207f_ffff,
                adjusts_from: None,
                eases: false,
                version_four_from: 1_351,
            },
        }
    }

    /// Judges a header whose parent is known. `now` is in seconds since 1970. Answers the header's
    /// own work.
    pub(super) fn judge(
        &self,
        header: &BlockHeader,
        hash: BlockHash,
        ancestors: &impl Ancestors,
        now: u64,
    ) -> Result<u128, HeaderError> {
        if let Some(required) = self.required(ancestors, header.time)
            && header.bits != required
        {
            return Err(HeaderError::Difficulty { stated: header.bits, required });
        }
        let work = self.proved_work(header, hash).ok_or(HeaderError::NoProofOfWork)?;
        if let Some(median) = median_time(ancestors)
            && header.time <= median
        {
            return Err(HeaderError::TooOld { time: header.time, median });
        }
        if header.version < 4 && ancestors.height() + 1 >= self.version_four_from {
            return Err(HeaderError::Version(header.version));
        }
        if u64::from(header.time) > now.saturating_add(MOST_AHEAD) {
            return Err(HeaderError::TooNew(header.time));
        }
        Ok(work)
    }

    /// The header's own work. `None` if it has no proof of work, or its target is easier than the
    /// network allows.
    pub(super) fn proved_work(&self, header: &BlockHeader, hash: BlockHash) -> Option<u128> {
        let target = header.target()?;
        // Numbers with the most significant byte first have the order of their bytes.
        let is_proved =
            hash.to_display_bytes() <= target && target <= self.easiest_target().to_be_bytes();
        is_proved.then(|| work(target))
    }

    /// Whether a block with this hash has the least work that the network allows.
    pub(super) fn has_least_work(&self, hash: &BlockHash) -> bool {
        U256::from_be_bytes(hash.to_display_bytes()) <= self.easiest_target()
    }

    /// The target that a header of this time must state, in compact form. `None` if too few headers
    /// before it are known.
    fn required(&self, ancestors: &impl Ancestors, time: u32) -> Option<u32> {
        let parent = ancestors.get(0)?;
        if self.eases && time > parent.time.saturating_add(EASED_AFTER) {
            return Some(self.easiest);
        }
        self.required_in_time(ancestors)
    }

    /// The target that a header must state that comes soon after its parent.
    pub(super) fn required_in_time(&self, ancestors: &impl Ancestors) -> Option<u32> {
        if self.adjusts_from.is_none() {
            return ancestors.get(0).map(|parent| parent.bits);
        }
        let first = suitable(ancestors, ADJUSTED_OVER)?;
        let last = suitable(ancestors, 0)?;
        let least = u64::from(ADJUSTED_OVER) / 2 * SPACING;
        let seconds = u64::from(last.time).saturating_sub(first.time.into());
        let seconds = seconds.clamp(least, 4 * least);
        let work = U256::from(last.work - first.work) * U256::from(SPACING) / U256::from(seconds);
        let target = work.wrapping_neg().checked_div(work).unwrap_or(U256::MAX);
        Some(compact(target.min(self.easiest_target())))
    }

    fn easiest_target(&self) -> U256 {
        let exponent = 8 * (self.easiest as usize >> 24) - 24;
        U256::from(self.easiest & 0x00ff_ffff) << exponent
    }
}

/// The work of a block with this target, whose most significant byte comes first: 2²⁵⁶ / (target + 1).
/// Nobody can do more work than fits.
pub(super) fn work(target: [u8; 32]) -> u128 {
    let target = U256::from_be_bytes(target);
    let one = U256::from(1);
    // 2²⁵⁶ does not fit: it is !target + (target + 1).
    (!target / (target + one) + one).saturating_to()
}

/// The header with the middle time of the one that lies `below` the parent and the two before it.
/// Equal times keep the order that nodes give them.
fn suitable(ancestors: &impl Ancestors, below: u32) -> Option<Ancestor> {
    let mut three = [ancestors.get(below + 2)?, ancestors.get(below + 1)?, ancestors.get(below)?];
    for (earlier, later) in [(0, 2), (0, 1), (1, 2)] {
        if three[earlier].time > three[later].time {
            three.swap(earlier, later);
        }
    }
    Some(three[1])
}

/// The median of the times of the last 11 headers, or of all if the chain is shorter. `None` if
/// headers of these are not known.
pub(super) fn median_time(ancestors: &impl Ancestors) -> Option<u32> {
    let mut times = [0; MEDIAN_OF];
    let count = MEDIAN_OF.min(ancestors.height() as usize + 1);
    for (below, time) in (0..).zip(&mut times[..count]) {
        *time = ancestors.get(below)?.time;
    }
    times[..count].sort_unstable();
    Some(times[count / 2])
}

/// The compact form of a target ("nBits"), which has three significant bytes.
fn compact(target: U256) -> u32 {
    let mut size = target.bit_len().div_ceil(8);
    let mut mantissa = match size {
        0..=3 => target.to::<u32>() << (8 * (3 - size)),
        _ => (target >> (8 * (size - 3))).to::<u32>(),
    };
    // The highest bit of the mantissa is a sign.
    if mantissa & 0x0080_0000 != 0 {
        mantissa >>= 8;
        size += 1;
    }
    let size = u32::try_from(size).expect("a number of 256 bits has at most 33 bytes");
    mantissa | size << 24
}

#[cfg(test)]
mod tests {
    use bsv_tx::MerkleRoot;

    use super::*;

    fn header(bits: u32) -> BlockHeader {
        let nothing = [0; 32];
        let previous_block = BlockHash::from_bytes(nothing);
        let merkle_root = MerkleRoot::from_bytes(nothing);
        BlockHeader { version: 4, previous_block, merkle_root, time: 0, bits, nonce: 0 }
    }

    /// Headers of the test network, which need not belong together.
    struct Headers(Vec<Ancestor>);

    impl Headers {
        /// As many as the difficulty depends on, at intervals of `spacing` seconds.
        fn every(spacing: u32, bits: u32) -> Self {
            let own = work(header(bits).target().unwrap());
            let headers = (0..WINDOW as u32).map(|index| {
                let time = 1_500_000_000 + index * spacing;
                Ancestor { time, bits, work: own * u128::from(index + 1) }
            });
            Self(headers.collect())
        }

        fn required_after(&self, seconds: u32) -> Option<u32> {
            let time = self.0.last().unwrap().time + seconds;
            HeaderRules::of(Network::Testnet).required(self, time)
        }
    }

    impl Ancestors for Headers {
        fn height(&self) -> u32 {
            1_200_000
        }

        fn get(&self, below: u32) -> Option<Ancestor> {
            let place = self.0.len().checked_sub(1 + below as usize)?;
            self.0.get(place).copied()
        }
    }

    #[test]
    fn on_the_test_network_20_minutes_without_a_block_allow_the_easiest_target() {
        let (easiest, hard) = (0x1d00_ffff, 0x1b01_0000);
        let headers = Headers::every(600, hard);
        assert_eq!(headers.required_after(1_201), Some(easiest));
        // The blocks came at the rate that is aimed at.
        assert_eq!(headers.required_after(1_200), Some(hard));
        // An easy block leaves the difficulty of the next one to the work of the others.
        let mut headers = Headers::every(600, hard);
        let Ancestor { time, work, .. } = *headers.0.last().unwrap();
        headers.0.remove(0);
        let (time, work) = (time + 1_201, work + 0x1_0001_0001);
        headers.0.push(Ancestor { time, bits: easiest, work });
        assert_eq!(headers.required_after(1_201), Some(easiest));
        let required = target_of(headers.required_after(1_200).unwrap());
        assert!(required < target_of(hard) * U256::from(2), "{required}");
        // Blocks that come fast are made harder, but never by more than twice, and never easier than
        // the network allows.
        let harder = target_of(Headers::every(1, hard).required_after(600).unwrap());
        let half = target_of(hard) / U256::from(2);
        assert!(harder <= half && harder > half - half / U256::from(1_000), "{harder}");
        assert_eq!(Headers::every(6_000, easiest).required_after(600), Some(easiest));
    }

    #[test]
    fn on_the_test_network_the_first_headers_after_the_checkpoint_need_no_difficulty() {
        let mut headers = Headers::every(600, 0x1b01_0000);
        headers.0.remove(0);
        assert_eq!(headers.required_after(1_200), None);
        assert_eq!(headers.required_after(1_201), Some(0x1d00_ffff));
    }

    fn target_of(bits: u32) -> U256 {
        U256::from_be_bytes(header(bits).target().unwrap())
    }

    #[test]
    fn compact_forms_are_those_of_nodes() {
        for bits in [0x1d00_ffff, 0x207f_ffff, 0x1825_68ff, 0x0123_0000, 0x0200_8000, 0x0500_9234] {
            assert_eq!(compact(target_of(bits)), bits, "{bits:#x}");
        }
        assert_eq!(compact(U256::from(0x80)), 0x0200_8000);
        assert_eq!(compact(U256::ZERO), 0);
    }

    #[test]
    fn the_work_of_the_easiest_targets() {
        let easiest = |network| HeaderRules::of(network).easiest_target().to_be_bytes();
        assert_eq!(work(easiest(Network::Livenet)), 0x1_0001_0001);
        assert_eq!(work(easiest(Network::Regtest)), 2);
        let hardest = U256::from(1).to_be_bytes();
        assert_eq!(work(hardest), u128::MAX);
    }
}
