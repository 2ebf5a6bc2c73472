//! The height in documents of generation 0.2.

use super::members::Members;
use super::report::{Check, Findings};

/// Compares the document's height with the block's. A height of another type is not reported here.
pub(super) fn check(members: &Members<'_>, of_block: Option<u32>, findings: &mut Findings) {
    const NO_NUMBER: &str = "the height is not a 32-bit whole number: nodes fail on it and look \
                             for no other identity in the block";
    let Some(value) = members.get("height") else { return };
    let spelled = value.bytes();
    let height = match &spelled {
        None if !value.is_number() => return,
        None => value.integer(),
        Some(text) => leading_integer(text),
    };
    let Some(height) = height else { return findings.ends_scan(Check::Height, NO_NUMBER) };
    match of_block {
        None => findings.unknown(Check::Height, "the height of the block is not known"),
        Some(of_block) if i64::from(of_block) != i64::from(height) => {
            let reason = format!("the document is for height {height}, not {of_block}");
            findings.refused(Check::Height, reason);
        }
        Some(_) => match spelled.map(|text| text.iter().all(u8::is_ascii_digit)) {
            None => findings.holds(Check::Height),
            Some(true) => {
                findings.fails(Check::Height, "the height must be a number, not a string");
            }
            Some(false) => {
                let reason = "the height is a string that only starts with the number, as nodes \
                              before 1.2.1 took it";
                findings.refused(Check::Height, reason);
            }
        },
    }
}

/// The number at the start of a text, after white space and a sign, as C parses it.
fn leading_integer(text: &[u8]) -> Option<i32> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0xb;
    let spaces = text.iter().take_while(|byte| is_space(byte)).count();
    let text = &text[spaces..];
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let digits = text[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..sign + digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_at_the_start_of_a_text_is_read_as_nodes_read_it() {
        for (text, number) in [
            ("12", Some(12)),
            (" \t12abc", Some(12)),
            ("-3", Some(-3)),
            ("+3", Some(3)),
            ("2147483648", None),
            ("", None),
            ("x1", None),
            ("- 1", None),
        ] {
            assert_eq!(leading_integer(text.as_bytes()), number, "{text:?}");
        }
    }
}
