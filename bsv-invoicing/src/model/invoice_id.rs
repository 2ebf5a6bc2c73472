//! Invoice ids: short, unguessable, and found without an index.
//!
//! An id is 12 base62 characters. The first six are the invoice's number, permuted under a secret
//! key, so that ids tell nothing about how many invoices there are. The last six are random.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::block_api::compress256;

/// The id of an invoice: 12 characters of `A-Z a-z 0-9`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct InvoiceId([u8; 12]);

/// Text that cannot be the id of an invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotAnInvoiceId;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// How many values three digits have, and six.
const HALF: u64 = 62 * 62 * 62;
const WHOLE: u64 = HALF * HALF;

impl InvoiceId {
    /// The characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("the characters are ASCII")
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 12] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: &[u8; 12]) -> Result<Self, NotAnInvoiceId> {
        bytes.iter().all(u8::is_ascii_alphanumeric).then_some(Self(*bytes)).ok_or(NotAnInvoiceId)
    }
}

impl fmt::Display for InvoiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for InvoiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InvoiceId({self})")
    }
}

/// A text is not an invoice's id, so no invoice has it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no invoice {0}")]
pub struct InvoiceIdParseError(pub String);

impl FromStr for InvoiceId {
    type Err = InvoiceIdParseError;

    fn from_str(text: &str) -> Result<Self, InvoiceIdParseError> {
        text.as_bytes()
            .try_into()
            .ok()
            .and_then(|bytes| Self::from_bytes(bytes).ok())
            .ok_or_else(|| InvoiceIdParseError(text.to_owned()))
    }
}

/// Makes ids from numbers and finds the numbers again, under a secret key: a Feistel network over
/// HMAC-SHA-256.
///
/// Finding a number is the larger part of the cost of a look-up. The code therefore calls the
/// compression function of SHA-256 directly: copying and finishing a hasher would cost half as much
/// again.
#[derive(Clone)]
pub struct IdCipher {
    /// The state of SHA-256 after the key's inner block.
    inner: [u32; 8],
    /// The same after its outer block.
    outer: [u32; 8],
    found: Arc<FoundNumbers>,
}

/// What makes the id of a new invoice out of its number.
#[derive(Clone, Debug)]
pub struct NewId {
    /// Makes the half of the id that hides the number.
    pub cipher: IdCipher,
    /// Makes the half of the id that cannot be guessed.
    pub random: u64,
}

impl NewId {
    /// The id of the invoice of this number.
    pub(crate) fn of(&self, number: u64) -> InvoiceId {
        self.cipher.id(number, self.random)
    }
}

/// A cache of the numbers that belong to first halves of ids.
///
/// An entry is one word: the number, and the bits of the half id that its place does not give. A
/// thread that reads while another one writes therefore reads either the old or the new entry. An
/// entry never becomes wrong.
struct FoundNumbers(Box<[AtomicU64]>);

/// The base-2 logarithm of the number of entries, which take 128 KiB.
const FOUND_PLACES: u32 = 14;
/// The first half of an id, and a number, is less than 2 to this power.
const HALF_ID_BITS: u32 = 36;

impl FoundNumbers {
    fn new() -> Self {
        Self((0..1 << FOUND_PLACES).map(|_| AtomicU64::new(0)).collect())
    }

    fn get_or_find(&self, half_id: u64, find: impl FnOnce() -> u64) -> u64 {
        let place = &self.0[(half_id % (1 << FOUND_PLACES)) as usize];
        let tag = (half_id >> FOUND_PLACES) << HALF_ID_BITS;
        // There is no invoice 0: an entry of that number is an empty one.
        let known = place.load(Ordering::Relaxed) ^ tag;
        if (1..1 << HALF_ID_BITS).contains(&known) {
            return known;
        }
        let number = find();
        place.store(tag | number, Ordering::Relaxed);
        number
    }
}

/// An attacker who chooses some hundreds of inputs can tell a Feistel network of four rounds from a
/// random permutation. Nobody chooses numbers here, and two more rounds leave a margin.
const ROUNDS: u8 = 6;

impl IdCipher {
    /// The cipher of a key.
    pub fn new(key: &[u8; 32]) -> Self {
        let keyed = |pad: u8| {
            let mut block = [pad; 64];
            for (byte, key) in block.iter_mut().zip(key) {
                *byte ^= key;
            }
            let mut state = INITIAL;
            compress256(&mut state, &[block]);
            state
        };
        Self { inner: keyed(0x36), outer: keyed(0x5c), found: Arc::new(FoundNumbers::new()) }
    }

    /// The id of the invoice of this number, with six characters made of `random`.
    pub(crate) fn id(&self, number: u64, random: u64) -> InvoiceId {
        let (mut left, mut right) = (number / HALF % HALF, number % HALF);
        for round in 0..ROUNDS {
            (left, right) = (right, (left + self.round(round, right)) % HALF);
        }
        let mut id = [0; 12];
        write_digits(left * HALF + right, &mut id[..6]);
        write_digits(random % WHOLE, &mut id[6..]);
        InvoiceId(id)
    }

