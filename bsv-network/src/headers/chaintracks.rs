use std::fmt;

use bsv_tx::BlockHeader;
use reqwest::{Client, Response, StatusCode};

use super::chain::{Locator, MOST_AT_ONCE};
use super::file::headers_in;
use super::source_error::SourceError;
use crate::service::{self, TIMEOUT, Unread, host_of, reasons, shown};

/// A service that gives headers by HTTP: the routes of Chaintracks, version 2
/// (`/headers.bin`). Arcade serves them too.
#[derive(Clone)]
pub struct Chaintracks {
    client: Client,
    url: String,
    host: String,
}

impl Chaintracks {
    /// A service whose routes begin with `url`, without a slash at the end. `client` should follow no
    /// redirects.
    pub fn new(client: Client, url: impl Into<String>) -> Self {
        let url = url.into();
        Self { client, host: host_of(&url), url }
    }

    /// The host, and the port if the URL has one. Other parts of the URL may be secret.
    pub fn name(&self) -> &str {
        &self.host
    }

    /// The height that the service claims to have. Nothing proves it. 0 if it claims none.
    pub async fn claimed_height(&self) -> Result<u32, SourceError> {
        let answer = self.get("tip.bin").await?;
        let height = answer.headers().get("x-block-height").and_then(|it| it.to_str().ok());
        let height = height.and_then(|height| height.parse().ok());
        match answer.status() {
            StatusCode::NOT_FOUND => Ok(0),
            status if status.is_success() => Ok(height.unwrap_or_default()),
            _ => Err(self.failure(answer).await),
        }
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
        let route = format!("headers.bin?height={height}&count={MOST_AT_ONCE}");
        let answer = self.get(&route).await?;
        if !answer.status().is_success() {
            return Err(self.failure(answer).await);
        }
        let body = self.read(answer).await?;
        if body.len() % BlockHeader::LEN != 0 {
            return Err(self.nonsense(&format!("{} bytes", body.len()), &body));
        }
        Ok(headers_in(&body))
    }

    async fn get(&self, route: &str) -> Result<Response, SourceError> {
        let request = self.client.get(format!("{}/{route}", self.url)).timeout(TIMEOUT);
        request.send().await.map_err(|error| self.unreachable(reasons(error)))
    }

    /// Why an answer is none. A service that is busy or ill is asked again like one that is away.
    async fn failure(&self, mut answer: Response) -> SourceError {
        let status = answer.status();
        let retry_after = service::retry_after(answer.headers());
        let body = answer.chunk().await.ok().flatten().unwrap_or_default();
        let reason = format!("status {status}: {}", shown(&body));
        let name = self.host.clone();
        let is_ill = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status);
        if status.is_server_error() || is_ill {
            SourceError::Unreachable { name, reason, retry_after }
        } else {
            SourceError::Nonsense { name, reason }
        }
    }

    async fn read(&self, answer: Response) -> Result<Vec<u8>, SourceError> {
        let body = service::read(answer, MOST_AT_ONCE * BlockHeader::LEN).await;
        body.map_err(|unread| match unread {
            Unread::Cut(reason) => self.unreachable(reason),
            Unread::TooLong => self.nonsense("more headers than it was asked for", b""),
        })
    }

    fn unreachable(&self, reason: String) -> SourceError {
        SourceError::unreachable(&self.host, reason)
    }

    fn nonsense(&self, reason: &str, body: &[u8]) -> SourceError {
        SourceError::nonsense(&self.host, reason, body)
    }
}

impl fmt::Debug for Chaintracks {
    /// Shows the host. Other parts of the URL may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chaintracks").field("host", &self.host).finish_non_exhaustive()
    }
}
