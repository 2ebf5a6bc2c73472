//! Strings and hexadecimal numbers as nodes read them.

use std::borrow::Cow;

use bsv_tx::PublicKey;

/// Decodes a JSON string, given without its quotation marks, as nodes do. Answers `None` if nodes
/// refuse it. Nodes accept overlong encodings and numbers beyond Unicode, and they allow ASCII
/// characters between the two halves of a surrogate pair.
pub(super) fn decode(content: &[u8]) -> Option<Cow<'_, [u8]>> {
    if content.is_ascii() && !content.contains(&b'\\') {
        return Some(Cow::Borrowed(content));
    }
    let mut text = Text::default();
    let mut bytes = content.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            text.byte(byte)?;
            continue;
        }
        match bytes.next()? {
            plain @ (b'"' | b'\\' | b'/') => text.byte(plain)?,
            b'b' => text.byte(8)?,
            b't' => text.byte(b'\t')?,
            b'n' => text.byte(b'\n')?,
            b'f' => text.byte(0xc)?,
            b'r' => text.byte(b'\r')?,
            b'u' => {
                let mut unit = 0;
                for _ in 0..4 {
                    unit = unit << 4 | char::from(bytes.next()?).to_digit(16)?;
                }
                text.unit(unit)?;
            }
            _ => return None,
        }
    }
    text.end().map(Cow::Owned)
}

/// A string that is being decoded.
#[derive(Default)]
struct Text {
    out: Vec<u8>,
    /// The value of the current character so far.
    number: u32,
    /// How many bits of the value the missing bytes hold.
    missing: u32,
    /// The first half of a surrogate pair.
    half: Option<u32>,
}

impl Text {
    fn byte(&mut self, byte: u8) -> Option<()> {
        if self.missing > 0 {
            let bits = Some(byte & 0x3f).filter(|_| byte & 0xc0 == 0x80)?;
            self.missing -= 6;
            self.number |= u32::from(bits) << self.missing;
            return if self.missing == 0 { self.unit(self.number) } else { Some(()) };
        }
        let (bits, missing) = match byte {
            0..0x80 => {
                self.out.push(byte);
                return Some(());
            }
            0xc0..0xe0 => (byte & 0x1f, 6),
            0xe0..0xf0 => (byte & 0x0f, 12),
            0xf0..0xf8 => (byte & 0x07, 18),
            _ => return None,
        };
        self.missing = missing;
        self.number = u32::from(bits) << missing;
        Some(())
    }

    fn unit(&mut self, unit: u32) -> Option<()> {
        if self.missing > 0 {
            return None;
        }
        match (unit, self.half.take()) {
            (0xd800..0xdc00, None) => self.half = Some(unit),
            (0xdc00..0xe000, Some(half)) => {
                // Nodes combine the halves with "or" instead of addition, and so lose a bit of high
                // numbers.
                self.append(0x10000 | (half - 0xd800) << 10 | (unit - 0xdc00));
            }
            (0xd800..0xe000, _) | (_, Some(_)) => return None,
            (unit, None) => self.append(unit),
        }
        Some(())
    }

    fn append(&mut self, number: u32) {
        let low = |shift: u32| (number >> shift & 0x3f) as u8 | 0x80;
        let high = |shift: u32| (number >> shift) as u8;
        match number {
            0..0x80 => self.out.push(high(0)),
            0x80..0x800 => self.out.extend([high(6) | 0xc0, low(0)]),
            0x800..0x1_0000 => self.out.extend([high(12) | 0xe0, low(6), low(0)]),
            _ => self.out.extend([high(18) | 0xf0, low(12), low(6), low(0)]),
        }
    }

    fn end(self) -> Option<Vec<u8>> {
        (self.missing == 0 && self.half.is_none()).then_some(self.out)
    }
}

/// The part of a text before its first NUL. Nodes pass some texts on as C strings.
pub(super) fn before_nul(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The bytes of a key or signature in a document of generation 0.2. Nodes skip white space between
/// bytes, and stop at the first character that is not hexadecimal.
pub(super) fn hex_of_key(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0xb;
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut rest = text;
    loop {
        let spaces = rest.iter().take_while(|byte| is_space(byte)).count();
        let [high, low, after @ ..] = &rest[spaces..] else { return bytes };
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else { return bytes };
        bytes.push(high << 4 | low);
        rest = after;
    }
}

/// The bytes that the previous miner id signs in documents of generation 0.2. Nodes read nothing
/// from a text with other characters than `0` to `9` and `a` to `f`, and ignore a last odd digit.
pub(super) fn hex_of_signed(text: &[u8]) -> Vec<u8> {
    if !text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Vec::new();
    }
    hex_of_key(text)
}

/// Parses a key as nodes do in a document of generation 0.2.
pub(super) fn public_key(text: &[u8]) -> Option<PublicKey> {
    PublicKey::from_bytes(&hex_of_key(text).try_into().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_as_nodes_read_them() {
        for (content, text) in [
            (&b"abc"[..], Some(&b"abc"[..])),
            (br#"\"\\\/\b\t\n\f\r\u00E9"#, Some(b"\"\\/\x08\t\n\x0c\r\xc3\xa9")),
            ("é€😀".as_bytes(), Some("é€😀".as_bytes())),
            (br"\ud83d\ude00", Some("😀".as_bytes())),
            (br"\ud83da\ude00", Some("a😀".as_bytes())),
            (br"\ud840\udc00", Some("\u{10000}".as_bytes())),
            (b"\xed\xa0\xbd\xed\xb8\x80", Some("😀".as_bytes())),
            (b"\xc1\xa1", Some(b"a")),
            (b"\xe0\x81\xa1", Some(b"a")),
            (b"\xf0\x80\x81\xa1", Some(b"a")),
            (b"\xf4\x90\x80\x80", Some(b"\xf4\x90\x80\x80")),
            (b"\xf7\xbf\xbf\xbf", Some(b"\xf7\xbf\xbf\xbf")),
            (br"\ud800", None),
            (br"\ud800\ud800\udc00", None),
            (br"\udc00", None),
            (br"\ud800\u0041", None),
            (b"\\ud800\xc3\xa9", None),
            (b"\xc3", None),
            (b"\xc3a", None),
            (b"\xc3\\u0041", None),
            (b"\x80", None),
            (b"\xf8\x80\x80\x80\x80", None),
            (br"\u12", None),
            (br"\a", None),
            (b"\\", None),
        ] {
            assert_eq!(decode(content).as_deref(), text, "{content:?}");
        }
    }

    #[test]
    fn hexadecimal_numbers_are_read_as_nodes_read_them() {
        for (text, of_key, of_signed) in [
            ("", "", ""),
            ("01af", "01af", "01af"),
            ("01AF", "01af", ""),
            ("01a", "01", "01"),
            (" 01 \t0b\n2", "010b", ""),
            ("0 1", "", ""),
            ("01xx02", "01", ""),
            ("01\0 02", "01", ""),
        ] {
            assert_eq!(hex::encode(hex_of_key(text.as_bytes())), of_key, "{text:?}");
            assert_eq!(hex::encode(hex_of_signed(text.as_bytes())), of_signed, "{text:?}");
        }
        assert_eq!(before_nul(b"ab\0c\0"), b"ab");
        assert_eq!(before_nul(b"ab"), b"ab");
        assert_eq!(before_nul(b"\0"), b"");
    }
}
