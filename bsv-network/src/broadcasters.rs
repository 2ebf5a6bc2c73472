//! Services that take transactions for the network and tell what became of them: Arcade and ARC.
//!
//! An answer is the word of a service. It proves nothing, but for a Merkle path, which the caller
//! checks against a header of the main chain. What each answer means stands at [`Word`]. The routes
//! and the forms of the answers are those of Arcade 0.9 and ARC 1.5.

mod answer;
mod client;

pub use answer::{Answer, Word};
pub use client::{Broadcaster, BroadcasterError, Callback, Dialect};
