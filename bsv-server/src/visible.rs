//! Text that others wrote, and that must not change what stands around it.

/// What makes the text around it be shown in another direction.
const TURNS_TEXT: [char; 12] = [
    '\u{061c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// Whether a character steers a terminal or a page, instead of being shown.
pub fn steers(c: char) -> bool {
    c.is_control() || TURNS_TEXT.contains(&c)
}
