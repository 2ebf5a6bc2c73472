//! The routes that payers use: the Direct Payment Protocol, and channels with proofs.

mod api;

pub(crate) use api::{PaymentsApi, Route};
