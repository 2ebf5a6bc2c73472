//! The routes of the wallet specification.

mod api;
mod event_blocks;
mod event_log;
mod event_stream;
mod events;
mod export;
mod headers;
mod leaving;
mod list;
mod problem;
mod receipts;
mod webhooks;

pub(crate) use api::{Route, WalletApi};
pub(crate) use event_log::EventLogger;
pub(crate) use problem::STORE_AWAY;
