use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use jiff::fmt::temporal::DateTimePrinter;
use minicbor::{Decode, Decoder, Encode};
use serde::{Serialize, Serializer};
use thiserror::Error;

/// A moment from 1970 until the end of the year 9999, in whole microseconds.
///
/// It is written as the wallet specification shows it: `2026-11-21T08:48:56.767571Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode)]
#[cbor(transparent)]
pub struct Timestamp(#[n(0)] u64);

impl<'b, C> Decode<'b, C> for Timestamp {
    fn decode(decoder: &mut Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        let time = Self(decoder.u64()?);
        let is_late = || minicbor::decode::Error::message("a time after the last moment");
        (time <= Self::MAX).then_some(time).ok_or_else(is_late)
    }
}

/// A text is not a time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("must be a time in RFC 3339 form, such as 2026-11-21T08:48:56Z")]
pub struct TimestampParseError;

/// A text is not a time that can be stored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StorableTimeError {
    /// It is not a time.
    #[error(transparent)]
    NotATime(#[from] TimestampParseError),
    /// It is after the last moment.
    #[error("must not be after {last}, the last time that can be stored", last = Timestamp::MAX)]
    TooLate,
}

impl Timestamp {
    /// The last moment. Later times become this one.
    pub const MAX: Self = Self(253_402_207_199_999_999);

    /// What the system's clock shows.
    pub fn of_system() -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self::from_micros(
            u64::try_from(since_1970.unwrap_or_default().as_micros()).unwrap_or(u64::MAX),
        )
    }

    /// Reads a time as [`from_str`](FromStr::from_str) does, except that a time after the last
    /// moment is an error.
    pub fn parse_storable(text: &str) -> Result<Self, StorableTimeError> {
        Self::read(text)?.ok_or(StorableTimeError::TooLate)
    }

    /// Reads a time in RFC 3339 form. `None` stands for a time after the last moment.
    fn read(text: &str) -> Result<Option<Self>, TimestampParseError> {
        if !is_rfc3339(text.as_bytes()) {
            return Err(TimestampParseError);
        }
        if let Ok(timestamp) = text.parse::<jiff::Timestamp>() {
            let micros = u64::try_from(timestamp.as_microsecond()).unwrap_or(0);
            return Ok(Some(Self(micros)).filter(|time| *time <= Self::MAX));
        }
        // The library's last moment is a day before the last one of the RFC 3339 form. To check the
        // form of a time on that day, the year before is read instead.
        let year_before = text.strip_prefix("9999").map(|rest| format!("9998{rest}"));
        match year_before.map(|text| text.parse::<jiff::Timestamp>()) {
            Some(Ok(_)) => Ok(None),
            _ => Err(TimestampParseError),
        }
    }

    /// The moment this many microseconds after the beginning of 1970 (UTC).
    pub fn from_micros(micros: u64) -> Self {
        Self(micros.min(Self::MAX.0))
    }

    /// Microseconds since the beginning of 1970 (UTC).
    pub fn as_micros(self) -> u64 {
        self.0
    }

    /// A later moment.
    pub fn after(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self::from_micros(self.0.saturating_add(micros))
    }

    /// An earlier moment.
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)))
    }

    /// The time without fractions of a second: `2026-11-21T08:48:56Z`.
    pub(crate) fn whole_seconds(self) -> TimeText {
        const SECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(0));
        self.text(&SECONDS)
    }

    fn text(self, printer: &DateTimePrinter) -> TimeText {
        let micros = i64::try_from(self.0).expect("the last moment is within bounds");
        let timestamp =
            jiff::Timestamp::from_microsecond(micros).expect("the last moment is within bounds");
        let mut text = TimeText { bytes: [0; 27], len: 0 };
        printer.print_timestamp(&timestamp, &mut text).expect("there is room for microseconds");
        text
    }
}

/// A time as text. Each invoice in an answer has three of them, so they need no allocation.
pub(crate) struct TimeText {
    bytes: [u8; 27],
    len: usize,
}

impl TimeText {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).expect("it was made of strings")
    }
}

impl jiff::fmt::Write for TimeText {
    fn write_str(&mut self, text: &str) -> Result<(), jiff::Error> {
        let rest = self.bytes[self.len..].get_mut(..text.len());
        rest.ok_or_else(|| jiff::Error::from_args(format_args!("the text is too long")))?
            .copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

impl Serialize for TimeText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text(&MICROSECONDS).serialize(serializer)
    }
}

const MICROSECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text(&MICROSECONDS).as_str())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({self})")
    }
}

impl FromStr for Timestamp {
    type Err = TimestampParseError;

    /// Reads a time in RFC 3339 form, with any offset. Digits beyond microseconds are cut off. A
    /// leap second becomes the second before it. A time before the first moment or after the last
    /// one becomes that moment.
    fn from_str(text: &str) -> Result<Self, TimestampParseError> {
        Ok(Self::read(text)?.unwrap_or(Self::MAX))
    }
}

