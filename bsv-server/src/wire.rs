//! The JSON between the server and the command line, which the server writes and the command line
//! reads. Members stand in the order in which callers get them.

#![expect(
    missing_docs,
    reason = "the members are documented where callers look: docs/api.md, OpenAPI"
)]

mod control;
mod wallet;

pub use control::*;
pub use wallet::*;
