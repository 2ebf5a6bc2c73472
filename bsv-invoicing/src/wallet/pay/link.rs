//! The links that payment pages show, and wallets scan: `bitcoin:?sv&r=URL`,
//! `bitcoin:ADDRESS?sv&amount=BSV&r=URL` and `pay:?r=URL` (BIP21, BIP72, ElectrumSV).

use reqwest::Url;

use crate::model::invoice::MAX_SATOSHIS;

/// The digits of a satoshi in an amount of BSV.
const DECIMALS: usize = 8;

/// A link to a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// The payment URL, if the link holds one.
    pub(super) payment_url: Option<String>,
    /// The amount that the link names, in satoshis. Only the payee's terms decide what is paid.
    pub(super) satoshis: Option<u64>,
}

impl Link {
    /// The link that a URL is. `None` if its scheme is another one.
    pub(super) fn of(url: &Url) -> Option<Self> {
        if !matches!(url.scheme(), "bitcoin" | "pay") {
            return None;
        }
        let mut url = url.clone();
        // In links, a plus sign stands for itself.
        let query = url.query().map(|query| query.replace('+', "%2B"));
        url.set_query(query.as_deref());
        let value = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|it| it.1);
        Some(Self {
            payment_url: value("r").map(Into::into),
            satoshis: value("amount").and_then(|amount| satoshis(&amount)),
        })
    }
}

/// Reads an amount of BSV.
fn satoshis(bsv: &str) -> Option<u64> {
    let (whole, part) = bsv.split_once('.').unwrap_or((bsv, ""));
    let is_number = |text: &str| text.bytes().all(|c| c.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > DECIMALS {
        return None;
    }
    let satoshis = format!("{whole}{part:0<DECIMALS$}").parse().ok();
    satoshis.filter(|satoshis| (1..=MAX_SATOSHIS).contains(satoshis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_hold_a_payment_url_and_an_amount() {
        const URL: &str = "https://shop.example/a&b%20+/pay?x=1";
        const ESCAPED: &str = "https://shop.example/a%26b%2520%2B/pay?x=1";
        let address = "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r";
        for (text, payment_url, satoshis) in [
            (format!("bitcoin:?sv&r={ESCAPED}"), Some(URL), None),
            (format!("bitcoin:{address}?sv&amount=0.00005&r={ESCAPED}"), Some(URL), Some(5_000)),
            (
                format!("BITCOIN:{address}?amount=21000000&r={ESCAPED}"),
                Some(URL),
                Some(MAX_SATOSHIS),
            ),
            (format!("pay:?r={ESCAPED}&amount=.5"), Some(URL), Some(50_000_000)),
            (format!("pay:?r={}", ESCAPED.replace("%2B", "+")), Some(URL), None),
            (format!("bitcoin:{address}?sv&amount=1.5"), None, Some(150_000_000)),
            (format!("bitcoin:{address}"), None, None),
        ] {
            let link = Link::of(&Url::parse(&text).unwrap()).unwrap();
            assert_eq!(
                (link.payment_url.as_deref(), link.satoshis),
                (payment_url, satoshis),
                "{text}"
            );
        }
        for amount in ["", "0", ".", "-1", "1e3", "0.000000001", "21000000.00000001", "1,5"] {
            assert_eq!(satoshis(amount), None, "{amount}");
        }
        assert_eq!(Link::of(&Url::parse(URL).unwrap()), None);
    }
}
