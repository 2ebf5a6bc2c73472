//! The control socket, and what only it offers: setting up identities, and keeping keys and money. A file
//! for each noun has its routes, its requests and its answers.

mod api;
mod audit;
mod backup;
mod books;
mod handed;
mod identities;
mod keystore;
mod managed;
mod revocation_keys;
mod socket;
mod status;
mod tokens;
mod wallet;

pub(crate) use api::{ControlApi, Route};
pub use handed::{KeystoreJson, WRITE_FIRST};
pub(crate) use identities::{STATES, is_overdue, state};
pub(crate) use managed::{Listening, Managed};
pub(crate) use socket::bind;
pub use socket::{connect, socket_path};
