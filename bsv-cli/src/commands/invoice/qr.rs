//! QR codes in a terminal.

use anstyle::{AnsiColor, Style};
use qrcodegen::{QrCode, QrCodeEcc};

use crate::output::painted;

/// The margin that readers need, in modules (ISO/IEC 18004).
const MARGIN: i32 = 4;
/// Light blocks on dark ground, whatever colours the terminal has.
const LIGHT_ON_DARK: Style =
    AnsiColor::BrightWhite.on_default().bg_color(Some(anstyle::Color::Ansi(AnsiColor::Black)));

/// The QR code of a text, two modules in each character. Its light modules are blocks: most terminals are dark. There
/// is none of a text that is too long for one.
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
        painted(&blocks.collect::<String>(), LIGHT_ON_DARK, is_colored) + "\n"
    };
    places().step_by(2).map(line).collect()
}
