//! The control socket, and what only it offers: setting up identities, and keeping keys and money.

mod identities;
mod keeping;
mod revocation_keys;
mod set_up;
mod socket;
mod tokens;

pub(crate) use keeping::Keeping;
pub(crate) use revocation_keys::RevocationKeys;
pub(crate) use set_up::SetUp;
pub(crate) use socket::bind;
pub use socket::{connect, socket_path};
