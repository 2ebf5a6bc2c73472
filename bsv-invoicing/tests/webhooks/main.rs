//! Webhooks: what is sent to endpoints, and when, by a clock that the tests set and with endpoints that fail as they
//! are told to. The wallet and its store are real.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod again;
mod changing;
mod clock;
mod endpoints;
mod failing;
mod killed;
mod order;
mod secrets;
mod site;
