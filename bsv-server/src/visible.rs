//! Text of strangers, which must not change the text around it.

/// Characters that change the direction of the text around them.
const TURNS_TEXT: [char; 12] = [
    '\u{061c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// Whether a character controls a terminal or a page, instead of being shown.
pub fn steers(c: char) -> bool {
    c.is_control() || TURNS_TEXT.contains(&c)
}
