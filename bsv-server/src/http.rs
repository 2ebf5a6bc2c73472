//! What all listeners share: connections and their limits, bodies, guards, answers.

pub mod answer;
mod body;
mod guard;
mod serve;

pub(crate) use body::collect;
pub(crate) use guard::check_origin;
pub(crate) use serve::{Limits, Listener, serve, serve_stream};

use bytes::Bytes;
use http_body_util::Full;

/// An answer, whole in memory.
pub type Answer = hyper::Response<Full<Bytes>>;
