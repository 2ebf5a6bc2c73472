//! A shop that has only a terminal.

use bsv_tests::Site;
use bsv_tests::terminal::Terminal;

const CREATE: [&str; 4] = ["invoice", "create", "--satoshis", "1000"];

/// Reads a QR code of block characters. Each character holds two modules, and light modules are
/// filled.
fn read(code: &str) -> String {
    let lines: Vec<Vec<char>> = code.lines().map(|line| line.chars().collect()).collect();
    let scale = 4;
    let (width, height) = (lines[0].len() * scale, lines.len() * 2 * scale);
    let grey = |x: usize, y: usize| {
        let (x, y) = (x / scale, y / scale);
        let light = match lines[y / 2][x] {
            '█' => [true, true],
            '▀' => [true, false],
            '▄' => [false, true],
            ' ' => [false, false],
            other => panic!("{other:?}"),
        };
        if light[y % 2] { 255 } else { 0 }
    };
    let mut picture = rqrr::PreparedImage::prepare_from_greyscale(width, height, grey);
    let grids = picture.detect_grids();
    grids[0].decode().unwrap().1
}

#[test]
fn a_terminal_shows_the_page_as_a_code() {
    let mut site = Site::new();
    site.set_env("NO_COLOR", "1");
    site.cli_ok(&["init"]);
    let mut terminal = Terminal::start_of_width(&site, &CREATE, 80);
    terminal.wait_for("page         ");
    let (code, shown, _) = terminal.end();
    assert_eq!(code, 0);
    let (url, code) = shown.split_once('\n').unwrap();
    assert!(url.contains("/pay/"), "{url}");
    assert_eq!(read(&code.replace('\r', "")), url.trim());

    let mut colored = Site::new();
    colored.set_env("TERM", "xterm");
    colored.cli_ok(&["init"]);
    let (_, shown, _) = Terminal::start_of_width(&colored, &CREATE, 80).end();
    assert!(
        shown.contains("\u{1b}[38;5;231m\u{1b}[48;5;16m█"),
        "light on dark, whatever the colours are: {shown:?}"
    );

    // If the output is not a terminal, or is JSON, there is no code.
    assert!(!site.cli_ok(&CREATE).contains('█'));
    let (_, shown, _) = Terminal::start(&site, &[&CREATE[..], &["--json"]].concat()).end();
    assert!(!shown.contains('█'));
}
