use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use hyper::header::{CONTENT_ENCODING, TRANSFER_ENCODING};
use hyper::{HeaderMap, StatusCode};
use ipnet::IpNet;
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::peers::widest_network;

/// Why the body of a request could not be read.
#[derive(Debug, Error)]
pub(crate) enum BodyError {
    #[error("the request body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the request body did not arrive in time")]
    TooSlow,
    #[error("the request body broke off")]
    BrokenOff,
    #[error("too many large requests arrive at once: send the request again")]
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

/// How long a body may take, besides the time for its length.
const TIME: Duration = Duration::from_secs(5);
/// The slowest accepted rate of a body, in bytes per second.
const SLOWEST: u32 = 32 << 10;
/// How much of an unneeded body is read and discarded. A caller that sends everything before it
/// reads then gets its answer.
const MAX_DISCARDED: usize = 32 << 20;

/// The size, in bytes, above which a body is large. Nearly all bodies are smaller.
pub(super) const SMALL: usize = 64 << 10;
/// How many large bodies are held at once.
const LARGE_AT_ONCE: usize = 16;
/// How many of them one peer may have.
const LARGE_OF_ONE: usize = 2;
/// How long a large body waits for a place.
const PATIENCE: Duration = Duration::from_secs(5);

/// The places for large bodies, which keep strangers from filling the memory.
#[derive(Debug)]
pub(crate) struct LargeBodies {
    places: Arc<Semaphore>,
    peers: Arc<Mutex<PeerCounts>>,
}

/// How many large bodies each peer has.
type PeerCounts = HashMap<IpNet, usize>;

/// The place of a large body, which becomes free when this is dropped.
#[derive(Debug)]
pub struct LargePlace {
    peers: Arc<Mutex<PeerCounts>>,
    peer: Option<IpNet>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl LargeBodies {
    pub(crate) fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(LARGE_AT_ONCE)), peers: Arc::default() }
    }

    async fn place(&self, peer: Option<IpAddr>) -> Result<LargePlace, BodyError> {
        let mut place = self.enter(peer).ok_or(BodyError::TooMany)?;
        let permit = timeout(PATIENCE, Arc::clone(&self.places).acquire_owned()).await;
        let permit = permit.map_err(|_| BodyError::TooMany)?;
        place._permit = Some(permit.expect("the places are never closed"));
        Ok(place)
    }

    /// Gives a peer one more place, unless it has its share.
    fn enter(&self, address: Option<IpAddr>) -> Option<LargePlace> {
        let peer = address.map(widest_network);
        if let Some(peer) = peer {
            let mut peers = locked(&self.peers);
            let count = peers.entry(peer).or_default();
            if *count == LARGE_OF_ONE {
                return None;
            }
            *count += 1;
        }
        Some(LargePlace { peers: Arc::clone(&self.peers), peer, _permit: None })
    }
}

fn locked(peers: &Mutex<PeerCounts>) -> MutexGuard<'_, PeerCounts> {
    peers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for LargePlace {
    fn drop(&mut self) {
        let Some(peer) = self.peer else { return };
        let mut peers = locked(&self.peers);
        if let Some(count) = peers.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                peers.remove(&peer);
            }
        }
    }
}

/// Whether the headers say that the body is compressed. Some clients name a character set there.
pub(crate) fn is_encoded(headers: &HeaderMap) -> bool {
    const COMPRESSED: [&str; 8] =
        ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress", "dcb"];
    let encodings = [CONTENT_ENCODING, TRANSFER_ENCODING].map(|name| headers.get_all(name));
    let encodings = encodings.iter().flatten().filter_map(|value| value.to_str().ok());
    let mut encodings = encodings.flat_map(|value| value.split(',')).map(str::trim);
    encodings.any(|encoding| COMPRESSED.iter().any(|it| encoding.eq_ignore_ascii_case(it)))
}

/// A whole body, with its place if it is large.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) bytes: Bytes,
    pub(crate) place: Option<LargePlace>,
}

/// Reads a whole body of at most `max_len` bytes from `peer`. The body must arrive at a rate of at
/// least [`SLOWEST`] bytes per second.
pub(crate) async fn collect<B>(
    mut body: B,
    max_len: usize,
    large: &LargeBodies,
    peer: Option<IpAddr>,
) -> Result<Collected, BodyError>
where
    B: Body<Data = Bytes> + Unpin + Send + 'static,
{
    if body.is_end_stream() {
        return Ok(Collected { bytes: Bytes::new(), place: None });
    }
    if body.size_hint().lower() > max_len as u64 {
        discard(body);
        return Err(BodyError::TooLarge(max_len));
    }
    let begun = Instant::now();
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    let mut len = 0;
    let mut place = None;
    while let Some(data) = next(&mut body, begun, len).await? {
        len += data.len();
        if len > max_len {
            discard(body);
            return Err(BodyError::TooLarge(max_len));
        }
        if len > SMALL && place.is_none() {
            place = match large.place(peer).await {
                Ok(place) => Some(place),
                Err(error) => {
                    discard(body);
                    return Err(error);
                }
            };
        }
        if first.is_empty() && joined.is_empty() {
            first = data;
        } else {
            if joined.is_empty() {
                joined.extend_from_slice(&first);
            }
            joined.extend_from_slice(&data);
        }
    }
    let bytes = if joined.is_empty() { first } else { joined.freeze() };
    Ok(Collected { bytes, place })
}

