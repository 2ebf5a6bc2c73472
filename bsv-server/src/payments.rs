//! The routes for payers: the Direct Payment Protocol, and channels with Merkle proofs.

mod api;

pub(crate) use api::{PaymentsApi, Route};
