//! The form of results.

mod table;
mod time;
mod wrap;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use bsv_server::steers;
use clap::ColorChoice;
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::table::{Column, Table, short_key, terminal_width};
pub(crate) use self::time::short_time;
pub(crate) use self::wrap::wrapped;

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

/// A text in a style, if colours are shown.
pub(crate) fn painted(text: &str, style: Style, is_colored: bool) -> String {
    match is_colored {
        true => format!("{style}{text}{style:#}"),
        false => text.to_owned(),
    }
}

/// Prints JSON. On a terminal, control characters are escaped.
pub(crate) fn print_json(json: &str) -> io::Result<()> {
    match io::stdout().is_terminal() {
        true => print(&printable_json(json)),
        false => print(json),
    }
}

/// A text member without control characters, or an empty text.
pub(crate) fn text(value: &Value, member: &str) -> String {
    printable(value[member].as_str().unwrap_or_default())
}

/// A numeric member, or an empty text.
pub(crate) fn number(value: &Value, member: &str) -> String {
    value[member].as_u64().map(|number| number.to_string()).unwrap_or_default()
}

/// The elements of a list, or none.
pub(crate) fn elements(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A line for a field, or nothing if the field is empty.
pub(crate) fn field(name: &str, value: &Value) -> String {
    match value {
        Value::String(value) if !value.is_empty() => format!("{name:<12} {}\n", printable(value)),
        Value::Number(value) => format!("{name:<12} {value}\n"),
        _ => String::new(),
    }
}

/// A line for a member, or nothing if the member is empty.
pub(crate) fn line(name: &str, value: impl Display) -> String {
    match printable(&value.to_string()) {
        value if value.is_empty() => value,
        value => format!("{name:<12} {value}\n"),
    }
}

/// A value, or an empty text.
pub(crate) fn optional(value: Option<impl Display>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A number of things, in the singular or in the plural.
pub(crate) fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// A result of the command line's own.
pub(crate) fn json(result: &impl Serialize) -> String {
    serde_json::to_string(result).expect("results consist of texts, numbers and lists")
}

/// Text of strangers, without control characters.
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

/// The same JSON without control characters in its strings. Outside of strings there are only line
/// feeds.
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
