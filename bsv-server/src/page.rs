//! The payment page: what payers see of an invoice in a browser, and what that asks for while it is open.

mod address;
mod api;
mod assets;
mod cache;
mod headers;
mod html;
mod qr;
mod state;
mod stream;
mod texts;

pub(crate) use api::{Page, ROUTES, Route};
