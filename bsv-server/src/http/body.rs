use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Body;
use thiserror::Error;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Why the body of a request could not be read.
#[derive(Debug, Error)]
pub(crate) enum BodyError {
    #[error("the request body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the request body did not arrive in time")]
    TooSlow,
    #[error("the request body broke off")]
    BrokenOff,
    #[error("too many large requests arrive at once: send it again")]
    TooMany,
}

impl BodyError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BrokenOff => StatusCode::BAD_REQUEST,
            Self::TooMany => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// For how long a body may arrive.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How much of a body that is too large is read and thrown away, so that a caller who sends first
/// and listens afterwards gets its answer.
const MAX_DISCARDED: usize = 32 << 20;

/// Nearly all bodies are smaller, in bytes.
const SMALL: usize = 64 << 10;
/// How many larger ones are held at once.
const LARGE_AT_ONCE: usize = 16;
/// For how long a larger one waits for its place.
const PATIENCE: Duration = Duration::from_secs(5);

/// The places of large bodies: what strangers send must not fill the memory.
#[derive(Debug)]
pub(crate) struct LargeBodies(Semaphore);

impl LargeBodies {
    pub(crate) fn new() -> Self {
        Self(Semaphore::new(LARGE_AT_ONCE))
    }

    async fn place(&self) -> Result<SemaphorePermit<'_>, BodyError> {
        let place = timeout(PATIENCE, self.0.acquire()).await.map_err(|_| BodyError::TooMany)?;
        Ok(place.expect("the places are never closed"))
    }
}

/// A whole body, and its place if it is large.
#[derive(Debug)]
pub(crate) struct Collected<'a> {
    pub(crate) bytes: Bytes,
    _place: Option<SemaphorePermit<'a>>,
}

/// Reads a whole body of at most `max_len` bytes.
pub(crate) async fn collect<B>(
    body: B,
    max_len: usize,
    large: &LargeBodies,
) -> Result<Collected<'_>, BodyError>
where
    B: Body<Data = Bytes> + Unpin,
{
    if body.is_end_stream() {
        return Ok(Collected { bytes: Bytes::new(), _place: None });
    }
    timeout(TIMEOUT, read_frames(body, max_len, large)).await.unwrap_or(Err(BodyError::TooSlow))
}

async fn read_frames<B>(
    mut body: B,
    max_len: usize,
    large: &LargeBodies,
) -> Result<Collected<'_>, BodyError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    let mut len = 0;
    let mut place = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::BrokenOff)?.into_data() else { continue };
        len += data.len();
        if len > SMALL && place.is_none() {
            place = Some(large.place().await?);
        }
        if len > max_len + MAX_DISCARDED {
            break;
        } else if len > max_len {
            joined = BytesMut::new();
        } else if first.is_empty() && joined.is_empty() {
            first = data;
        } else {
            if joined.is_empty() {
                joined.extend_from_slice(&first);
            }
            joined.extend_from_slice(&data);
        }
    }
    if len > max_len {
        return Err(BodyError::TooLarge(max_len));
    }
    let bytes = if joined.is_empty() { first } else { joined.freeze() };
    Ok(Collected { bytes, _place: place })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;

    use super::*;

    struct Frames(Vec<&'static [u8]>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let next = (!self.0.is_empty()).then(|| self.0.remove(0));
            Poll::Ready(next.map(|data| Ok(Frame::data(Bytes::from_static(data)))))
        }
    }

    #[tokio::test]
    async fn a_body_of_any_frames_is_joined_up_to_the_limit() {
        let large = LargeBodies::new();
        for (frames, whole) in [
            (vec![], &b""[..]),
            (vec![&b"abc"[..]], b"abc"),
            (vec![b"a", b"", b"bc", b"d"], b"abcd"),
            (vec![b"", b"ab"], b"ab"),
        ] {
            assert_eq!(collect(Frames(frames), 4, &large).await.unwrap().bytes, whole);
        }
        for frames in [vec![&b"abcde"[..]], vec![b"abc", b"de", b"f"]] {
            let refused = collect(Frames(frames), 4, &large).await;
            assert!(matches!(refused, Err(BodyError::TooLarge(4))));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn few_large_bodies_are_held_at_once() {
        let large = LargeBodies::new();
        let frames = || Frames(vec![&[b'a'; SMALL], b"b"]);
        let mut held = Vec::new();
        for _ in 0..LARGE_AT_ONCE {
            held.push(collect(frames(), 2 * SMALL, &large).await.unwrap());
        }
        let refused = collect(frames(), 2 * SMALL, &large).await;
        assert!(matches!(refused, Err(BodyError::TooMany)));
        let small = collect(Frames(vec![&[b'a'; SMALL]]), 2 * SMALL, &large).await;
        assert_eq!(small.unwrap().bytes.len(), SMALL);
        held.pop();
        assert_eq!(collect(frames(), 2 * SMALL, &large).await.unwrap().bytes.len(), SMALL + 1);
    }
}
