//! The server's OpenAPI files, with which every answer is compared that a test receives.

mod description;
mod exchange;
mod mutations;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use self::description::{Description, Undescribed};
pub use self::exchange::Exchange;
pub use self::mutations::{Mutation, survivors};

use crate::http::Reply;

/// The listeners that have a file, as they are called in the lines that tell where the server listens.
pub const LISTENERS: [&str; 3] = ["wallet", "payments", "minerid"];

/// What listens at each address.
static ADDRESSES: Mutex<BTreeMap<String, &'static str>> = Mutex::new(BTreeMap::new());

fn addresses() -> MutexGuard<'static, BTreeMap<String, &'static str>> {
    ADDRESSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has answers from an address compared with the file of a listener, if it has one.
pub(crate) fn watch(address: &str, listener: &str) {
    if let Some(listener) = LISTENERS.into_iter().find(|known| *known == listener) {
        addresses().insert(address.to_owned(), listener);
    }
}

/// Has answers from an address compared no more, for those who measure how long they take.
pub fn forget(address: &str) {
    addresses().remove(address);
}

/// Compares an answer with the file of the listener that it comes from.
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
