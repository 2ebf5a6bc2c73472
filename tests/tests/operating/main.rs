//! What the operator of a service sees of it: how it starts and stops, what its log tells, and the files in `deploy`.

#![allow(clippy::unwrap_used)]

mod log;
mod own_files;
mod restart;
mod service_manager;
mod units;
mod version;
