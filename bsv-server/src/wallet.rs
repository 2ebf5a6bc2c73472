//! The routes of the wallet specification.

mod api;
mod event_blocks;
mod event_places;
mod event_stream;
mod events;
mod export;
mod headers;
mod leaving;
mod list;
mod pages;
mod receipts;
mod refusal;
mod story;
mod streams;
mod webhooks;

pub(crate) use api::{Route, WalletApi};
pub(crate) use refusal::STORE_AWAY;
pub(crate) use story::Story;
