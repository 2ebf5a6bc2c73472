use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Body;
use thiserror::Error;
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
}

impl BodyError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BrokenOff => StatusCode::BAD_REQUEST,
        }
    }
}

/// For how long a body may arrive.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How much of a body that is too large is read and thrown away, so that a caller who sends first
/// and listens afterwards gets its answer.
const MAX_DISCARDED: usize = 32 << 20;

/// Reads a whole body of at most `max_len` bytes.
pub(crate) async fn collect<B>(body: B, max_len: usize) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes> + Unpin,
{
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    timeout(TIMEOUT, read_frames(body, max_len)).await.unwrap_or(Err(BodyError::TooSlow))
}

async fn read_frames<B>(mut body: B, max_len: usize) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    let mut len = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::BrokenOff)?.into_data() else { continue };
        len += data.len();
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
    Ok(if joined.is_empty() { first } else { joined.freeze() })
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
        for (frames, whole) in [
            (vec![], &b""[..]),
            (vec![&b"abc"[..]], b"abc"),
            (vec![b"a", b"", b"bc", b"d"], b"abcd"),
            (vec![b"", b"ab"], b"ab"),
        ] {
            assert_eq!(collect(Frames(frames), 4).await.unwrap(), whole);
        }
        for frames in [vec![&b"abcde"[..]], vec![b"abc", b"de", b"f"]] {
            let refused = collect(Frames(frames), 4).await;
            assert!(matches!(refused, Err(BodyError::TooLarge(4))));
        }
    }
}
