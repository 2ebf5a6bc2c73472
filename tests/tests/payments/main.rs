//! Money in and out, on a real network.

#![allow(clippy::unwrap_used)]

mod channel;
mod counter;
mod dialects;
mod flow;
mod merchant;
mod node_away;
mod paying;
mod paying_scene;
mod receiving;
mod receiving_in_flight;
mod receiving_refusals;