/// Whether the text has the form of RFC 3339, section 5.6. The library that reads it also accepts
/// other forms.
fn is_rfc3339(text: &[u8]) -> bool {
    const FORM: &[u8; 19] = b"0000-00-00T00:00:00";
    let Some((head, tail)) = text.split_first_chunk::<19>() else { return false };
    let is_head = head.iter().zip(FORM).all(|(c, form)| match form {
        b'0' => c.is_ascii_digit(),
        form => c.eq_ignore_ascii_case(form),
    });
    let (fraction, offset) = match tail.strip_prefix(b".") {
        Some(tail) => tail.split_at(tail.iter().take_while(|c| c.is_ascii_digit()).count()),
        None => (&b"0"[..], tail),
    };
    let is_offset = match offset {
        b"Z" | b"z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            [h1, h2, m1, m2].iter().all(|c| c.is_ascii_digit())
                && (h1, h2) <= (&b'2', &b'3')
                && *m1 <= b'5'
        }
        _ => false,
    };
    is_head && (1..=9).contains(&fraction.len()) && is_offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_specification_shows_them() {
        let time = Timestamp::from_micros(1_795_250_936_767_571);
        assert_eq!(time.to_string(), "2026-11-21T08:48:56.767571Z");
        assert_eq!(time.whole_seconds().as_str(), "2026-11-21T08:48:56Z");
        let whole = Timestamp::from_micros(1_795_250_936_000_000);
        assert_eq!(whole.to_string(), "2026-11-21T08:48:56.000000Z");
        let last = Timestamp::from_micros(u64::MAX);
        assert_eq!((last, last.after(Duration::MAX)), (Timestamp::MAX, Timestamp::MAX));
        assert_eq!(last.to_string().parse(), Ok(Timestamp::MAX));
    }

    #[test]
    fn times_of_any_offset_are_read() {
        for (text, utc) in [
            ("2026-11-21T08:48:56Z", "2026-11-21T08:48:56.000000Z"),
            ("2026-11-21t08:48:56.5z", "2026-11-21T08:48:56.500000Z"),
            ("2026-11-21T08:48:56.767571999Z", "2026-11-21T08:48:56.767571Z"),
            ("2026-11-21T08:48:56+05:30", "2026-11-21T03:18:56.000000Z"),
            ("2026-11-21T08:48:56-11:00", "2026-11-21T19:48:56.000000Z"),
            ("2026-11-21T00:00:00+00:00", "2026-11-21T00:00:00.000000Z"),
            ("2026-11-21T00:00:00-00:00", "2026-11-21T00:00:00.000000Z"),
            ("2026-12-31T23:59:60Z", "2026-12-31T23:59:59.000000Z"),
            ("2028-02-29T00:00:00Z", "2028-02-29T00:00:00.000000Z"),
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"),
            ("1969-12-31T23:59:59Z", "1970-01-01T00:00:00.000000Z"),
            ("0000-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"),
            ("9999-12-31T23:59:59Z", "9999-12-30T21:59:59.999999Z"),
            ("9999-12-31T23:59:60-23:59", "9999-12-30T21:59:59.999999Z"),
        ] {
            let read: Timestamp = text.parse().unwrap();
            assert_eq!(read.to_string(), utc, "{text}");
        }
    }

    #[test]
    fn a_time_that_cannot_be_stored_is_refused_if_it_would_be_stored() {
        let last = Timestamp::MAX.to_string();
        assert_eq!(Timestamp::parse_storable(&last), Ok(Timestamp::MAX));
        for later in [
            "9999-12-30T22:00:00Z",
            "9999-12-30T22:00:01Z",
            "9999-12-31T23:59:59Z",
            "9999-12-30T21:59:59-00:01",
        ] {
            let error = Timestamp::parse_storable(later).unwrap_err();
            assert_eq!(error, StorableTimeError::TooLate, "{later}");
            assert!(error.to_string().contains(&last), "{error}");
            assert_eq!(later.parse(), Ok(Timestamp::MAX));
        }
        let error = Timestamp::parse_storable("tomorrow").unwrap_err();
        assert_eq!(error, StorableTimeError::NotATime(TimestampParseError));
    }

    #[test]
    fn a_text_that_is_not_a_time_in_rfc_3339_form_is_refused() {
        for text in [
            "",
            "tomorrow",
            "2026-11-21",
            "2026-11-21T08:48:56",
            "2026-11-21T08:48Z",
            "2026-11-21 08:48:56Z",
            "2026-11-21T08:48:56.Z",
            "2026-11-21T08:48:56,5Z",
            "2026-11-21T08:48:56.1234567890Z",
            "2026-11-21T08:48:56+05",
            "2026-11-21T08:48:56+0530",
            "2026-11-21T08:48:56+05:60",
            "2026-11-21T08:48:56Z[Europe/Vienna]",
            "2026-11-21T24:00:00Z",
            "2026-11-21T08:48:61Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "+002026-11-21T08:48:56Z",
            "9999-12-32T23:59:59Z",
            "9999-12-31T23:59:59+24:00",
            "20261121T084856Z",
            " 2026-11-21T08:48:56Z",
            "2026-11-21T08:48:56Zé",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(TimestampParseError), "{text}");
        }
    }
}
