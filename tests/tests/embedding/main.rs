//! Embedding the libraries in other programs.

#![allow(clippy::unwrap_used)]

mod examples;
mod features;
mod sendable;
