//! Reads and writes times in the forms of the wallet specification, without the code under test.

use std::time::SystemTime;

pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const HOUR: i64 = 3600 * SECOND;

/// The time in microseconds since 1970.
pub(crate) fn now() -> i64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros().try_into().unwrap()
}

/// Reads a time such as `2026-11-21T08:48:56.767571Z`, as microseconds since 1970.
///
/// # Panics
/// If the text has any other form.
pub(crate) fn micros(text: &str) -> i64 {
    assert!(has_form(text, "0000-00-00T00:00:00.000000Z"), "{text}");
    let number = |start: usize, end: usize| text[start..end].parse::<i64>().unwrap();
    let days = days(number(0, 4), number(5, 7), number(8, 10));
    let seconds = ((days * 24 + number(11, 13)) * 60 + number(14, 16)) * 60 + number(17, 19);
    seconds * SECOND + number(20, 26)
}

/// Writes microseconds since 1970 as a time such as `2026-11-21T08:48:56.767571Z`.
pub(crate) fn text(micros: i64) -> String {
    let (seconds, fraction) = (micros.div_euclid(SECOND), micros.rem_euclid(SECOND));
    let (day, second) = (seconds.div_euclid(86400), seconds.rem_euclid(86400));
    let mut year = 1970 + day.div_euclid(366);
    while days(year + 1, 1, 1) <= day {
        year += 1;
    }
    let month = (1..=12).rev().find(|month| days(year, *month, 1) <= day).unwrap();
    let of_month = day - days(year, month, 1) + 1;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let second = second % 60;
    format!("{year:04}-{month:02}-{of_month:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}Z")
}

/// Shortens a time such as `…56.767571Z` to `…56Z`.
pub(crate) fn without_fraction(text: &str) -> String {
    assert!(has_form(text, "0000-00-00T00:00:00.000000Z"), "{text}");
    format!("{}Z", &text[..19])
}

/// Whether `text` has the form `form`, in which each zero stands for any digit.
fn has_form(text: &str, form: &str) -> bool {
    text.len() == form.len()
        && text.bytes().zip(form.bytes()).all(|(c, form)| match form {
            b'0' => c.is_ascii_digit(),
            _ => c == form,
        })
}

/// The number of days from 1970-01-01 to a day.
fn days(year: i64, month: i64, day: i64) -> i64 {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let leap_days = |year: i64| year / 4 - year / 100 + year / 400;
    let month = usize::try_from(month).unwrap();
    (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969)
        + BEFORE[month - 1]
        + i64::from(is_leap && month > 2)
        + day
        - 1
}

#[test]
fn times_are_read_and_written() {
    for (written, value) in [
        ("1970-01-01T00:00:00.000000Z", 0),
        ("1970-12-31T23:59:59.999999Z", 31_536_000 * SECOND - 1),
        ("2000-02-29T00:00:00.000001Z", 951_782_400 * SECOND + 1),
        ("2026-11-21T08:48:56.767571Z", 1_795_250_936_767_571),
        ("2100-03-01T00:00:00.000000Z", 4_107_542_400 * SECOND),
        ("9999-12-31T23:59:59.000000Z", 253_402_300_799 * SECOND),
    ] {
        assert_eq!(micros(written), value);
        assert_eq!(text(value), written);
    }
}
