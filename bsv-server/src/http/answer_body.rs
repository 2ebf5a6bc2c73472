use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use thiserror::Error;
use tokio::sync::mpsc;

/// The body of an answer: whole in memory, or streamed as its parts become ready.
#[derive(Debug)]
pub enum AnswerBody {
    /// The whole body.
    Whole(Full<Bytes>),
    /// The parts, and `None` after the last one. If `None` is missing, the connection is broken
    /// off, so that nobody takes the parts for the whole.
    Stream(mpsc::Receiver<Option<Bytes>>),
}

/// The rest of an answer could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the answer broke off")]
pub struct BrokenOff;

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match &mut *self {
            Self::Whole(body) => Pin::new(body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
            Self::Stream(parts) => parts.poll_recv(context).map(|part| match part {
                Some(Some(part)) => Some(Ok(Frame::data(part))),
                Some(None) => None,
                None => Some(Err(BrokenOff)),
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
