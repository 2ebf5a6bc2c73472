//! The texts that wallets scan: a bare address, or a link with the amount and the payment URL.

use std::fmt;

use bsv_tx::Address;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// An amount in satoshis, written in BSV without trailing zeros: `0.00005`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bsv(pub(super) u64);

impl Bsv {
    /// The number of satoshis, in groups of three digits.
    pub(super) fn groups(self) -> Vec<String> {
        let digits = self.0.to_string();
        let (head, tail) = digits.split_at((digits.len() - 1) % 3 + 1);
        let tail = tail.as_bytes().chunks(3).map(|group| String::from_utf8_lossy(group).into());
        [head.to_owned()].into_iter().chain(tail).collect()
    }
}

const SATOSHIS: u64 = 100_000_000;

impl fmt::Display for Bsv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / SATOSHIS, self.0 % SATOSHIS);
        match rest {
            0 => write!(f, "{whole}"),
            _ => write!(f, "{whole}.{}", format!("{rest:08}").trim_end_matches('0')),
        }
    }
}

/// The characters that would end or change a parameter of a link. A payment URL has no query and no
/// fragment.
const ESCAPED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'%').add(b'&').add(b'+').add(b'<').add(b'>');

/// The link that wallets open (BIP21, with the members of ElectrumSV). The link is short, so that
/// its QR code has few modules. Without an address, only the payment URL says what to pay.
pub(crate) fn link(address: Option<&Address>, satoshis: u64, payment_url: &str) -> String {
    let url = utf8_percent_encode(payment_url, ESCAPED);
    match address {
        Some(address) => format!("bitcoin:{address}?sv&amount={}&r={url}", Bsv(satoshis)),
        None => format!("bitcoin:?sv&r={url}"),
    }
}

#[cfg(test)]
mod tests {
    use bsv_tx::Network;

    use super::*;

    #[test]
    fn amounts_are_written_in_bsv() {
        for (satoshis, text) in [
            (1, "0.00000001"),
            (5_000, "0.00005"),
            (100_000_000, "1"),
            (150_000_000, "1.5"),
            (1_000_000_000, "10"),
            (2_100_000_000_000_000, "21000000"),
        ] {
            assert_eq!(Bsv(satoshis).to_string(), text);
        }
    }

    #[test]
    fn satoshis_are_grouped() {
        for (satoshis, groups) in [
            (1, &["1"][..]),
            (999, &["999"]),
            (1_000, &["1", "000"]),
            (2_100_000_000_000_000, &["2", "100", "000", "000", "000", "000"]),
        ] {
            assert_eq!(Bsv(satoshis).groups(), groups);
        }
    }

    #[test]
    fn links_hold_the_payment_url_whole() {
        let address = "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r";
        let parsed = Address::parse(address, Network::Regtest).unwrap();
        let link = link(Some(&parsed), 5_000, "https://pay.example.com/a&b%20+/pay/1");
        let expected = format!(
            "bitcoin:{address}?sv&amount=0.00005&r=https://pay.example.com/a%26b%2520%2B/pay/1"
        );
        assert_eq!(link, expected);
        let query = link.split_once('?').unwrap().1;
        let members: Vec<_> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let url = members.iter().find(|(name, _)| name == "r").map(|(_, url)| url.as_str());
        assert_eq!(url, Some("https://pay.example.com/a&b%20+/pay/1"));
        let without = super::link(None, 5_000, "https://pay.example.com/pay/1");
        assert_eq!(without, "bitcoin:?sv&r=https://pay.example.com/pay/1");
    }
}
