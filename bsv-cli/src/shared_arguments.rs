//! Arguments of several commands.

use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_minerid::Alias;
use clap::Args;
use clap::builder::TypedValueParser;

/// The alias of the only identity that a command is about.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Name {
    /// The alias of the identity
    #[arg(value_name = "ALIAS")]
    by_place: Option<Alias>,
    /// The same as ALIAS
    #[arg(long = "name", short = 'n', value_name = "ALIAS")]
    by_option: Option<Alias>,
}

impl Name {
    pub(crate) fn new(alias: Alias) -> Self {
        Self { by_place: Some(alias), by_option: None }
    }

    pub(crate) fn alias(self) -> Alias {
        self.by_place.or(self.by_option).expect("the command line demands one of the two")
    }
}

/// Parses the height of a block that a miner may be asked about.
pub(crate) fn height() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=i64::from(i32::MAX))
}

#[derive(Debug, Args)]
pub(crate) struct Expiry {
    /// Expire after this duration, such as 30m, 24h or 7d
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true, conflicts_with = "expires_at")]
    expires_in: Option<Duration>,
    /// Expire at this time, such as 2026-11-21T08:48:56Z
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse_storable)]
    expires_at: Option<Timestamp>,
}

impl Expiry {
    /// The time in the format for the service.
    pub(crate) fn moment(&self) -> Option<String> {
        let after = self.expires_in.map(|duration| Timestamp::of_system().after(duration));
        after.or(self.expires_at).map(|moment| moment.to_string())
    }
}

/// Parses a number and a unit.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a number and s, m, h or d, such as 30m, 24h or 7d".to_owned();
    let (number, seconds) = match text.char_indices().next_back().ok_or_else(wrong)? {
        (end, 's') => (&text[..end], 1),
        (end, 'm') => (&text[..end], 60),
        (end, 'h') => (&text[..end], 60 * 60),
        (end, 'd') => (&text[..end], 24 * 60 * 60),
        _ => return Err(wrong()),
    };
    if !number.bytes().all(|c| c.is_ascii_digit()) {
        return Err(wrong());
    }
    let seconds = number.parse::<u64>().map_err(|_| wrong())?.checked_mul(seconds);
    match seconds.map(Duration::from_secs) {
        Some(Duration::ZERO) => Err("it must be longer than 0".to_owned()),
        Some(duration) if Timestamp::of_system().after(duration) < Timestamp::MAX => Ok(duration),
        _ => Err("it is too long".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_a_number_and_a_unit() {
        let seconds = |text| duration(text).map(|duration| duration.as_secs());
        let read = ["90s", "30m", "24h", "7d", "1d"].map(seconds);
        assert_eq!(read, [Ok(90), Ok(1800), Ok(86_400), Ok(604_800), Ok(86_400)]);
        for wrong in ["", "7", "d", "7w", "-1d", "+1d", "1.5h", "7 d", "7days", "٣d", "0s", "0d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        for long in ["3000000d", "18446744073709551615d", "99999999999999999999s"] {
            assert!(duration(long).is_err(), "{long}");
        }
    }
}
