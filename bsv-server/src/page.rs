//! The payment page: what a payer's browser shows of an invoice, and the requests of an open page.

mod address;
mod api;
mod assets;
mod busy;
mod cache;
mod headers;
mod html;
mod languages;
mod qr;
mod state;
mod stream;
mod texts;

pub(crate) use address::link;
pub(crate) use api::{Page, ROUTES, Route};
pub(crate) use busy::show_in_browser;
