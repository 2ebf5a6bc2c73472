//! Embedding the libraries in other programs.

mod examples;
mod features;
mod sendable;
