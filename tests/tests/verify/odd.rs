//! Odd documents: valid ones with random changes in a few places.

use bsv_tests::Dice;
use bsv_tx::Script;
use bsv_tx::opcode::OP_RETURN;

/// A text that is JSON, or almost JSON.
#[derive(Clone)]
pub(crate) enum Json {
    /// Text that is written as it stands.
    Raw(Vec<u8>),
    Object(Vec<(Vec<u8>, Json)>),
    Array(Vec<Json>),
}

impl Json {
    pub(crate) fn raw(text: impl AsRef<[u8]>) -> Self {
        Self::Raw(text.as_ref().to_vec())
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::raw(format!("\"{text}\""))
    }

    pub(crate) fn object<const N: usize>(members: [(&str, Json); N]) -> Self {
        let name = |name: &str| format!("\"{name}\"").into_bytes();
        Self::Object(members.into_iter().map(|(key, value)| (name(key), value)).collect())
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut separator = b"".as_slice();
        match self {
            Self::Raw(text) => out.extend(text),
            Self::Object(members) => {
                out.push(b'{');
                for (name, value) in members {
                    out.extend(separator);
                    out.extend(name);
                    out.push(b':');
                    value.write(out);
                    separator = b",";
                }
                out.push(b'}');
            }
            Self::Array(items) => {
                out.push(b'[');
                for item in items {
                    out.extend(separator);
                    item.write(out);
                    separator = b",";
                }
                out.push(b']');
            }
        }
    }

    /// The text of the string at this path of members.
    pub(crate) fn string(&self, path: &[&str]) -> Option<&[u8]> {
        let Some((first, rest)) = path.split_first() else {
            let Self::Raw(text) = self else { return None };
            return text.strip_prefix(b"\"")?.strip_suffix(b"\"");
        };
        let Self::Object(members) = self else { return None };
        let name = format!("\"{first}\"").into_bytes();
        members.iter().find(|(key, _)| *key == name)?.1.string(rest)
    }

    /// Replaces each raw text `from` by the string `to`.
    pub(crate) fn fill(&mut self, from: &str, to: &str) {
        match self {
            Self::Raw(text) if *text == from.as_bytes() => *text = format!("\"{to}\"").into_bytes(),
            Self::Raw(_) => {}
            Self::Object(members) => members.iter_mut().for_each(|(_, value)| value.fill(from, to)),
            Self::Array(items) => items.iter_mut().for_each(|item| item.fill(from, to)),
        }
    }

    /// Makes a random change at a random place.
    pub(crate) fn spoil(&mut self, dice: &mut Dice) {
        match self {
            Self::Object(members) if members.is_empty() || dice.roll(20) == 0 => {
                *self = Self::Raw(dice.pick(&VALUES).to_vec());
            }
            Self::Array(items) if items.is_empty() || dice.roll(8) == 0 => {
                *self = Self::Raw(dice.pick(&VALUES).to_vec());
            }
            Self::Raw(text) => *text = respelled(text, dice),
            Self::Array(items) => {
                let place = dice.roll(items.len());
                match dice.roll(6) {
                    0 => items.push(items[place].clone()),
                    1 => drop(items.remove(place)),
                    _ => items[place].spoil(dice),
                }
            }
            Self::Object(members) => {
                let place = dice.roll(members.len());
                match dice.roll(16) {
                    0 => drop(members.remove(place)),
                    1 => {
                        let other = dice.roll(members.len());
                        members.swap(place, other);
                    }
                    2 => members.push(members[place].clone()),
                    3 => {
                        let mut spoilt = members[place].clone();
                        spoilt.1.spoil(dice);
                        let at = dice.roll(members.len() + 1);
                        members.insert(at, spoilt);
                    }
                    4 => members[place].0 = respelled(&members[place].0, dice),
                    5 => {
                        let member = (b"\"x\"".to_vec(), Self::Raw(many(dice)));
                        members.insert(dice.roll(members.len() + 1), member);
                    }
                    _ => members[place].1.spoil(dice),
                }
            }
        }
    }
}

/// Values of all types.
const VALUES: [&[u8]; 14] = [
    b"null",
    b"true",
    b"false",
    b"0",
    b"1",
    b"-1",
    b"1.5",
    b"\"\"",
    b"\"0.2\"",
    b"\"0.3\"",
    b"[]",
    b"{}",
    b"[{}]",
    b"\"\\ud800\"",
];

