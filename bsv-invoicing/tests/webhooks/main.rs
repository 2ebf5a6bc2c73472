//! Webhooks: what is sent to endpoints, and when. Tests control the clock and the failures of
//! endpoints. The wallet and its store are real.

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
