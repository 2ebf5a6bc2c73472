//! Money in and out, on a real network.

#![allow(clippy::unwrap_used)]

mod flow;
mod merchant;
