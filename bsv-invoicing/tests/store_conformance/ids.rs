//! The ids of invoices in the scenarios. This is a second implementation of the library's
//! documented scheme.

use std::sync::LazyLock;

use bsv_invoicing::InvoiceId;
use bsv_invoicing::invoices::{IdCipher, NewId};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const KEY: [u8; 32] = [7; 32];
const RANDOM: u64 = 1_000_000_007;

/// The key and the random number for the ids of all scenarios.
pub(crate) fn new_id() -> NewId {
    static CIPHER: LazyLock<IdCipher> = LazyLock::new(|| IdCipher::new(&KEY));
    NewId { cipher: CIPHER.clone(), random: RANDOM }
}

/// The id of the invoice with this number: six characters for the number, enciphered by a Feistel
/// network, and six that are random outside tests.
pub(crate) fn id(number: u64) -> InvoiceId {
    const HALF: u64 = 62 * 62 * 62;
    let (mut left, mut right) = (number / HALF, number % HALF);
    for round in 0..6 {
        (left, right) = (right, (left + hmac(round, right) % HALF) % HALF);
    }
    format!("{}{}", digits(left * HALF + right), digits(RANDOM)).parse().unwrap()
}

/// The first eight bytes of the HMAC of a round and its half.
fn hmac(round: u8, half: u64) -> u64 {
    let mut mac = Hmac::<Sha256>::new_from_slice(&KEY).unwrap();
    mac.update(&[round]);
    mac.update(&half.to_le_bytes());
    u64::from_le_bytes(*mac.finalize().into_bytes().first_chunk().unwrap())
}

fn digits(value: u64) -> String {
    const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let digit = |place| char::from(DIGITS[(value / 62_u64.pow(place) % 62) as usize]);
    (0..6).rev().map(digit).collect()
}
