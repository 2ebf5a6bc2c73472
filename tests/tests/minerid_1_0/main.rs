//! Identities of generation 1.0, as the older generator made them and as a real node sees them.

#![allow(clippy::unwrap_used)]

mod answers;
mod formats;
mod history;
mod kills;
mod revocation;
mod revocation_kills;
mod scene;
