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

/// Text that is not an address of the network it should be of.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Not base58, or the checksum does not fit.
    #[error("not an address: mistyped or cut short")]
    Malformed,
    /// Well-formed, but not a P2PKH address of the network.
    #[error("not a P2PKH address of {0}")]
    OtherKind(Network),
}

impl Address {
    /// The address of a public key.
    pub fn p2pkh(public_key: &PublicKey, network: Network) -> Self {
        Self { network, public_key_hash: public_key.hash() }
    }

    /// Reads an address of `network`. Test networks share one form.
    pub fn parse(text: &str, network: Network) -> Result<Self, AddressError> {
        let payload = base58check::decode(text).ok_or(AddressError::Malformed)?;
        match payload.split_first() {
            Some((version, hash)) if *version == network.address_version() => Ok(Self {
                network,
                public_key_hash: hash.try_into().map_err(|_| AddressError::OtherKind(network))?,
            }),
            _ => Err(AddressError::OtherKind(network)),
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
        }
    }

    #[test]
    fn a_mistake_in_an_address_is_found() {
        let right = "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH";
        let mistyped = right.replace('g', "h");
        for (text, error) in [
            (mistyped.as_str(), AddressError::Malformed),
            (&right[1..], AddressError::Malformed),
            ("", AddressError::Malformed),
            ("0OIl", AddressError::Malformed),
            ("mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r", AddressError::OtherKind(Network::Livenet)),
            // P2SH, and a private key.
            ("3P14159f73E4gFr7JterCCQh9QjiTjiZrG", AddressError::OtherKind(Network::Livenet)),
        ] {
            assert_eq!(Address::parse(text, Network::Livenet), Err(error), "{text}");
        }
    }
}
