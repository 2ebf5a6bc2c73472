use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time in a few characters: `28 Nov 11:09`, or in another year than `now` `28 Nov 2027`.
pub(crate) fn short_time(moment: Timestamp, now: Timestamp, zone: TimeZone) -> String {
    let (moment, now) = (moment.to_zoned(zone.clone()), now.to_zoned(zone));
    let form = if moment.year() == now.year() { "%e %b %H:%M" } else { "%e %b %Y" };
    moment.strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_time_has_the_clock_or_the_year() {
        let short = |moment: &str, zone| {
            let now = "2026-11-28T11:10:00Z".parse().unwrap();
            short_time(moment.parse().unwrap(), now, TimeZone::get(zone).unwrap())
        };
        assert_eq!(short("2026-11-28T11:09:58.123456Z", "UTC"), "28 Nov 11:09");
        assert_eq!(short("2026-01-03T23:30:00Z", "Europe/Vienna"), " 4 Jan 00:30");
        assert_eq!(short("2027-11-28T11:09:58Z", "UTC"), "28 Nov 2027");
        assert_eq!(short("2026-12-31T23:30:00Z", "Europe/Vienna"), " 1 Jan 2027");
    }
}
