use std::fmt;

use thiserror::Error;

use crate::base58check;
use crate::keys::PublicKey;
use crate::network::Network;
use crate::script::Script;

/// A P2PKH address: the hash of a public key, and the network it is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    network: Network,
    public_key_hash: [u8; 20],
}

/// The versions of script hash addresses: of the main network, and of the test networks.
const SCRIPT_HASH_VERSIONS: [u8; 2] = [5, 196];

/// Why text is not a P2PKH address of the expected network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The text is not base58, or its checksum is wrong.
    #[error("not an address: mistyped or cut short")]
    Malformed,
    /// The address of a script hash (P2SH). Nodes have refused such outputs since February 2020.
    #[error("the address of a script hash (P2SH), which nodes have refused since 2020")]
    ScriptHash,
    /// A P2PKH address of other networks.
    #[error("an address of another network than {0}")]
    OtherNetwork(Network),
    /// Well-formed, but not a P2PKH address.
    #[error("not a P2PKH address of {0}")]
    OtherKind(Network),
}

impl Address {
    /// The address of a public key.
    pub fn p2pkh(public_key: &PublicKey, network: Network) -> Self {
        Self { network, public_key_hash: public_key.hash() }
    }

    /// The address that `script` locks an output of `network` to, or `None` if the script is not
    /// P2PKH.
    pub fn of_script(script: &Script, network: Network) -> Option<Self> {
        script.public_key_hash().map(|hash| Self { network, public_key_hash: *hash })
    }

    /// Reads an address of `network`. All test networks share one form.
    pub fn parse(text: &str, network: Network) -> Result<Self, AddressError> {
        let payload = base58check::decode(text).ok_or(AddressError::Malformed)?;
        let other_kind = AddressError::OtherKind(network);
        let (version, hash) = payload.split_first().ok_or(other_kind.clone())?;
        let public_key_hash = hash.try_into().map_err(|_| other_kind.clone())?;
        match *version {
            known if known == network.address_version() => Ok(Self { network, public_key_hash }),
            known if SCRIPT_HASH_VERSIONS.contains(&known) => Err(AddressError::ScriptHash),
            known
                if [Network::Livenet, Network::Testnet]
                    .map(Network::address_version)
                    .contains(&known) =>
            {
                Err(AddressError::OtherNetwork(network))
            }
            _ => Err(other_kind),
        }
    }

    /// The script that locks an output to this address.
    pub fn locking_script(&self) -> Script {
        Script::p2pkh(&self.public_key_hash)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut payload = [0; 21];
        payload[0] = self.network.address_version();
        payload[1..].copy_from_slice(&self.public_key_hash);
        f.write_str(&base58check::encode(&payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_network() {
        let key: PublicKey =
            "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798".parse().unwrap();
        for (network, text) in [
            (Network::Livenet, "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH"),
            (Network::Testnet, "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r"),
            (Network::Regtest, "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r"),
        ] {
            let address = Address::p2pkh(&key, network);
            assert_eq!(address.to_string(), text);
            assert_eq!(Address::parse(text, network), Ok(address));
            assert_eq!(address.locking_script(), Script::p2pkh(&key.hash()));
            assert_eq!(Address::of_script(&address.locking_script(), network), Some(address));
        }
    }

    #[test]
    fn a_mistake_in_an_address_is_found() {
        let right = "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH";
        let mistyped = right.replace('g', "h");
        let of_unknown_version = base58check::encode(&[30; 21]);
        for (text, error) in [
            (mistyped.as_str(), AddressError::Malformed),
            (&right[1..], AddressError::Malformed),
            ("", AddressError::Malformed),
            ("0OIl", AddressError::Malformed),
            ("mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r", AddressError::OtherNetwork(Network::Livenet)),
            ("3P14159f73E4gFr7JterCCQh9QjiTjiZrG", AddressError::ScriptHash),
            ("2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc", AddressError::ScriptHash),
            (&of_unknown_version, AddressError::OtherKind(Network::Livenet)),
            // A private key.
            (
                "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn",
                AddressError::OtherKind(Network::Livenet),
            ),
        ] {
            assert_eq!(Address::parse(text, Network::Livenet), Err(error), "{text}");
        }
    }
}
