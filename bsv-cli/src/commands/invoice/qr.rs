//! QR codes in a terminal.

use anstyle::{Ansi256Color, Color, Style};
use qrcodegen::{QrCode, QrCodeEcc};

use crate::output::painted;

/// The margin that readers need, in modules (ISO/IEC 18004).
const MARGIN: i32 = 4;
/// White blocks on a black ground. Themes of terminals leave these colours as they are; what they call
/// bright white may be grey.
const WHITE_ON_BLACK: Style = Style::new()
    .fg_color(Some(Color::Ansi256(Ansi256Color(231))))
    .bg_color(Some(Color::Ansi256(Ansi256Color(16))));

/// The QR code of a text, with two modules in each character. The light modules are blocks, since
/// most terminals are dark. Empty if the text is too long for a QR code.
pub(super) fn code(text: &str, is_colored: bool) -> String {
    let Ok(code) = QrCode::encode_text(text, QrCodeEcc::Medium) else { return String::new() };
    let places = || -MARGIN..code.size() + MARGIN;
    let line = |y: i32| {
        let blocks = places().map(|x| match [y, y + 1].map(|y| code.get_module(x, y)) {
            [false, false] => '█',
            [false, true] => '▀',
            [true, false] => '▄',
            [true, true] => ' ',
        });
        painted(&blocks.collect::<String>(), WHITE_ON_BLACK, is_colored) + "\n"
    };
    places().step_by(2).map(line).collect()
}
