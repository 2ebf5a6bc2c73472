//! What black-box tests need: a real Bitcoin SV node on a private network, started and stopped at
//! will.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test")]

mod fetch;
pub mod node;

pub use node::Node;
