use std::fmt;
use std::str::FromStr;

/// The name of a log of events: 8 hexadecimal digits. A new wallet chooses it at random, and so
/// does a restored backup. The number of an event identifies the event only together with this
/// name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogName([u8; 4]);

impl LogName {
    /// A random name.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 4];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The name of these bytes.
    pub const fn from_bytes(bytes: [u8; 4]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn to_bytes(self) -> [u8; 4] {
        self.0
    }
}

impl fmt::Display for LogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl fmt::Debug for LogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogName({self})")
    }
}

/// A text is not the name of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 8 hexadecimal digits in small letters")]
pub struct LogNameParseError;

impl FromStr for LogName {
    type Err = LogNameParseError;

    fn from_str(text: &str) -> Result<Self, LogNameParseError> {
        let is_digit = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 8 || !text.bytes().all(is_digit) {
            return Err(LogNameParseError);
        }
        let number = u32::from_str_radix(text, 16).map_err(|_| LogNameParseError)?;
        Ok(Self(number.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written_and_other_texts_are_refused() {
        let name = LogName::from_bytes([0x00, 0x9a, 0x1c, 0x02]);
        assert_eq!(name.to_string(), "009a1c02");
        assert_eq!("009a1c02".parse(), Ok(name));
        for text in ["", "9a1c02", "009A1C02", "+09a1c02", "009a1c0g", "009a1c022", "0x9a1c02"] {
            assert_eq!(text.parse::<LogName>(), Err(LogNameParseError), "{text}");
        }
    }
}
