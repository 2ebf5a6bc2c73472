//! Serde support: each type is serialised as its text.

use std::borrow::Cow;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::hash::{BlockHash, MerkleRoot, Txid};
use crate::keys::{PublicKey, Signature};
use crate::merkle::Sibling;
use crate::script::Script;
use crate::transaction::{OutPoint, Transaction};

macro_rules! as_text {
    ($write:ident, $read:ident: $($name:ident),+) => {
        $(
            impl Serialize for $name {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str(&self.$write())
                }
            }

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let text = Cow::<str>::deserialize(deserializer)?;
                    Self::$read(&text).map_err(de::Error::custom)
                }
            }
        )+
    };
}

as_text!(to_string, from_str: BlockHash, MerkleRoot, OutPoint, PublicKey, Sibling, Signature, Txid);
as_text!(to_hex, from_hex: Script, Transaction);

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::de::DeserializeOwned;

    use super::*;
    use crate::keys::PrivateKey;

    fn reads_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, text: &str) {
        let json = serde_json::to_string(value).unwrap();
        assert_eq!(json, format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<T>(&json).unwrap(), *value);
        assert_eq!(serde_json::from_str::<T>(&json.replace('"', "\"\\u0020")).ok(), None);
        assert_eq!(serde_json::from_str::<T>("7").ok(), None);
    }

    #[test]
    fn each_type_is_the_text_that_it_prints() {
        let txid = Txid::from_bytes([7; 32]);
        reads_back(&txid, &"07".repeat(32));
        reads_back(&BlockHash::from_bytes([7; 32]), &"07".repeat(32));
        reads_back(&MerkleRoot::from_bytes([7; 32]), &"07".repeat(32));
        reads_back(&OutPoint { txid, vout: 3 }, &format!("{txid}:3"));
        reads_back(&Sibling::Duplicate, "*");
        let key = PrivateKey::from_bytes(&[1; 32]).unwrap();
        reads_back(&key.public_key(), &key.public_key().to_string());
        reads_back(&key.sign(&[2; 32]), &key.sign(&[2; 32]).to_string());
        reads_back(&Script::from_bytes([0, 0x6a]), "006a");
        let empty = Transaction { version: 1, inputs: vec![], outputs: vec![], lock_time: 0 };
        reads_back(&empty, "01000000000000000000");
    }

    #[test]
    fn an_error_says_what_the_text_must_be() {
        let error = serde_json::from_str::<Txid>("\"00\"").unwrap_err().to_string();
        assert!(error.starts_with("must be 64 hexadecimal characters"), "{error}");
    }
}
