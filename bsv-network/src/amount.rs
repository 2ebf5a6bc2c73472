use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;
use thiserror::Error;

/// The largest amount that nodes accept: the number of satoshis that can ever exist.
const MOST_SATOSHIS: u64 = 2_100_000_000_000_000;

/// The number of decimal places of an amount in BSV.
const DECIMALS: usize = 8;

/// An amount in satoshis, which nodes write as a decimal number of BSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount(pub(crate) u64);

/// Why a number is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum AmountError {
    #[error("an amount must be a decimal number")]
    NotANumber,
    #[error("an amount must not be negative")]
    Negative,
    #[error("an amount has at most 8 decimal places")]
    TooPrecise,
    #[error("an amount is at most 21000000 BSV")]
    TooLarge,
}

impl Amount {
    /// Parses a JSON number, with or without an exponent.
    pub(crate) fn parse(text: &str) -> Result<Self, AmountError> {
        if text.starts_with('-') {
            return Err(AmountError::Negative);
        }
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (text, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
            Some(_) => return Err(AmountError::NotANumber),
            None => (mantissa, ""),
        };
        if !is_digits(whole) {
            return Err(AmountError::NotANumber);
        }

        let all_digits = [whole, fraction].concat();
        let digits = all_digits.trim_end_matches('0');
        if digits.is_empty() {
            return Ok(Self(0));
        }
        // The amount is `digits` times ten to the power of `scale`.
        let dropped_zeros = (all_digits.len() - digits.len()) as i64;
        let scale = exponent
            .saturating_add(dropped_zeros)
            .saturating_add(DECIMALS as i64)
            .saturating_sub(fraction.len() as i64);
        let scale = match u32::try_from(scale) {
            Ok(scale) => scale,
            Err(_) if scale < 0 => return Err(AmountError::TooPrecise),
            Err(_) => return Err(AmountError::TooLarge),
        };
        digits
            .parse::<u64>()
            .ok()
            .and_then(|value| value.checked_mul(10u64.checked_pow(scale)?))
            .filter(|satoshis| *satoshis <= MOST_SATOSHIS)
            .map(Self)
            .ok_or(AmountError::TooLarge)
    }

    /// The amount in BSV with all eight decimal places, as nodes write it.
    pub(crate) fn format(self) -> String {
        const PER_BSV: u64 = 10u64.pow(DECIMALS as u32);
        format!("{}.{:08}", self.0 / PER_BSV, self.0 % PER_BSV)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spelled = <&RawValue>::deserialize(deserializer)?;
        Self::parse(spelled.get()).map_err(de::Error::custom)
    }
}

/// Parses an exponent. One beyond the range of `i64` becomes the end of that range.
fn parse_exponent(text: &str) -> Result<i64, AmountError> {
    let (limit, digits) = match text.as_bytes().first() {
        Some(b'-') => (i64::MIN, &text[1..]),
        Some(b'+') => (i64::MAX, &text[1..]),
        _ => (i64::MAX, text),
    };
    if !is_digits(digits) {
        return Err(AmountError::NotANumber);
    }
    Ok(text.parse().unwrap_or(limit))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_read_exactly_in_every_spelling() {
        for (text, satoshis) in [
            ("0", 0),
            ("0.00000000", 0),
            ("0e99999999999999999999", 0),
            ("0.00000001", 1),
            ("1e-08", 1),
            ("1E-8", 1),
            ("0.1e-7", 1),
            ("0.12345678", 12_345_678),
            ("50.00000000", 5_000_000_000),
            ("50.0000000000000000", 5_000_000_000),
            ("21", 2_100_000_000),
            ("2.1e1", 2_100_000_000),
            ("2.1e+7", MOST_SATOSHIS),
            ("20999999.99999999", MOST_SATOSHIS - 1),
            ("21000000.00000000", MOST_SATOSHIS),
        ] {
            assert_eq!(Amount::parse(text), Ok(Amount(satoshis)), "{text}");
        }
    }

    #[test]
    fn what_is_not_an_amount_is_refused() {
        for (text, error) in [
            ("-1", AmountError::Negative),
            ("-0.00000001", AmountError::Negative),
            ("0.000000001", AmountError::TooPrecise),
            ("0.123456789", AmountError::TooPrecise),
            ("1e-9", AmountError::TooPrecise),
            ("1e-99999999999999999999", AmountError::TooPrecise),
            ("21000000.00000001", AmountError::TooLarge),
            ("184467440737.09551616", AmountError::TooLarge),
            ("1e12", AmountError::TooLarge),
            ("1e300", AmountError::TooLarge),
            ("1e99999999999999999999", AmountError::TooLarge),
            ("100000000000000000000000000001", AmountError::TooLarge),
            ("", AmountError::NotANumber),
            ("null", AmountError::NotANumber),
            ("\"1\"", AmountError::NotANumber),
            ("+1", AmountError::NotANumber),
            (".5", AmountError::NotANumber),
            ("5.", AmountError::NotANumber),
            ("1e", AmountError::NotANumber),
            ("1e+", AmountError::NotANumber),
            ("1e1.0", AmountError::NotANumber),
            ("1e--1", AmountError::NotANumber),
        ] {
            assert_eq!(Amount::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn amounts_are_written_with_all_their_decimal_places() {
        assert_eq!(Amount(0).format(), "0.00000000");
        assert_eq!(Amount(1).format(), "0.00000001");
        assert_eq!(Amount(12_345_678).format(), "0.12345678");
        assert_eq!(Amount(2_100_000_000).format(), "21.00000000");
    }

    #[test]
    fn an_amount_is_read_out_of_an_answer() {
        let read = serde_json::from_str::<Vec<Amount>>("[1e-08, 50.00000000]").unwrap();
        assert_eq!(read, [Amount(1), Amount(5_000_000_000)]);
        let error = serde_json::from_str::<Vec<Amount>>("[-1.0]").unwrap_err();
        assert!(error.to_string().starts_with("an amount must not be negative"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(satoshis in 0..=MOST_SATOSHIS) {
            prop_assert_eq!(Amount::parse(&Amount(satoshis).format()), Ok(Amount(satoshis)));
        }

        #[test]
        fn no_text_panics(text in "[-+0-9.eE]{0,40}") {
            let _ = Amount::parse(&text);
        }
    }
}
