//! What the operator of a service sees: how it starts and stops, what it logs, and the files in
//! `deploy`.

mod front_ends;
mod log;
mod own_files;
mod restart;
mod service_manager;
mod units;
mod version;
