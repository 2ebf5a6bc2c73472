//! QR codes as SVG: dark on white in any colour scheme, with the margin that readers need.

use std::fmt::Write;

use qrcodegen::{QrCode, QrCodeEcc};

/// The white margin, in modules (ISO/IEC 18004).
const MARGIN: i32 = 4;
/// The least width of a code, in pixels. Every module is a whole number of pixels, and at least
/// one.
const WIDTH: i32 = 260;
const MIN_MODULE: i32 = 4;

/// A QR code that is ready to be drawn.
#[derive(Clone, Debug)]
pub(super) struct Qr {
    /// The width in modules, with the margin.
    pub(super) modules: i32,
    /// The width in pixels.
    pub(super) pixels: i32,
    /// The dark modules, as the `d` of an SVG path whose stroke is one module wide.
    pub(super) path: String,
}

impl Qr {
    /// The code of a text, or `None` if the text is too long for any code.
    pub(super) fn of(text: &str) -> Option<Self> {
        let code = QrCode::encode_text(text, QrCodeEcc::Medium).ok()?;
        let modules = code.size() + 2 * MARGIN;
        let pixels = modules * (WIDTH / modules).max(MIN_MODULE);
        Some(Self { modules, pixels, path: path(&code) })
    }

    /// The code as an SVG file.
    pub(super) fn to_svg(&self) -> String {
        let Self { modules, pixels, path } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{pixels}\" height=\"{pixels}\" \
             viewBox=\"0 0 {modules} {modules}\" shape-rendering=\"crispEdges\">\
             <path fill=\"#fff\" d=\"M0 0h{modules}v{modules}H0z\"/><path stroke=\"#000\" d=\"{path}\"/></svg>"
        )
    }
}

/// A path with a line of one module's width for each run of dark modules in a row. Each line begins
/// relative to the end of the one before.
fn path(code: &QrCode) -> String {
    let mut path = format!("M{MARGIN} {MARGIN}.5");
    let (mut end_x, mut end_y) = (0, 0);
    for y in 0..code.size() {
        let mut x = 0;
        while x < code.size() {
            let len = (x..code.size()).take_while(|x| code.get_module(*x, y)).count() as i32;
            if len > 0 {
                write!(path, "m{} {}h{len}", x - end_x, y - end_y).expect("a string takes all");
                (end_x, end_y) = (x + len, y);
            }
            x += len + 1;
        }
    }
    path
}
