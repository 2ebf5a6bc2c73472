//! Embedding the libraries in other programs.

mod examples;
mod features;
mod lost_answers;
mod sendable;
mod store_calls;
