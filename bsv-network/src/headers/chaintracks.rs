use std::error::Error;
use std::time::Duration;

use bsv_tx::BlockHeader;
use reqwest::{Client, Response};

use super::chain::{Locator, MOST_AT_ONCE};
use super::file::headers_in;
use super::source_error::SourceError;

/// A service that gives headers by HTTP: the routes of Chaintracks, version 2
/// (`/headers.bin`). Arcade serves them too.
#[derive(Clone, Debug)]
pub struct Chaintracks {
    client: Client,
    url: String,
}

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);

impl Chaintracks {
    /// A service whose routes begin with `url`, without a slash at the end. `client` should follow no
    /// redirects.
    pub fn new(client: Client, url: impl Into<String>) -> Self {
        Self { client, url: url.into() }
    }

    /// The URL.
    pub fn name(&self) -> &str {
        &self.url
    }

    /// The next headers, at most 2,000: see
    /// [`HeaderSource::headers_after`](super::HeaderSource::headers_after).
    pub async fn headers_after(&self, locator: &Locator) -> Result<Vec<BlockHeader>, SourceError> {
        // A service whose chain has parted from ours has other headers at these heights, or none: a
        // shorter chain may have more work.
        for (height, hash) in locator {
            let mut headers = self.headers_from(*height).await?;
            if headers.first().is_some_and(|first| first.block_hash() == *hash) {
                headers.remove(0);
                return Ok(headers);
            }
        }
        Err(self.nonsense("its headers follow no block that is known", b""))
    }

    async fn headers_from(&self, height: u32) -> Result<Vec<BlockHeader>, SourceError> {
        let Self { client, url, .. } = self;
        let url = format!("{url}/headers.bin?height={height}&count={MOST_AT_ONCE}");
        let answer = client.get(url).timeout(TIMEOUT).send().await;
        let answer = answer.map_err(|error| self.unreachable(error))?;
        let status = answer.status();
        let body = self.read(answer).await?;
        if !status.is_success() {
            return Err(self.nonsense(&format!("status {status}"), &body));
        }
        if body.len() % BlockHeader::LEN != 0 {
            return Err(self.nonsense(&format!("{} bytes", body.len()), &body));
        }
        Ok(headers_in(&body))
    }

    async fn read(&self, mut answer: Response) -> Result<Vec<u8>, SourceError> {
        let mut body = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(|error| self.unreachable(error))? {
            if body.len() + part.len() > MOST_AT_ONCE * BlockHeader::LEN {
                return Err(self.nonsense("more headers than it was asked for", &body));
            }
            body.extend_from_slice(&part);
        }
        Ok(body)
    }

    fn unreachable(&self, error: reqwest::Error) -> SourceError {
        let error = error.without_url();
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            reason.push_str(&format!(": {error}"));
            cause = error.source();
        }
        SourceError::Unreachable { name: self.url.clone(), reason }
    }

    fn nonsense(&self, reason: &str, body: &[u8]) -> SourceError {
        SourceError::nonsense(&self.url, reason, body)
    }
}
