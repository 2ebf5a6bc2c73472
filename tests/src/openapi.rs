//! The server's OpenAPI files. Every answer that a test receives is compared with them.

mod description;
mod exchange;
mod mutations;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use self::description::{Description, Undescribed};
pub use self::exchange::Exchange;
pub use self::mutations::{Mutation, survivors};

use crate::http::Reply;

/// The listeners that have a file, by their names in the server's start lines.
pub const LISTENERS: [&str; 3] = ["wallet", "payments", "minerid"];

/// The listener at each address.
static ADDRESSES: Mutex<BTreeMap<String, &'static str>> = Mutex::new(BTreeMap::new());

fn addresses() -> MutexGuard<'static, BTreeMap<String, &'static str>> {
    ADDRESSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Compares answers from an address with the file of the listener from now on, if the listener has
/// one.
pub(crate) fn watch(address: &str, listener: &str) {
    if let Some(listener) = LISTENERS.into_iter().find(|known| *known == listener) {
        addresses().insert(address.to_owned(), listener);
    }
}

/// Stops comparing answers from an address, for measurements of time.
pub fn forget(address: &str) {
    addresses().remove(address);
}

/// Compares an answer with the file of its listener.
///
/// # Panics
/// If the file does not describe it.
pub fn check(address: &str, request: &[u8], reply: &Reply) {
    let Some(listener) = addresses().get(address).copied() else { return };
    let exchange = Exchange::of(listener, request, reply);
    let description = Description::of(listener);
    exchange.record(&description.place(&exchange));
    if let Err(undescribed) = description.check(&exchange) {
        let Exchange { method, target, reply, .. } = exchange;
        panic!("{listener}.json does not describe {method} {target}: {undescribed}\n{reply:?}");
    }
}
