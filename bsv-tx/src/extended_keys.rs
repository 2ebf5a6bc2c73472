use std::fmt;
use std::str::FromStr;

use bip32::{ChildNumber, DerivationPath, ExtendedKey, Prefix};
use secp256k1::SecretKey;
use zeroize::Zeroizing;

use crate::keys::{KeyError, PrivateKey, PublicKey};
use crate::network::Network;

type Node = bip32::ExtendedPrivateKey<SecretKey>;

/// A BIP32 extended private key: a private key from which others are derived. The older miner
/// identity generator stores one for each key, and uses only its private key.
#[derive(Clone)]
pub struct ExtendedPrivateKey {
    text: Zeroizing<String>,
    private_key: PrivateKey,
}

impl ExtendedPrivateKey {
    /// Makes a new master key from 64 random bytes. The text of the key begins with `xprv` on the
    /// main network and with `tprv` on the others.
    pub fn generate(network: Network) -> Result<Self, KeyError> {
        let mut seed = Zeroizing::new([0; 64]);
        getrandom::fill(seed.as_mut()).map_err(KeyError::NoRandomness)?;
        Self::from_seed(&seed, network)
    }

    /// The master key of a seed, with the prefixes of [`generate`](Self::generate).
    pub fn from_seed(seed: &[u8; 64], network: Network) -> Result<Self, KeyError> {
        let prefix = match network {
            Network::Livenet => Prefix::XPRV,
            Network::Testnet | Network::Regtest => Prefix::TPRV,
        };
        // Fails for one seed in 2^127, as derivation does.
        let node = Node::new(seed).map_err(|_| KeyError::ExtendedPrivateKey)?;
        node.to_string(prefix).parse()
    }

    /// Derives the key at the end of `path`, such as `m/44'/236'/0'`. The path starts at this key.
    pub fn derive(&self, path: &str) -> Result<Self, KeyError> {
        let path: DerivationPath = path.parse().map_err(|_| KeyError::DerivationPath)?;
        let (prefix, mut node) = self.node()?;
        for number in path {
            node = node.derive_child(number).map_err(|_| KeyError::DerivationPath)?;
        }
        node.to_string(prefix).parse()
    }

    /// The public half, from which public keys are derived.
    pub fn public(&self) -> Result<ExtendedPublicKey, KeyError> {
        Ok(ExtendedPublicKey(self.node()?.1.public_key()))
    }

    fn node(&self) -> Result<(Prefix, Node), KeyError> {
        let key: ExtendedKey = self.text.parse().map_err(|_| KeyError::ExtendedPrivateKey)?;
        let prefix = key.prefix;
        Ok((prefix, key.try_into().map_err(|_| KeyError::ExtendedPrivateKey)?))
    }

    /// The private key at this node.
    pub fn private_key(&self) -> &PrivateKey {
        &self.private_key
    }

    /// The key as it was read.
    pub fn as_text(&self) -> &str {
        &self.text
    }
}

impl FromStr for ExtendedPrivateKey {
    type Err = KeyError;

    /// Reads `xprv…` or `tprv…` text. White space around it is allowed.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if !text.starts_with("xprv") && !text.starts_with("tprv") {
            return Err(KeyError::ExtendedPrivateKey);
        }
        let node: Node = text.parse().map_err(|_| KeyError::ExtendedPrivateKey)?;
        Ok(Self {
            text: Zeroizing::new(text.to_owned()),
            private_key: PrivateKey(Zeroizing::new(node.to_bytes())),
        })
    }
}

impl fmt::Debug for ExtendedPrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExtendedPrivateKey(…)")
    }
}

/// A BIP32 extended public key. Such a key yields the public keys of the children that are not
/// hardened.
#[derive(Clone, PartialEq, Eq)]
pub struct ExtendedPublicKey(bip32::ExtendedPublicKey<secp256k1::PublicKey>);

impl ExtendedPublicKey {
    /// The number of children that are not hardened. The numbers start at 0.
    pub const CHILDREN: u32 = 1 << 31;

    /// The public key at this node.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(*self.0.public_key())
    }

    /// The public key of the child with this number, which must be below
    /// [`CHILDREN`](Self::CHILDREN).
    pub fn child(&self, number: u32) -> Result<PublicKey, KeyError> {
        let number = ChildNumber::new(number, false).map_err(|_| KeyError::DerivationPath)?;
        let child = self.0.derive_child(number).map_err(|_| KeyError::DerivationPath)?;
        Ok(PublicKey(*child.public_key()))
    }
}

