use std::sync::Arc;
use std::time::Duration;

use bsv_tx::{BlockHash, BlockHeader};
use thiserror::Error;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::chain::{Extended, Locator, MOST_AT_ONCE};
use super::chaintracks::Chaintracks;
use super::file::{HeaderFile, HeaderFileError};
use super::peer::Peer;
use super::rules::HeaderError;
use super::source_error::SourceError;

/// How many headers a source may give that do not end on more work than the best branch.
const MOST_USELESS: usize = 10_000;
/// How long a source may take to answer one question, with all requests that it needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Gives headers, which may be wrong in any way.
#[derive(Debug)]
pub enum HeaderSource {
    /// An HTTP service.
    Chaintracks(Chaintracks),
    /// A node of the network, by its own protocol.
    Peer(Peer),
}

/// Why headers of a source were not all taken.
#[derive(Debug, Error)]
pub enum CatchUpError {
    /// The source gives none.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A header is not valid.
    #[error("{name} gave a header that is refused: {refusal}")]
    Refused {
        /// The source.
        name: String,
        /// The reason.
        refusal: HeaderError,
    },
    /// The headers end on less work than those of others.
    #[error("{name} gave {MOST_USELESS} headers that end on no more work than is known")]
    Useless {
        /// The source.
        name: String,
    },
    /// The source has not given the headers that it claims to have within a minute.
    #[error("{name} claims block {claimed}, and has not given its header within a minute")]
    Withheld {
        /// The source.
        name: String,
        /// The height.
        claimed: u32,
    },
    /// The source has brought nothing new for 10 minutes, and the newest header is old.
    #[error("{name} has given nothing new for 10 minutes, and the newest header is old")]
    Idle {
        /// The source.
        name: String,
    },
    /// The headers cannot be stored.
    #[error(transparent)]
    File(#[from] HeaderFileError),
}

/// What a source has brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaughtUp {
    /// How many headers were given and valid.
    pub valid: usize,
    /// How many headers have left the best branch, at the deepest reorganisation.
    pub left: u32,
    /// The height of the highest one.
    pub height: Option<u32>,
    /// Whether the next one would be the tip if this machine's clock were up to two hours later
    /// ([`HeaderError::TooNew`]). It may be that the clock is slow.
    pub is_ahead: bool,
}

impl HeaderSource {
    /// The host and the port, or the address of the service.
    pub fn name(&self) -> &str {
        match self {
            Self::Chaintracks(service) => service.name(),
            Self::Peer(peer) => peer.name(),
        }
    }

    /// The height that the source claims to have. Nothing proves it. 0 if it claims none.
    pub async fn claimed_height(&self) -> Result<u32, SourceError> {
        match self {
            Self::Chaintracks(service) => service.claimed_height().await,
            Self::Peer(peer) => Ok(peer.claimed_height()),
        }
    }

    /// Headers that follow one of the blocks of a locator, at most 2,000. None if the source knows
    /// no later one.
    pub async fn headers_after(
        &mut self,
        locator: &Locator,
    ) -> Result<Vec<BlockHeader>, SourceError> {
        match self {
            Self::Chaintracks(service) => service.headers_after(locator).await,
            Self::Peer(peer) => peer.headers_after(locator).await,
        }
    }

    /// Asks until the source has no further headers, and stores those that are valid. Several sources
    /// may do so at once. `now` answers the time of this machine's clock, in seconds since 1970.
    pub async fn catch_up(
        &mut self,
        file: &Arc<HeaderFile>,
        now: impl Fn() -> u64,
    ) -> Result<CaughtUp, CatchUpError> {
        let mut answers = Answers::default();
        while answers.take_next(self, file, now()).await? {}
        Ok(answers.caught_up)
    }
}

/// The answers of a source, from which it is asked for more.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) caught_up: CaughtUp,
    /// How many new headers have come since the source last brought more work.
    useless: usize,
    /// The height and the hash of the last header.
    last: Option<(u32, BlockHash)>,
    /// Whether the next question is the first one.
    is_first: bool,
    /// The last valid header of the last answer that had any.
    pub(super) shown: Option<BlockHash>,
    /// How many headers of the last answer were new.
    pub(super) new: usize,
    /// Whether the last answer had as many headers as fit.
    pub(super) is_full: bool,
    /// Whether the last answer has changed the best branch.
    pub(super) is_useful: bool,
}

