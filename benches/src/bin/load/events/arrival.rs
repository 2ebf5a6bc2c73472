use std::time::Instant;

/// An event that arrived over a stream or at an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) number: u64,
    pub(crate) at: Instant,
}

/// The number of an event, if the text holds one.
pub(crate) fn number(event: &[u8]) -> Option<u64> {
    let digits = &event[find(event, b"\"number\":")? + b"\"number\":".len()..];
    let digits = digits.iter().take_while(|digit| digit.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

pub(crate) fn find(text: &[u8], sought: &[u8]) -> Option<usize> {
    text.windows(sought.len()).position(|window| window == sought)
}
