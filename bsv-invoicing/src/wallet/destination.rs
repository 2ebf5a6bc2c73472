//! The destination of money that the owner sends: an address of this network, or a script.

use bsv_tx::{Address, AddressError, Network, Script, TxOut};

use crate::error::Error;
use crate::model::coin::encoded_len;
use crate::model::fields::FieldErrors;
use crate::wallet::pay::{is_data, is_p2sh};

/// The longest script, in bytes.
const MAX_SCRIPT_LEN: usize = 10_000;

/// The destination of money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    /// The address, or the script in hex.
    text: String,
    script: Script,
}

impl Destination {
    /// Reads an address of a network.
    pub(super) fn of_address(text: &str, network: Network) -> Result<Self, BadDestination> {
        let address = Address::parse(text, network)?;
        Ok(Self { text: text.to_owned(), script: address.locking_script() })
    }

    /// Reads a script in hex.
    pub(super) fn of_script(hex: &str) -> Result<Self, BadDestination> {
        let script = Script::from_hex(hex).map_err(|_| BadDestination::NotHex)?;
        match script.as_bytes().len() {
            0 => Err(BadDestination::Empty),
            len if len > MAX_SCRIPT_LEN => Err(BadDestination::TooLong),
            _ if is_p2sh(&script) => Err(BadDestination::ScriptHash),
            _ if is_data(&script) => Err(BadDestination::Data),
            _ => Ok(Self { text: hex.to_ascii_lowercase(), script }),
        }
    }

    /// Reads an address of a network, or a script in hex.
    pub(super) fn of_either(text: &str, network: Network) -> Result<Self, BadDestination> {
        match Self::of_address(text, network) {
            Err(BadDestination::Address(AddressError::Malformed)) if is_hex(text) => {
                Self::of_script(text)
            }
            result => result,
        }
    }

    /// The address, or the script in hex.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// An output that pays the destination.
    pub(super) fn output(&self, satoshis: u64) -> TxOut {
        TxOut { satoshis, locking_script: self.script.clone() }
    }

    /// The size of such an output, in bytes.
    pub(super) fn output_bytes(&self) -> u64 {
        encoded_len(&[self.output(0)])
    }
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_hexdigit())
}

/// Why money cannot be sent to a destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadDestination {
    #[error("is {0}")]
    Address(#[from] AddressError),
    #[error("must be an even number of hexadecimal digits")]
    NotHex,
    #[error("must not be empty")]
    Empty,
    #[error("must have at most {MAX_SCRIPT_LEN} bytes")]
    TooLong,
    #[error("pays to a script hash (P2SH), which nodes have not accepted since 2020")]
    ScriptHash,
    #[error("is data (OP_RETURN), which nobody can spend")]
    Data,
}

impl BadDestination {
    /// The error for a request with this destination in `field`.
    pub(super) fn of_field(self, field: &'static str) -> Error {
        if matches!(self, Self::ScriptHash | Self::Address(AddressError::ScriptHash)) {
            return Error::UnpayableTerms(format!("{field} {self}"));
        }
        let mut errors = FieldErrors::default();
        errors.add(field, self.to_string());
        Error::Invalid(errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_goes_to_addresses_of_the_network_and_to_scripts_that_can_be_spent() {
        let read = |text: &str| Destination::of_either(text, Network::Regtest);
        let p2pkh = format!("76a914{}88ac", "ab".repeat(20));
        let address = "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r";
        assert_eq!(read(address).unwrap().text(), address);
        assert_eq!(read(&p2pkh.to_uppercase()).unwrap().text(), p2pkh);
        for (text, complaint) in [
            ("", "mistyped"),
            ("mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8s", "mistyped"),
            ("1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH", "another network"),
            ("2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc", "P2SH"),
            ("3P14159f73E4gFr7JterCCQh9QjiTjiZrG", "P2SH"),
            ("abc", "even number"),
            (&format!("a914{}87", "ab".repeat(20)), "P2SH"),
            ("6a", "OP_RETURN"),
            ("006a01", "OP_RETURN"),
            (&"51".repeat(10_001), "at most 10000 bytes"),
        ] {
            let refused = read(text).unwrap_err().to_string();
            assert!(refused.contains(complaint), "{text:.40}: {refused}");
        }
        assert_eq!(Destination::of_script(""), Err(BadDestination::Empty));
    }
}
