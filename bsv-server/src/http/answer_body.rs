use std::fmt::{self, Debug, Formatter};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use thiserror::Error;
use tokio::sync::mpsc;

use super::body::{LargePlace, SMALL};

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
    /// A body in parts, and when it ends early. A stream of events then ends like any other. The
    /// connection of another body is broken off.
    Until(Box<AnswerBody>, End),
}

/// Completes when an answer has to end.
pub(crate) type End = Pin<Box<dyn Future<Output = ()> + Send>>;

impl AnswerBody {
    /// The same body, which ends early if it is sent in parts.
    pub(crate) fn until(self, end: End) -> Self {
        match self {
            Self::Stream(_) | Self::Events(_) => Self::Until(Box::new(self), end),
            whole => whole,
        }
    }

    /// The same body with the place of the request that it answers. The place becomes free at once,
    /// or when the answer was sent: a large answer holds as much memory as the body that it repeats.
    pub(crate) fn in_place(self, place: Option<LargePlace>) -> Self {
        match (self, place) {
            (Self::Whole(whole), Some(place)) if whole.size_hint().lower() > SMALL as u64 => {
                Self::Large(whole, place)
            }
            (body, _) => body,
        }
    }
}

impl Debug for AnswerBody {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Whole(_) => "Whole",
            Self::Large(..) => "Large",
            Self::Stream(_) => "Stream",
            Self::Events(_) => "Events",
            Self::Until(..) => "Until",
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
            Self::Until(body, end) => match end.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(match **body {
                    Self::Events(_) => None,
                    _ => Some(Err(BrokenOff)),
                }),
                Poll::Pending => Pin::new(&mut **body).poll_frame(context),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) | Self::Large(body, _) => body.is_end_stream(),
            Self::Stream(_) | Self::Events(_) | Self::Until(..) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) | Self::Large(body, _) => body.size_hint(),
            Self::Stream(_) | Self::Events(_) | Self::Until(..) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::stream;
    use http_body_util::{BodyExt, Collected};

    use super::*;

    fn events() -> AnswerBody {
        AnswerBody::Events(Box::pin(stream::iter([Ok(Bytes::from_static(b"a"))])))
    }

    fn list() -> AnswerBody {
        let (parts, body) = mpsc::channel(2);
        parts.try_send(Some(Bytes::from_static(b"a"))).unwrap();
        parts.try_send(None).unwrap();
        AnswerBody::Stream(body)
    }

    async fn read(body: AnswerBody, end: End) -> Result<Bytes, BrokenOff> {
        body.until(end).collect().await.map(Collected::to_bytes)
    }

    #[tokio::test]
    async fn only_a_stream_of_events_ends_early_without_an_error() {
        let now = || -> End { Box::pin(ready(())) };
        assert_eq!(read(events(), now()).await, Ok(Bytes::new()));
        assert_eq!(read(list(), now()).await, Err(BrokenOff));
        let whole = || Bytes::from_static(b"a");
        assert_eq!(read(AnswerBody::Whole(Full::new(whole())), now()).await, Ok(whole()));
        for body in [events(), list()] {
            assert_eq!(read(body, Box::pin(pending())).await, Ok(whole()));
        }
    }
}
