//! Compares output with what a page shows. Some words of a page are names: ids, keys and hashes
//! that differ in each run. A name stands for the same word everywhere on the page.

use std::collections::HashMap;

/// The words that the names of a page stand for.
pub(super) type Names = HashMap<String, String>;

/// A part of a line on a page.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    /// This character itself.
    Text(char),
    /// `…` stands for anything.
    Any,
    /// Hexadecimal digits that are cut short.
    Digits,
    /// A time.
    Time,
    /// A number that depends on the machine.
    Count,
    /// A name, and whether it is hexadecimal.
    Name(String, bool),
}

/// Whether the printed lines match the lines of the page. A line `…` stands for any lines. New
/// names are added to `names`.
pub(super) fn matches(shown: &[String], printed: &[&str], names: &mut Names) -> bool {
    match (shown, printed) {
        ([], []) => true,
        ([first, rest @ ..], _) if first.trim() == "…" => (0..=printed.len())
            .any(|count| tried(names, |names| matches(rest, &printed[count..], names))),
        ([first, rest @ ..], [line, others @ ..]) => tried(names, |names| {
            let line: Vec<_> = line.trim_end().chars().collect();
            line_matches(&pieces(first.trim_end()), &line, names) && matches(rest, others, names)
        }),
        _ => false,
    }
}

/// Drops the names of a failed attempt.
fn tried(names: &mut Names, attempt: impl FnOnce(&mut Names) -> bool) -> bool {
    let mut own = names.clone();
    let succeeds = attempt(&mut own);
    if succeeds {
        *names = own;
    }
    succeeds
}

fn line_matches(shown: &[Piece], printed: &[char], names: &mut Names) -> bool {
    let [piece, rest @ ..] = shown else { return printed.is_empty() };
    let run = |is_part: fn(&char) -> bool| printed.iter().take_while(|c| is_part(c)).count();
    let length = match piece {
        Piece::Text(c) => usize::from(printed.first() == Some(c)),
        Piece::Any => {
            return (0..=printed.len())
                .any(|count| tried(names, |names| line_matches(rest, &printed[count..], names)));
        }
        Piece::Digits => run(char::is_ascii_hexdigit),
        Piece::Time => time_length(printed),
        Piece::Count => run(char::is_ascii_digit),
        Piece::Name(name, is_hex) => {
            let is_part =
                if *is_hex { char::is_ascii_hexdigit } else { char::is_ascii_alphanumeric };
            let length = run(is_part);
            let word: String = printed[..length].iter().collect();
            if length != name.len() || names.get(name).is_some_and(|known| *known != word) {
                return false;
            }
            names.insert(name.clone(), word);
            length
        }
    };
    length > 0 && line_matches(rest, &printed[length..], names)
}

fn pieces(shown: &str) -> Vec<Piece> {
    let text: Vec<_> = shown.chars().collect();
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let word = text[at..].iter().take_while(|c| c.is_ascii_alphanumeric()).count();
        let (piece, length) = match time_length(&text[at..]) {
            0 if text[at] == '…' => (Some(Piece::Any), 1),
            0 if word > 0 => word_piece(&text[at..], word),
            0 => (None, 1),
            length => (Some(Piece::Time), length),
        };
        match piece {
            Some(piece) => pieces.push(piece),
            None => pieces.extend(text[at..at + length].iter().map(|c| Piece::Text(*c))),
        }
        at += length;
    }
    pieces
}

/// The piece for a word of `length` characters, unless the word stands for itself, and the length
/// of the text that it covers.
fn word_piece(text: &[char], length: usize) -> (Option<Piece>, usize) {
    let word: String = text[..length].iter().collect();
    let after: String = text[length..].iter().take(6).collect();
    let has = |is: fn(&char) -> bool| text[..length].iter().any(is);
    let is_hex = text[..length].iter().all(|c| c.is_ascii_digit() || ('a'..='f').contains(c));
    let is_number = text[..length].iter().all(char::is_ascii_digit);
    if is_number && [" bytes", " keys", " ms"].iter().any(|unit| after.starts_with(unit)) {
        return (Some(Piece::Count), length);
    }
    if is_hex && (4..=8).contains(&length) && after.starts_with('…') {
        let end = text[length + 1..].iter().take_while(|c| c.is_ascii_hexdigit()).count();
        return (Some(Piece::Digits), length + 1 + end);
    }
    if is_hex && length >= 8 && !after.starts_with('…') {
        return (Some(Piece::Name(word, true)), length);
    }
    let is_mixed =
        has(char::is_ascii_digit) && has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase);
    if length == 12 && is_mixed {
        return (Some(Piece::Name(word, false)), length);
    }
    (None, length)
}

/// The length of the time that a text begins with, such as `2026-11-21T13:48:18.210377Z`; 0 if there is none.
fn time_length(text: &[char]) -> usize {
    const FORM: &str = "dddd-dd-ddTdd:dd:dd";
    let fits = |(form, c): (char, &char)| if form == 'd' { c.is_ascii_digit() } else { form == *c };
    if text.len() <= FORM.len() || !FORM.chars().zip(text).all(fits) {
        return 0;
    }
    let rest = &text[FORM.len()..];
    let fraction = rest.iter().take_while(|c| **c == '.' || c.is_ascii_digit()).count();
    if rest.get(fraction) == Some(&'Z') { FORM.len() + fraction + 1 } else { 0 }
}

/// Whether printed lines match lines of a page.
fn fits(shown: &str, printed: &str) -> bool {
    let shown: Vec<_> = shown.lines().map(str::to_owned).collect();
    matches(&shown, &printed.lines().collect::<Vec<_>>(), &mut Names::new())
}

#[test]
fn names_times_and_gaps_match_different_texts() {
    assert!(fits("Invoice CEl4aRNK3xMZ of 5", "Invoice 0000000000Zz of 5"));
    assert!(!fits("Invoice CEl4aRNK3xMZ of 5", "Invoice 0000000000Zz of 6"));
    assert!(!fits("Invoice CEl4aRNK3xMZ of 5", "Invoice 0000000000 of 5"));
    assert!(fits("a CEl4aRNK3xMZ\nb CEl4aRNK3xMZ", "a 0000000000Zz\nb 0000000000Zz"));
    assert!(!fits("a CEl4aRNK3xMZ\nb CEl4aRNK3xMZ", "a 0000000000Zz\nb 0000000000Zy"));
    assert!(fits("created 2026-11-21T13:48:18.210377Z", "created 2030-01-01T00:00:00Z"));
    assert!(!fits("created 2026-11-21T13:48:18.210377Z", "created never"));
    assert!(fits("transaction 7f0c…", &format!("transaction {}", "ab".repeat(32))));
    assert!(!fits("transaction 7f0c…", "transaction none"));
    assert!(fits("006a04ac1eed884d…", "006a04ac1eed884d00ff"));
    assert!(!fits("006a04ac1eed884d…", "006a04601dface0100ff"));
    assert!(fits("first\n…\nlast", "first\na\nb\nlast"));
    assert!(fits("first\n…", "first"));
    assert!(!fits("first\n…\nlast", "first\na"));
    assert!(!fits("first", "first\nsecond"));
    assert!(fits("12 bytes after 3 ms", "99999 bytes after 0 ms"));
    assert!(!fits("12 pence", "13 pence"));
}
