//! Black-box tests, a module for each subject. One program holds them all: each further one would take a hundred
//! megabytes, and tests of one subject wait while those of another compute.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod access;
mod block;
mod command_line;
mod configuration;
mod demo;
mod embedding;
mod events;
mod full_disk;
mod golden;
mod headers;
mod keeping;
mod kills;
mod metrics;
mod minerid_1_0;
mod node;
mod operating;
mod page;
mod payment_kills;
mod payments;
mod postgres;
mod requests;
mod rotation;
mod services;
mod vctx;
mod verify;
mod wallet_api;
mod wallet_full_disk;
mod wallet_kills;
