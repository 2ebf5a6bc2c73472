use std::fmt::{self, Debug, Formatter};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use thiserror::Error;
use tokio::sync::mpsc;

use super::body::LargePlace;

/// The body of an answer: whole in memory, or streamed as its parts become ready.
pub enum AnswerBody {
    /// The whole body.
    Whole(Full<Bytes>),
    /// The whole body, which is large, and the place of the request that it answers.
    Large(Full<Bytes>, LargePlace),
    /// The parts, which a task makes ahead of the reader, and `None` after the last one. If `None`
    /// is missing, the connection is broken off, so that nobody takes the parts for the whole.
    Stream(mpsc::Receiver<Option<Bytes>>),
    /// Parts that are made when the reader has room for them. A stream of events waits nearly all
    /// the time: it has no task and no channel, so that many streams take little memory.
    Events(Pin<Box<dyn Stream<Item = Result<Bytes, BrokenOff>> + Send>>),
}

impl Debug for AnswerBody {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Whole(_) => "Whole",
            Self::Large(..) => "Large",
            Self::Stream(_) => "Stream",
            Self::Events(_) => "Events",
        })
    }
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
            Self::Whole(body) | Self::Large(body, _) => Pin::new(body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
            Self::Stream(parts) => parts.poll_recv(context).map(|part| match part {
                Some(Some(part)) => Some(Ok(Frame::data(part))),
                Some(None) => None,
                None => Some(Err(BrokenOff)),
            }),
            Self::Events(parts) => {
                parts.as_mut().poll_next(context).map(|part| part.map(|part| part.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) | Self::Large(body, _) => body.is_end_stream(),
            Self::Stream(_) | Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) | Self::Large(body, _) => body.size_hint(),
            Self::Stream(_) | Self::Events(_) => SizeHint::default(),
        }
    }
}
