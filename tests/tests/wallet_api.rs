//! The wallet's listener for its owner: every answer, every mistake, and the effects of time.

mod bodies;
mod clock;
mod expiry;
mod fields;
mod idempotency;
mod lifecycle;
mod list;
pub(crate) mod owner;
mod paths;
mod service;
mod shapes;
mod times;
mod wallet_file;

use owner::{INVOICES, Owner, USERS, check_problem, json};
