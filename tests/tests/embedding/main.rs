//! The libraries, as other programs embed them.

#![allow(clippy::unwrap_used)]

mod examples;
mod features;
mod sendable;