impl Answers {
    /// Makes the next question begin below the tip: a source that has the tip then shows it.
    pub(super) fn begin_below_tip(&mut self, file: &HeaderFile) {
        let chain = file.chain();
        let tip = chain.tip();
        let parent = chain.header_at(tip.height).map(|header| header.previous_block);
        let parent = parent.filter(|_| tip.height > chain.checkpoint_height());
        self.last = parent.map(|parent| (tip.height, parent));
        self.is_first = true;
    }

    /// Asks once, and stores what is valid. Answers whether the source may have more.
    pub(super) async fn take_next(
        &mut self,
        source: &mut HeaderSource,
        file: &Arc<HeaderFile>,
        now: u64,
    ) -> Result<bool, CatchUpError> {
        let locator = file.chain().locator(self.last.map(|(_, hash)| hash));
        let headers = match timeout(TIMEOUT, source.headers_after(&locator)).await {
            Ok(headers) => headers?,
            Err(_) => {
                let reason = format!("no complete answer within {} s", TIMEOUT.as_secs());
                return Err(SourceError::unreachable(source.name(), reason).into());
            }
        };
        (self.new, self.is_useful, self.caught_up.is_ahead) = (0, false, false);
        self.is_full = headers.len() + 1 >= MOST_AT_ONCE;
        let Some(given) = headers.last().map(BlockHeader::block_hash) else { return Ok(false) };
        let Extended { valid, new, height, last: shown, change, refusal, is_ahead } =
            extend(file, headers, now).await?;
        let caught_up = &mut self.caught_up;
        caught_up.valid += valid;
        caught_up.height = caught_up.height.max(height);
        caught_up.is_ahead = is_ahead;
        self.useless += new;
        self.new = new;
        if let Some(change) = change {
            caught_up.left = caught_up.left.max(change.left);
            (self.useless, self.is_useful) = (0, true);
        }
        match refusal {
            None if self.useless > MOST_USELESS => {
                return Err(CatchUpError::Useless { name: source.name().to_owned() });
            }
            None | Some(HeaderError::TooNew(_)) => {}
            Some(refusal) => {
                return Err(CatchUpError::Refused { name: source.name().to_owned(), refusal });
            }
        }
        self.shown = shown.or(self.shown);
        // A source that answers with what it gave before has no more.
        let last = height.map(|height| (height, given));
        let is_higher = height > self.last.map(|(height, _)| height);
        let is_higher = is_higher || self.is_first && self.is_full;
        (self.last, self.is_first) = (last, false);
        Ok(is_higher && refusal.is_none())
    }
}

/// Takes headers in a thread that may wait for the disk. There is none while the runtime shuts down.
async fn extend(
    file: &Arc<HeaderFile>,
    headers: Vec<BlockHeader>,
    now: u64,
) -> Result<Extended, HeaderFileError> {
    let taker = Arc::clone(file);
    let taken = spawn_blocking(move || taker.extend(&headers, now)).await;
    taken.unwrap_or_else(|error| Err(file.failure(error.into())))
}

#[cfg(test)]
mod tests {
    use bsv_tx::Network;
    use tokio::runtime::Runtime;

    use super::super::checkpoint::Checkpoint;
    use super::*;

    #[test]
    fn headers_that_come_while_the_runtime_shuts_down_are_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let (path, network) = (directory.path().join("headers"), Network::Regtest);
        let file = Arc::new(HeaderFile::open(&path, network, &Checkpoint::of(network)).unwrap());
        let runtime = Runtime::new().unwrap();
        let handle = runtime.handle().clone();
        runtime.shutdown_background();
        let error = handle.block_on(extend(&file, Vec::new(), 0)).unwrap_err();
        assert!(matches!(error, HeaderFileError::Io { .. }), "{error}");
    }
}