/// The next bytes of a body that began at `begun` and of which `len` bytes have come.
async fn next<B>(body: &mut B, begun: Instant, len: usize) -> Result<Option<Bytes>, BodyError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let seconds = len as u64 / u64::from(SLOWEST);
    let deadline = begun + TIME + Duration::from_secs(seconds);
    loop {
        let frame = timeout_at(deadline, body.frame()).await.map_err(|_| BodyError::TooSlow)?;
        let Some(frame) = frame else { return Ok(None) };
        if let Ok(data) = frame.map_err(|_| BodyError::BrokenOff)?.into_data() {
            return Ok(Some(data));
        }
    }
}

/// Reads and discards an unneeded body in the background, while its caller is answered.
pub(crate) fn discard<B>(mut body: B)
where
    B: Body<Data = Bytes> + Unpin + Send + 'static,
{
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(async move {
        let begun = Instant::now();
        let mut len = 0;
        while len < MAX_DISCARDED
            && let Ok(Some(data)) = next(&mut body, begun, len).await
        {
            len += data.len();
        }
    });
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;
    use hyper::header::HeaderName;

    use super::*;
    use crate::http::answer;

    #[test]
    fn compression_is_told_from_other_words() {
        let is_encoded = |name: HeaderName, value: &str| {
            is_encoded(&HeaderMap::from_iter([(name, value.parse().unwrap())]))
        };
        for value in ["gzip", "GZIP", "identity, br", "deflate ,utf-8"] {
            assert!(is_encoded(CONTENT_ENCODING, value), "{value}");
        }
        for value in ["", "identity", "utf-8", "gzipped"] {
            assert!(!is_encoded(CONTENT_ENCODING, value), "{value}");
        }
        assert!(is_encoded(TRANSFER_ENCODING, "gzip, chunked"));
        assert!(!is_encoded(TRANSFER_ENCODING, "chunked"));
    }

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
            assert_eq!(collect(Frames(frames), 4, &large, None).await.unwrap().bytes, whole);
        }
        for frames in [vec![&b"abcde"[..]], vec![b"abc", b"de", b"f"]] {
            let refused = collect(Frames(frames), 4, &large, None).await;
            assert!(matches!(refused, Err(BodyError::TooLarge(4))));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn few_large_bodies_are_held_at_once() {
        let large = LargeBodies::new();
        let frames = || Frames(vec![&[b'a'; SMALL], b"b"]);
        let mut held = Vec::new();
        for _ in 0..LARGE_AT_ONCE {
            held.push(collect(frames(), 2 * SMALL, &large, None).await.unwrap());
        }
        let refused = collect(frames(), 2 * SMALL, &large, None).await;
        assert!(matches!(refused, Err(BodyError::TooMany)));
        let small = collect(Frames(vec![&[b'a'; SMALL]]), 2 * SMALL, &large, None).await;
        assert_eq!(small.unwrap().bytes.len(), SMALL);
        held.pop();
        assert_eq!(
            collect(frames(), 2 * SMALL, &large, None).await.unwrap().bytes.len(),
            SMALL + 1
        );
    }

    #[tokio::test]
    async fn a_large_answer_keeps_the_place_of_its_request_until_it_was_sent() {
        let large = LargeBodies::new();
        let peer = Some(IpAddr::from([203, 0, 113, 1]));
        for (len, is_held) in [(SMALL, false), (SMALL + 1, true)] {
            let body = Frames(vec![&[b'a'; SMALL], b"b"]);
            let collected = collect(body, 2 * SMALL, &large, peer).await.unwrap();
            let answer = answer::text(StatusCode::OK, vec![b'a'; len]);
            let answer = answer.map(|body| body.in_place(collected.place));
            assert_eq!(!locked(&large.peers).is_empty(), is_held, "{len}");
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), len);
            assert!(locked(&large.peers).is_empty());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_peer_has_few_of_the_large_places() {
        let large = LargeBodies::new();
        let [one, other] = [1, 2].map(|n| Some(IpAddr::from([203, 0, 113, n])));
        let frames = || Frames(vec![&[b'a'; SMALL], b"b"]);
        let collect = |peer| collect(frames(), 2 * SMALL, &large, peer);
        let mut held = Vec::new();
        for _ in 0..LARGE_OF_ONE {
            held.push(collect(one).await.unwrap());
        }
        assert!(matches!(collect(one).await, Err(BodyError::TooMany)));
        held.push(collect(other).await.unwrap());
        drop(held);
        assert!(locked(&large.peers).is_empty());
        assert!(collect(one).await.is_ok());
        // An IPv6 network of 48 bits counts as one peer.
        let of_one = |subnet: u16| Some(format!("2001:db8:0:{subnet:x}::1").parse().unwrap());
        let held: [_; LARGE_OF_ONE] = [collect(of_one(0)).await, collect(of_one(0x100)).await];
        assert!(held.iter().all(Result::is_ok));
        assert!(matches!(collect(of_one(0x200)).await, Err(BodyError::TooMany)));
    }

    /// A body without end, at this many bytes per second.
    struct Drops(tokio::time::Interval, usize);

    impl Body for Drops {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let tick = self.0.poll_tick(context);
            tick.map(|_| Some(Ok(Frame::data(vec![b'a'; self.1].into()))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_as_much_time_as_it_has_bytes() {
        let large = LargeBodies::new();
        let drops = |len| Drops(tokio::time::interval(Duration::from_secs(1)), len);
        let begun = Instant::now();
        let refused = collect(drops(1), 2 * SMALL, &large, None).await;
        assert!(matches!(refused, Err(BodyError::TooSlow)));
        assert_eq!(begun.elapsed(), TIME);
        let begun = Instant::now();
        let whole = collect(drops(SLOWEST as usize), 20 * SLOWEST as usize, &large, None).await;
        assert!(matches!(whole, Err(BodyError::TooLarge(_))), "it came as fast as it had to");
        assert!(begun.elapsed() > 3 * TIME);
    }
}
