use bsv_tx::{PublicKey, Signature, sha256};
use serde::{Deserialize, Serialize};

use crate::signer::{Signer, SignerError};

/// A key's statement about its successor, in documents of generation 1.0. There is one for miner
/// ids and one for revocation keys, in every document. A key without a predecessor names itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Succession {
    /// The previous key; the current key itself, if nothing is announced.
    pub previous: PublicKey,
    /// The current key.
    pub current: PublicKey,
    /// The signature by the previous key over [`digest`](Self::digest).
    pub signature: Signature,
}

impl Succession {
    /// The digest that the previous key signs: SHA-256 of the raw bytes of both keys.
    pub fn digest(previous: &PublicKey, current: &PublicKey) -> [u8; 32] {
        let mut preimage = [0; 33 + 33];
        preimage[..33].copy_from_slice(&previous.to_bytes());
        preimage[33..].copy_from_slice(&current.to_bytes());
        sha256(&preimage)
    }

    /// Makes `current` the successor of a key. Both may be the same key.
    pub fn sign(previous: &dyn Signer, current: PublicKey) -> Result<Self, SignerError> {
        let previous_key = previous.public_key();
        let signature = previous.sign(&Self::digest(&previous_key, &current))?;
        Ok(Self { previous: previous_key, current, signature })
    }

    /// Whether the previous key has signed the statement.
    pub fn holds(&self) -> bool {
        self.previous.verify(&Self::digest(&self.previous, &self.current), &self.signature)
    }

    /// Whether the statement announces a new key.
    pub fn is_change(&self) -> bool {
        self.previous != self.current
    }
}

#[cfg(test)]
mod tests {
    use bsv_tx::PrivateKey;

    use super::*;

    #[test]
    fn only_what_the_previous_key_signed_holds() {
        let [first, second] = [(); 2].map(|()| PrivateKey::generate().unwrap());
        let (first_key, second_key) = (first.public_key(), second.public_key());
        let first_itself = Succession::sign(&first, first_key).unwrap();
        let change = Succession::sign(&first, second_key).unwrap();
        assert!(first_itself.holds() && !first_itself.is_change());
        assert!(change.holds() && change.is_change());
        for forged in [
            Succession { signature: first_itself.signature, ..change },
            Succession { previous: second_key, ..change },
            Succession { current: first_key, ..change },
            Succession { previous: second_key, current: first_key, ..change },
        ] {
            assert!(!forged.holds(), "{forged:?}");
        }
    }
}