impl fmt::Debug for ExtendedPublicKey {
    /// Hides the key: whoever has it knows all addresses of a wallet.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExtendedPublicKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const XPRV: &str = "xprv9s21ZrQH143K4HFZ5CVtZb6tgRX2BdxgVTmGQGHAWEZU5aCi58AfSPafCEiFC6tH6VhGwRHZGsuydUq7vpvnaa2MxhAFDThvBdsfosg9BXz";

    #[test]
    fn the_key_of_an_extended_key_is_the_one_at_its_own_node() {
        let extended: ExtendedPrivateKey = format!(" {XPRV}\n  \n").parse().unwrap();
        assert_eq!(extended.as_text(), XPRV);
        assert_eq!(
            extended.private_key().public_key().to_string(),
            "025e343d44313813efa8e94b2c28c0b9b992cbcbed0fad36600a858fcd31da5890"
        );
        let xpub = "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8";
        for bad in ["", &XPRV[..50], &XPRV.replace('K', "L"), xpub] {
            let error = bad.parse::<ExtendedPrivateKey>().unwrap_err();
            assert_eq!(error, KeyError::ExtendedPrivateKey, "{bad}");
        }
    }

    #[test]
    fn made_keys_differ_and_read_back() {
        for (network, prefix) in [(Network::Livenet, "xprv"), (Network::Regtest, "tprv")] {
            let [a, b] = [(); 2].map(|()| ExtendedPrivateKey::generate(network).unwrap());
            assert!(a.as_text().starts_with(prefix));
            assert_ne!(a.as_text(), b.as_text());
            let read: ExtendedPrivateKey = a.as_text().parse().unwrap();
            assert_eq!(read.private_key().public_key(), a.private_key().public_key());
        }
    }

    /// BIP32, test vector 1.
    #[test]
    fn derived_keys_are_those_of_the_standard() {
        let mut seed = [0; 64];
        hex::decode_to_slice("fffcf9f6f3f0edeae7e4e1dedbd8d5d2cfccc9c6c3c0bdbab7b4b1aeaba8a5a29f9c999693908d8a8784817e7b7875726f6c696663605d5a5754514e4b484542", &mut seed).unwrap();
        let master = ExtendedPrivateKey::from_seed(&seed, Network::Livenet).unwrap();
        assert_eq!(
            master.as_text(),
            "xprv9s21ZrQH143K31xYSDQpPDxsXRTUcvj2iNHm5NUtrGiGG5e2DtALGdso3pGz6ssrdK4PFmM8NSpSBHNqPqm55Qn3LqFtT2emdEXVYsCzC2U"
        );
        for (path, text) in [
            ("m", master.as_text()),
            (
                "m/0",
                "xprv9vHkqa6EV4sPZHYqZznhT2NPtPCjKuDKGY38FBWLvgaDx45zo9WQRUT3dKYnjwih2yJD9mkrocEZXo1ex8G81dwSM1fwqWpWkeS3v86pgKt",
            ),
            (
                "m/0/2147483647'",
                "xprv9wSp6B7kry3Vj9m1zSnLvN3xH8RdsPP1Mh7fAaR7aRLcQMKTR2vidYEeEg2mUCTAwCd6vnxVrcjfy2kRgVsFawNzmjuHc2YmYRmagcEPdU9",
            ),
        ] {
            assert_eq!(master.derive(path).unwrap().as_text(), text, "{path}");
        }
        let public = master.public().unwrap();
        assert_eq!(public.public_key(), master.private_key().public_key());
        let child = master.derive("m/0").unwrap();
        assert_eq!(public.child(0).unwrap(), child.private_key().public_key());
    }

    #[test]
    fn paths_and_numbers_that_lead_nowhere_are_refused() {
        let key: ExtendedPrivateKey = XPRV.parse().unwrap();
        for path in ["", "0", "m/", "m/x", "m/2147483648", "m/0''"] {
            assert_eq!(key.derive(path).unwrap_err(), KeyError::DerivationPath, "{path}");
        }
        let public = key.public().unwrap();
        assert!(public.child(ExtendedPublicKey::CHILDREN - 1).is_ok());
        assert_eq!(public.child(ExtendedPublicKey::CHILDREN), Err(KeyError::DerivationPath));
    }

    #[test]
    fn extended_keys_are_never_printed() {
        let key: ExtendedPrivateKey = XPRV.parse().unwrap();
        let public = key.public().unwrap();
        assert_eq!(format!("{key:?} {public:?}"), "ExtendedPrivateKey(…) ExtendedPublicKey(…)");
    }
}