    /// The number of the invoice that has this id, if such an invoice exists.
    pub(crate) fn number(&self, id: &InvoiceId) -> u64 {
        let permuted = read_digits(&id.0[..6]);
        self.found.get_or_find(permuted, || {
            let (mut left, mut right) = (permuted / HALF, permuted % HALF);
            for round in (0..ROUNDS).rev() {
                (left, right) = ((right + HALF - self.round(round, left)) % HALF, left);
            }
            left * HALF + right
        })
    }

    /// The first eight bytes of HMAC-SHA-256 over the round and the half.
    fn round(&self, round: u8, half: u64) -> u64 {
        let mut message = [0; 9];
        message[0] = round;
        message[1..].copy_from_slice(&half.to_le_bytes());
        let inner = finish(self.inner, &message);
        let mut digest = [0; 32];
        for (bytes, word) in digest.chunks_exact_mut(4).zip(inner) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        let [first, second, ..] = finish(self.outer, &digest);
        (u64::from(second.swap_bytes()) << 32 | u64::from(first.swap_bytes())) % HALF
    }
}

/// The initial state of SHA-256 (FIPS 180-4, 5.3.3).
const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The hash of a message of one block and these bytes. `state` is the state after the block.
fn finish(mut state: [u32; 8], bytes: &[u8]) -> [u32; 8] {
    let mut block = [0; 64];
    block[..bytes.len()].copy_from_slice(bytes);
    block[bytes.len()] = 0x80;
    let bits = (64 + bytes.len() as u64) * 8;
    block[56..].copy_from_slice(&bits.to_be_bytes());
    compress256(&mut state, &[block]);
    state
}

impl fmt::Debug for IdCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdCipher(…)")
    }
}

fn write_digits(mut value: u64, digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(value % 62) as usize];
        value /= 62;
    }
}

fn read_digits(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |value, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'A'..=b'Z' => digit - b'A' + 10,
            _ => digit - b'a' + 36,
        };
        value * 62 + u64::from(digit)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hmac::{Hmac, KeyInit, Mac};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use sha2::Sha256;

    use super::*;

    #[test]
    fn ids_of_neighbours_have_nothing_in_common() {
        let cipher = IdCipher::new(&[7; 32]);
        let ids: BTreeSet<_> = (1..=10_000).map(|n| cipher.id(n, 0).0).collect();
        assert_eq!(ids.len(), 10_000);
        for place in 0..6 {
            let used: BTreeSet<_> = ids.iter().map(|id| id[place]).collect();
            assert_eq!(used.len(), 62, "place {place}");
        }
        let other = IdCipher::new(&[8; 32]);
        assert_ne!(cipher.id(1, 0), other.id(1, 0));
    }

    /// Payers and shops have ids, so that the cipher must never change.
    #[test]
    fn ids_stay_the_same_for_ever() {
        let cipher = IdCipher::new(&[7; 32]);
        assert_eq!(cipher.id(1, 0).as_str(), "EpQPeE000000");
    }

    #[test]
    fn a_text_that_is_not_an_id_is_refused() {
        for text in [
            "",
            "abc",
            "aaaaaaaaaaa",
            "aaaaaaaaaaaaa",
            "aaaaaa aaaaa",
            "aaaaaaaaaaé",
            "../../../../.",
            "aaaaaa-aaaaa",
        ] {
            assert!(matches!(text.parse::<InvoiceId>(), Err(InvoiceIdParseError(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_round_is_hmac_sha_256(key: [u8; 32], round: u8, half: u64) {
            let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
            mac.update(&[round]);
            mac.update(&half.to_le_bytes());
            let tag = mac.finalize().into_bytes();
            let expected = u64::from_le_bytes(*tag.first_chunk().unwrap()) % HALF;
            prop_assert_eq!(IdCipher::new(&key).round(round, half), expected);
        }

        #[test]
        fn an_id_leads_back_to_its_number(key: [u8; 32], number in 0..WHOLE, random: u64) {
            let cipher = IdCipher::new(&key);
            let id = cipher.id(number, random);
            prop_assert_eq!(cipher.number(&id), number);
            prop_assert_eq!(id.as_str().parse::<InvoiceId>().unwrap(), id);
        }

        #[test]
        fn cached_numbers_are_the_right_ones(
            numbers in vec((0..8_u64, 0..WHOLE >> FOUND_PLACES), 1..50),
        ) {
            // There are few places, so that entries replace each other.
            let found = FoundNumbers::new();
            for (low, high) in numbers.into_iter().flat_map(|number| [number; 2]) {
                let half_id = high << FOUND_PLACES | low;
                let number = half_id.wrapping_mul(0x9e37_79b9) % WHOLE;
                prop_assert_eq!(found.get_or_find(half_id, || number), number);
            }
        }

        #[test]
        fn any_id_leads_to_a_number(text in "[0-9A-Za-z]{12}") {
            let id: InvoiceId = text.parse().unwrap();
            let number = IdCipher::new(&[7; 32]).number(&id);
            prop_assert!(number < WHOLE);
        }
    }
}
