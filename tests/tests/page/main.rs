//! The payment page, in the browser that a payer has.

#![allow(clippy::unwrap_used)]

mod loading;
#[path = "../payments/merchant.rs"]
#[allow(dead_code, reason = "the payments' tests use more of it")]
mod merchant;
mod shop;
