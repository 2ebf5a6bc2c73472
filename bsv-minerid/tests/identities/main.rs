//! The life of identities: they are made, rotated, imported, opened again, and used by many threads
//! at once.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod failing_store;
mod import;
mod keys;
mod rotation;
mod state_model;
mod support;
mod threads;
