//! The control socket and the operations that only it offers: setting up identities, and managing
//! keys and money. Each noun has a file with its routes, requests and answers.

mod api;
mod audit;
mod backup;
mod books;
mod handed;
mod identities;
mod keystore;
mod managed;
mod progress;
mod revocation_keys;
mod socket;
mod status;
mod tokens;
mod wallet;

pub(crate) use api::{ControlApi, Route};
pub(crate) use identities::{STATES, is_overdue, state};
pub(crate) use managed::{Listening, Services};
pub(crate) use socket::bind;
pub use socket::{connect, socket_path};