/// Texts that can stand in a string.
const TEXTS: [&[u8]; 24] = [
    b"\\u0041",
    b"\\/",
    b"/",
    b"\\n",
    b"\\u000a",
    b"\\ud83d\\ude00",
    b"\\uD83D\\uDE00",
    b"\\ud83d",
    b"\\ude00",
    b"\\ud83d-\\ude00",
    b"\\ud840\\udc00",
    b"\\u0000",
    b"\\u007F",
    b"\x7f",
    b"\\x",
    b"\\u12",
    "é".as_bytes(),
    "\u{10ffff}".as_bytes(),
    b"\xc1\xa1",
    b"\xf4\x90\x80\x80",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\t",
];

/// Many arrays or objects, side by side or nested.
fn many(dice: &mut Dice) -> Vec<u8> {
    const COUNTS: [usize; 8] = [1, 60, 70, 130, 2045, 2048, 2049, 2060];
    let count = COUNTS[dice.roll(COUNTS.len())];
    match dice.roll(3) {
        0 => [b"[".repeat(count), b"]".repeat(count)].concat(),
        1 => [b"{\"\":".repeat(count), b"1".to_vec(), b"}".repeat(count)].concat(),
        _ => [&b"["[..], &b"{},".repeat(count), b"0]"].concat(),
    }
}

/// A value other than an array or an object: in another spelling, or replaced by another value.
fn respelled(text: &[u8], dice: &mut Dice) -> Vec<u8> {
    match text {
        _ if dice.roll(6) == 0 => dice.pick(&VALUES).to_vec(),
        [b'"', inner @ .., b'"'] => [b"\"", &*respelled_text(inner, dice), b"\""].concat(),
        [b'-' | b'0'..=b'9', ..] => respelled_number(text, dice),
        _ => dice.pick(&VALUES).to_vec(),
    }
}

fn respelled_number(text: &[u8], dice: &mut Dice) -> Vec<u8> {
    const ENDS: [&[u8]; 8] = [b".0", b"e0", b"E+0", b"0", b".", b"e", b" ", b".5"];
    const NUMBERS: [&[u8]; 8] = [
        b"2147483647",
        b"2147483648",
        b"-2147483648",
        b"-2147483649",
        b"4294967296",
        b"18446744073709551616",
        b"-0",
        b"01",
    ];
    match dice.roll(5) {
        0 => dice.pick(&NUMBERS).to_vec(),
        1 => [b"-", text].concat(),
        // The number as a string.
        2 => [b"\"", text, b"\""].concat(),
        _ => [text, dice.pick(&ENDS)].concat(),
    }
}

fn respelled_text(inner: &[u8], dice: &mut Dice) -> Vec<u8> {
    let place = dice.roll(inner.len() + 1);
    let (before, after) = inner.split_at(place);
    match dice.roll(9) {
        0 => inner.to_ascii_uppercase(),
        1 => match inner.split_last() {
            Some((_, shorter)) => shorter.to_vec(),
            None => Vec::new(),
        },
        2 => [inner, b"0"].concat(),
        3 => [inner, b"zz"].concat(),
        4 => [inner, b"\\u0000z"].concat(),
        5 => [before, b" ", after].concat(),
        6 => match after {
            // A character as its escape sequence.
            [byte @ b' '..=b'~', after @ ..] if *byte != b'\\' && !before.ends_with(b"\\") => {
                [before, format!("\\u{byte:04X}").as_bytes(), after].concat()
            }
            _ => [before, b"\\u0061", after].concat(),
        },
        _ => [before, dice.pick(&TEXTS), after].concat(),
    }
}

/// Makes a random change to the text of a document.
pub(crate) fn spoil_text(text: &mut Vec<u8>, dice: &mut Dice) {
    const ENDS: [&[u8]; 7] = [b" ", b"\n", b"x", b"}", b"{}", b"\0", b","];
    let place = dice.roll(text.len());
    match dice.roll(6) {
        0 => text.extend(dice.pick(&ENDS)),
        1 => drop(text.splice(0..0, dice.pick(&[" ", "\u{feff}", "[", "\t"]).bytes())),
        2 => drop(text.remove(place)),
        3 => {
            let brackets = [" ", ",", ":", "\"", "{", "]", "\\"];
            drop(text.splice(place..place, dice.pick(&brackets).bytes()));
        }
        _ => {
            // White space before a colon.
            let colon = text.iter().skip(place).position(|byte| *byte == b':').unwrap_or_default();
            text.insert(place + colon, b' ');
        }
    }
}

/// Makes a random change to the script outside the data that it pushes.
pub(crate) fn spoil_script(script: &Script, dice: &mut Dice) -> Script {
    let bytes = script.as_bytes();
    Script::from_bytes(match dice.roll(4) {
        0 => bytes[..bytes.len() - 1].to_vec(),
        1 => [bytes, &[0]].concat(),
        2 => [bytes, &[OP_RETURN]].concat(),
        _ => [&bytes[..7], &[0], &bytes[7..]].concat(),
    })
}
