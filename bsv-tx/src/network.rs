use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A Bitcoin SV network, with the names of the miner identity specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// The main network.
    Livenet,
    /// The public test network.
    Testnet,
    /// A private network for tests, where blocks are mined on demand.
    Regtest,
}

/// The name is not `livenet`, `testnet` or `regtest`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown network \"{0}\", expected livenet, testnet or regtest")]
pub struct NetworkParseError(String);

impl Network {
    /// The name in configuration files: `livenet`, `testnet` or `regtest`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Livenet => "livenet",
            Self::Testnet => "testnet",
            Self::Regtest => "regtest",
        }
    }

    /// The version byte of a P2PKH address.
    pub(crate) fn address_version(self) -> u8 {
        match self {
            Self::Livenet => 0x00,
            Self::Testnet | Self::Regtest => 0x6f,
        }
    }

    /// The version byte of a private key in wallet import format.
    pub(crate) fn wif_version(self) -> u8 {
        match self {
            Self::Livenet => 0x80,
            Self::Testnet | Self::Regtest => 0xef,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Network {
    type Err = NetworkParseError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name == "mainnet" {
            return Ok(Self::Livenet);
        }
        [Self::Livenet, Self::Testnet, Self::Regtest]
            .into_iter()
            .find(|network| network.name() == name)
            .ok_or_else(|| NetworkParseError(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_is_read_by_its_name() {
        for (network, name) in [
            (Network::Livenet, "livenet"),
            (Network::Testnet, "testnet"),
            (Network::Regtest, "regtest"),
        ] {
            assert_eq!(network.name(), name);
            assert_eq!(network.to_string(), name);
            assert_eq!(name.parse(), Ok(network));
        }
        assert_eq!("mainnet".parse(), Ok(Network::Livenet));
        for name in ["", "Livenet", "Mainnet", "main", "regtest "] {
            assert_eq!(name.parse::<Network>(), Err(NetworkParseError(name.to_owned())));
        }
    }
}
