use std::error::Error;
use std::time::Duration;

use bsv_tx::BlockHeader;
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Response, StatusCode, Url};

use super::chain::{Locator, MOST_AT_ONCE};
use super::file::headers_in;
use super::source_error::{SourceError, shown};

/// A service that gives headers by HTTP: the routes of Chaintracks, version 2
/// (`/headers.bin`). Arcade serves them too.
#[derive(Clone, Debug)]
pub struct Chaintracks {
    client: Client,
    url: String,
    host: String,
}

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest pause that a service may ask for.
const MOST_PAUSE: Duration = Duration::from_secs(3_600);

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
        request.send().await.map_err(|error| self.unreachable(error))
    }

    /// Why an answer is none. A service that is busy or ill is asked again like one that is away.
    async fn failure(&self, mut answer: Response) -> SourceError {
        let status = answer.status();
        let retry_after = answer.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
        let retry_after = retry_after.map(|seconds| Duration::from_secs(seconds).min(MOST_PAUSE));
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
        SourceError::unreachable(&self.host, reason)
    }

    fn nonsense(&self, reason: &str, body: &[u8]) -> SourceError {
        SourceError::nonsense(&self.host, reason, body)
    }
}

/// The host of a URL, and the port if it has one.
pub(super) fn host_of(url: &str) -> String {
    let host = Url::parse(url).ok().and_then(|url| {
        let host = url.host_str()?.to_owned();
        Some(url.port().map_or(host.clone(), |port| format!("{host}:{port}")))
    });
    host.unwrap_or_default()
}
