use std::fmt;
use std::str::FromStr;

use ripemd::Ripemd160;
use sha2::{Digest, Sha256};
use thiserror::Error;

/// SHA-256.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// SHA-256 of the SHA-256: the hash of transactions, Merkle nodes and block headers.
pub fn sha256d(bytes: &[u8]) -> [u8; 32] {
    sha256(&sha256(bytes))
}

/// RIPEMD-160 of the SHA-256: the hash in P2PKH scripts and addresses.
pub fn hash160(bytes: &[u8]) -> [u8; 20] {
    Ripemd160::digest(sha256(bytes)).into()
}

/// Text that is not a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be 64 hexadecimal characters")]
pub struct HashParseError;

macro_rules! displayed_reversed {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 32]);

        impl $name {
            /// Takes the 32 bytes in internal order.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The 32 bytes in internal order.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// The 32 bytes in display order.
            pub fn to_display_bytes(self) -> [u8; 32] {
                let mut bytes = self.0;
                bytes.reverse();
                bytes
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(self.to_display_bytes()))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = HashParseError;

            /// Reads 64 hexadecimal digits, of either case, in display order.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let mut bytes = [0; 32];
                hex::decode_to_slice(text, &mut bytes).map_err(|_| HashParseError)?;
                bytes.reverse();
                Ok(Self(bytes))
            }
        }
    };
}

displayed_reversed!(
    /// A transaction id: SHA-256d of the encoded transaction.
    Txid
);
displayed_reversed!(
    /// A block hash: SHA-256d of the 80-byte header.
    BlockHash
);
displayed_reversed!(
    /// The root of a block's Merkle tree of transaction ids.
    MerkleRoot
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_the_published_ones() {
        assert_eq!(
            hex::encode(sha256(b"abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            hex::encode(sha256d(b"hello")),
            "9595c9df90075148eb06860365df33584b75bff782a510c6cd4883a419833d50"
        );
        assert_eq!(hex::encode(hash160(b"hello")), "b6a9c8c230722b7c748331a8b450f05566dc7d0f");
    }

    #[test]
    fn display_order_is_reversed_and_either_case_is_read() {
        let text = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f";
        let hash: BlockHash = text.to_uppercase().parse().unwrap();
        assert_eq!(hash.as_bytes()[0], 0x6f);
        assert_eq!(hash.to_string(), text);
        for bad in ["", "00", &text[1..], &format!("{text}00"), &text.replace('d', "g")] {
            assert_eq!(bad.parse::<Txid>(), Err(HashParseError));
        }
    }
}
