//! Movements of money, for bookkeeping.

use std::io::{self, BufWriter, IsTerminal, Write};

use clap::{Args, ValueEnum};
use hyper::Method;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::service::Request;

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Start at the beginning of this month or day, or at this time: 2026-11, 2026-11-21 or
    /// 2026-11-21T08:48:56Z [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = boundary)]
    from: Option<Boundary>,
    /// End at the end of this month or day, or at this time [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = boundary)]
    to: Option<Boundary>,
    /// The time zone of months and days, such as Europe/Vienna
    #[arg(long, value_name = "NAME", default_value = "UTC", value_parser = time_zone)]
    time_zone: TimeZone,
    /// The format: csv or json [default: csv, with --json json]
    #[arg(long, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Csv,
    Json,
}

/// The beginning or the end of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Boundary {
    /// The month that begins on this day.
    Month(Date),
    Day(Date),
    Moment(Timestamp),
}

impl Boundary {
    fn begin(self, zone: &TimeZone) -> Result<Timestamp, jiff::Error> {
        match self {
            Self::Month(day) | Self::Day(day) => Ok(day.to_zoned(zone.clone())?.timestamp()),
            Self::Moment(moment) => Ok(moment),
        }
    }

    fn end(self, zone: &TimeZone) -> Result<Timestamp, jiff::Error> {
        let next = match self {
            Self::Month(day) => day.checked_add(1.month())?,
            Self::Day(day) => day.tomorrow()?,
            Self::Moment(moment) => return Ok(moment),
        };
        Ok(next.to_zoned(zone.clone())?.timestamp())
    }
}

/// Parses a month, a day or a time.
fn boundary(text: &str) -> Result<Boundary, String> {
    let day = |text: &str| text.parse::<Date>().ok().filter(|it| it.to_string() == text);
    if let Some(day) = day(text) {
        return Ok(Boundary::Day(day));
    }
    if let Some(first) = day(&format!("{text}-01")) {
        return Ok(Boundary::Month(first));
    }
    text.parse().map(Boundary::Moment).map_err(|_| {
        "expected a month, a day or a time: 2026-11, 2026-11-21 or 2026-11-21T08:48:56Z".to_owned()
    })
}

/// Whether a period ends before it begins. A month ends before the next one begins, although the
/// same moment stands for both.
fn is_reversed(
    from: Option<Boundary>,
    to: Option<Boundary>,
    zone: &TimeZone,
) -> Result<bool, jiff::Error> {
    let (Some(from), Some(to)) = (from, to) else { return Ok(false) };
    let begin = from.begin(zone)?;
    Ok(begin > to.begin(zone)? && begin >= to.end(zone)?)
}

fn time_zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name)
        .map_err(|_| "expected the name of a time zone, such as UTC or Europe/Vienna".to_owned())
}

impl ExportArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let too_far = |_| CliError::WrongUsage("that time is too far away");
        let zone = &self.time_zone;
        if is_reversed(self.from, self.to, zone).map_err(too_far)? {
            return Err(CliError::WrongUsage("--to must not be before --from"));
        }
        let from = self.from.map(|it| it.begin(zone)).transpose().map_err(too_far)?;
        let to = self.to.map(|it| it.end(zone)).transpose().map_err(too_far)?;
        let format = match self.format {
            Some(Format::Json) => "json",
            None if context.is_json => "json",
            _ => "csv",
        };
        let mut path = format!("/api/v1/export?format={format}");
        for (name, moment) in [("from", from), ("to", to)] {
            if let Some(moment) = moment {
                path.push_str(&format!("&{name}={moment}"));
            }
        }
        let request = Request { method: Method::GET, path, body: None };
        let mut service = context.service(Stores::Wallet).await?;
        // In a terminal, the rows themselves show that work is going on.
        let _waiting = (!io::stdout().is_terminal()).then(|| context.wait("reading movements"));
        let mut out = BufWriter::new(io::stdout().lock());
        service.stream(&request, |bytes| out.write_all(bytes)).await?;
        if format == "json" {
            out.write_all(b"\n")?;
        }
        Ok(out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning and the end of the period that a text stands for.
    fn bounds(text: &str, zone: &str) -> [String; 2] {
        let (boundary, zone) = (boundary(text).unwrap(), time_zone(zone).unwrap());
        [boundary.begin(&zone), boundary.end(&zone)].map(|moment| moment.unwrap().to_string())
    }

    #[test]
    fn months_and_days_begin_and_end_where_their_time_zone_says() {
        for (text, zone, expected) in [
            ("2026-11", "UTC", ["2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"]),
            ("2026-12", "UTC", ["2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"]),
            ("2028-02", "UTC", ["2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"]),
            // The clocks change in this month, and on this day.
            ("2026-10", "Europe/Vienna", ["2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"]),
            ("2026-10-25", "Europe/Vienna", ["2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"]),
            ("2026-11-21", "Asia/Kolkata", ["2026-11-20T18:30:00Z", "2026-11-21T18:30:00Z"]),
            // This day begins at one o'clock.
            ("2026-09-06", "America/Santiago", ["2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"]),
            ("2026-11-21T08:48:56+01:00", "UTC", ["2026-11-21T07:48:56Z"; 2]),
        ] {
            assert_eq!(bounds(text, zone), expected, "{text} in {zone}");
        }
    }

    #[test]
    fn a_period_does_not_end_before_it_begins() {
        for (from, to, expected) in [
            ("2026-11", "2026-11", false),
            ("2026-11-21", "2026-11", false),
            ("2026-11", "2026-11-01", false),
            ("2026-11-30T23:59:59Z", "2026-11", false),
            ("2026-11-21T08:48:56Z", "2026-11-21T08:48:56Z", false),
            ("2026-12", "2026-11", true),
            ("2026-12-01T00:00:00Z", "2026-11", true),
            ("2026-11-22", "2026-11-21", true),
            ("2026-11-21T08:48:57Z", "2026-11-21T08:48:56Z", true),
        ] {
            let bounds = [from, to].map(|text| Some(boundary(text).unwrap()));
            let is_reversed = is_reversed(bounds[0], bounds[1], &TimeZone::UTC);
            assert_eq!(is_reversed.unwrap(), expected, "{from} to {to}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "2026", "2026-13", "2026-11-31", "2026-1", "20261121", "yesterday"] {
            assert!(boundary(text).is_err(), "{text}");
        }
        assert!(time_zone("Europe/Nowhere").is_err());
    }
}
