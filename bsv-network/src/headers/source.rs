use bsv_tx::BlockHeader;
use thiserror::Error;

use super::chain::Locator;
use super::chaintracks::Chaintracks;
use super::file::{HeaderFile, HeaderFileError};
use super::peer::Peer;
use super::rules::HeaderError;
use super::source_error::SourceError;

/// How many headers a source may give that do not end on more work than the best branch.
const MOST_USELESS: usize = 10_000;

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
}

impl HeaderSource {
    /// The host and the port, or the address of the service.
    pub fn name(&self) -> &str {
        match self {
            Self::Chaintracks(service) => service.name(),
            Self::Peer(peer) => peer.name(),
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

    /// Asks until the source has no further headers, and stores those that are valid. `now` answers
    /// the time of this machine's clock, in seconds since 1970.
    pub async fn catch_up(
        &mut self,
        file: &mut HeaderFile,
        now: impl Fn() -> u64,
    ) -> Result<CaughtUp, CatchUpError> {
        let mut caught_up = CaughtUp::default();
        let mut useless = 0;
        let mut last = None;
        loop {
            let headers = self.headers_after(&file.chain().locator(last)).await?;
            let Some(given) = headers.last().map(BlockHeader::block_hash) else {
                return Ok(caught_up);
            };
            let extended = file.extend(&headers, now())?;
            caught_up.valid += extended.valid;
            if let Some(change) = extended.change {
                caught_up.left = caught_up.left.max(change.left);
                useless = 0;
            } else {
                useless += headers.len();
            }
            if let Some(refusal) = extended.refusal {
                return Err(CatchUpError::Refused { name: self.name().to_owned(), refusal });
            }
            if useless > MOST_USELESS {
                return Err(CatchUpError::Useless { name: self.name().to_owned() });
            }
            if last == Some(given) {
                return Ok(caught_up);
            }
            last = Some(given);
        }
    }
}
