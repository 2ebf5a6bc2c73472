//! The libraries, as other programs embed them.

mod examples;
mod features;
mod sendable;
