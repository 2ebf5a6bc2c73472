//! The payment page in a real browser.

#![allow(clippy::unwrap_used)]

mod codes;
mod hostile;
mod live;
mod loading;
mod looks;
#[path = "../payments/merchant.rs"]
#[allow(dead_code, reason = "the payments' tests use more of it")]
mod merchant;
mod origins;
mod shop;
mod streams;
mod terminal;
mod wallet_button;
