//! How results look.

mod members;
mod table;

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use bsv_server::steers;
use clap::ColorChoice;
use serde_json::Value;

pub(crate) use self::members::Members;
pub(crate) use self::table::Table;

/// Prints a whole answer.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Which streams show colours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Colors {
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
}

impl Colors {
    pub(crate) fn new(choice: ColorChoice) -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let shown_on = |is_terminal: bool| match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !is_dumb && !is_set("NO_COLOR"),
        };
        Self {
            stdout: shown_on(io::stdout().is_terminal()),
            stderr: shown_on(io::stderr().is_terminal()),
        }
    }
}

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const ATTENTION: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();

/// A text in a style, where colours are shown.
pub(crate) fn painted(text: &str, style: Style, is_colored: bool) -> String {
    match is_colored {
        true => format!("{style}{text}{style:#}"),
        false => text.to_owned(),
    }
}

/// Prints JSON. A terminal sees nothing of it that would steer it.
pub(crate) fn print_json(json: &str) -> io::Result<()> {
    match io::stdout().is_terminal() {
        true => print(&printable_json(json)),
        false => print(json),
    }
}

/// A member that is text, with nothing in it that steers a terminal; empty where there is none.
pub(crate) fn text(value: &Value, member: &str) -> String {
    printable(value[member].as_str().unwrap_or_default())
}

/// A member that is a number; empty where there is none.
pub(crate) fn number(value: &Value, member: &str) -> String {
    value[member].as_u64().map(|number| number.to_string()).unwrap_or_default()
}

/// The elements of a list; none where there is no list.
pub(crate) fn elements(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A line that shows a field which is not empty.
pub(crate) fn field(name: &str, value: &Value) -> String {
    match value {
        Value::String(value) if !value.is_empty() => format!("{name:<12} {}\n", printable(value)),
        Value::Number(value) => format!("{name:<12} {value}\n"),
        _ => String::new(),
    }
}

/// Text that others wrote, with nothing in it that steers a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match steers(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// The same JSON with nothing in its strings that steers a terminal. Between them there is nothing but
/// line feeds.
pub(crate) fn printable_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        match c != '\n' && steers(c) {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    shown
}
