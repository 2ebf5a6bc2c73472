//! The wallet over its redb store: its seed, its ids, the requests that it accepts, and its
//! answers.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

#[path = "../store_conformance/counted.rs"]
mod counted;
mod counted_rows;
mod dust;
#[path = "../store_conformance/forward.rs"]
mod forward;
mod ids;
mod json;
mod limits;
mod seed;
mod support;
mod time;
mod wire;
