//! A fast decoder of hexadecimal digits: a block has millions of them.

/// The value of each byte as a digit, or [`NO_DIGIT`]. A table needs no branches. A processor would
/// mispredict a branch for every third digit.
const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// This value has bits that no digit has.
const NO_DIGIT: u8 = 0xff;

/// Decodes pairs of digits and appends the bytes to `out`. Answers whether all were digits. If not,
/// the appended bytes are meaningless.
pub(crate) fn decode(digits: &[u8], out: &mut Vec<u8>) -> bool {
    let (pairs, rest) = digits.as_chunks::<2>();
    let mut seen = 0;
    out.extend(pairs.iter().map(|pair| {
        let [high, low] = pair.map(|digit| VALUES[usize::from(digit)]);
        seen |= high | low;
        high << 4 | low
    }));
    rest.is_empty() && seen < 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_and_nothing_else_is() {
        let bytes: Vec<u8> = (0..=255).collect();
        for digits in [hex::encode(&bytes), hex::encode_upper(&bytes)] {
            let mut out = vec![7];
            assert!(decode(digits.as_bytes(), &mut out));
            assert_eq!((out[0], &out[1..]), (7, &*bytes));
        }
        for byte in bytes {
            for pair in [[byte, b'0'], [b'0', byte]] {
                assert_eq!(decode(&pair, &mut Vec::new()), byte.is_ascii_hexdigit(), "{pair:?}");
            }
        }
        assert!(!decode(b"123", &mut Vec::new()));
    }
}
