use std::fmt::Display;

use anstyle::{AnsiColor, Effects, Style};
use console::{Term, measure_text_width};

use super::{painted, printable};

/// A column of a table, and how it is made to fit a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    fit: Fit,
    is_right: bool,
    rank: Option<u8>,
}

/// How the cells of a column become shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// Never.
    Whole,
    /// In the middle, to this width at least.
    Middle(usize),
    /// At the end, to this width at least.
    End(usize),
}

impl Column {
    /// A column whose cells stay whole, such as an id.
    pub(crate) const fn whole(name: &'static str) -> Self {
        Self { name, fit: Fit::Whole, is_right: false, rank: None }
    }

    /// A column of numbers, which stay whole.
    pub(crate) const fn number(name: &'static str) -> Self {
        Self { is_right: true, ..Self::whole(name) }
    }

    /// A column of keys, hashes or URLs: their beginning and end tell them apart.
    pub(crate) const fn key(name: &'static str, least: usize) -> Self {
        Self { fit: Fit::Middle(least), ..Self::whole(name) }
    }

    /// A column of words.
    pub(crate) const fn words(name: &'static str, least: usize) -> Self {
        Self { fit: Fit::End(least), ..Self::whole(name) }
    }

    /// A column that is left out where the terminal is too narrow. The lowest rank goes first.
    pub(crate) const fn unless_narrow(self, rank: u8) -> Self {
        Self { rank: Some(rank), ..self }
    }

    /// The name of the column.
    #[cfg(test)]
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// The least width of the column, if its widest cell or its name has the width `natural`.
    fn least(&self, natural: usize) -> usize {
        match self.fit {
            Fit::Whole => natural,
            Fit::Middle(least) | Fit::End(least) => natural.min(least.max(self.name.len())),
        }
    }
}

/// Rows under a header. In a terminal each row is one line that fits: cells are shortened, or columns
/// are left out. Elsewhere each row is one line of any length.
#[derive(Debug)]
pub(crate) struct Table {
    columns: &'static [Column],
    rows: Vec<Vec<String>>,
    is_colored: bool,
    width: Option<usize>,
    is_quiet: bool,
    /// The widths of the columns of all rows so far.
    naturals: Vec<usize>,
    is_begun: bool,
}

/// The space between two columns.
const GAP: usize = 2;
const BOLD: Style = Style::new().effects(Effects::BOLD);
/// The name of columns with states.
const STATE: &str = "state";
/// A terminal that reports a smaller width is not believed.
const LEAST_WIDTH: usize = 20;

/// The width of the terminal, if there is one and it tells it.
pub(crate) fn terminal_width(terminal: &Term) -> Option<usize> {
    let (_, width) = terminal.size_checked()?;
    Some(usize::from(width)).filter(|width| *width >= LEAST_WIDTH)
}

impl Table {
    pub(crate) fn new(columns: &'static [Column], is_colored: bool, width: Option<usize>) -> Self {
        let is_quiet = false;
        let naturals = columns.iter().map(|column| column.name.len()).collect();
        Self { columns, rows: Vec::new(), is_colored, width, is_quiet, naturals, is_begun: false }
    }

    /// Whether nothing but rows is printed.
    pub(crate) fn quiet(self, is_quiet: bool) -> Self {
        Self { is_quiet, ..self }
    }

    /// Adds a row. Control characters are escaped.
    pub(crate) fn add<const N: usize>(&mut self, row: [&dyn Display; N]) {
        let row = row.map(|cell| printable(&cell.to_string()));
        for (natural, cell) in self.naturals.iter_mut().zip(&row) {
            *natural = measure_text_width(cell).max(*natural);
        }
        self.rows.push(row.into());
    }

    /// Turns the rows that were added around: the last one is shown first.
    pub(crate) fn turn(&mut self) {
        self.rows.reverse();
    }

    /// The rows since the last call, under a header if they are the first ones.
    pub(crate) fn take(&mut self) -> String {
        let widths = self.widths();
        let mut text = String::new();
        if !self.is_begun {
            let header: Vec<_> = self.columns.iter().map(|it| it.name.to_owned()).collect();
            text.push_str(&self.line(&widths, &header, |_, _| Some(BOLD)));
            self.is_begun = true;
        }
        for row in std::mem::take(&mut self.rows) {
            text.push_str(&self.line(&widths, &row, |column, cell| match column.name {
                STATE => color(cell).map(AnsiColor::on_default),
                _ => None,
            }));
        }
        text
    }

    /// The rows since the last call, and a line that names the columns that are left out.
    pub(crate) fn end(&mut self) -> String {
        let rows = self.take();
        let shown = self.widths();
        let is_left_out = |place: &usize| shown.iter().all(|(shown, _)| shown != place);
        let left_out = (0..self.columns.len()).filter(is_left_out);
        let names: Vec<_> = left_out.map(|place| self.columns[place].name).collect();
        match names.is_empty() || self.is_quiet {
            true => rows,
            false => format!("{rows}Left out: {} (see --verbose)\n", names.join(", ")),
        }
    }

    /// The columns that are shown, by their places, with their widths.
    fn widths(&self) -> Vec<(usize, usize)> {
        let all = self.naturals.iter().copied().enumerate();
        let Some(width) = self.width else { return all.collect() };
        let mut shown: Vec<_> =
            all.map(|(place, natural)| (place, self.columns[place].least(natural))).collect();
        let taken = |shown: &[(usize, usize)]| {
            shown.iter().map(|(_, width)| width + GAP).sum::<usize>().saturating_sub(GAP)
        };
        while taken(&shown) > width {
            let ranks =
                shown.iter().filter_map(|(place, _)| Some((self.columns[*place].rank?, *place)));
            let Some((_, first)) = ranks.min() else { break };
            shown.retain(|(place, _)| *place != first);
        }
        let mut spare = width.saturating_sub(taken(&shown));
        let mut lacking: Vec<_> = shown
            .iter_mut()
            .map(|(place, width)| (self.naturals[*place] - *width, width))
            .filter(|(lack, _)| *lack > 0)
            .collect();
        lacking.sort_by_key(|(lack, _)| *lack);
        let mut sharers = lacking.len();
        for (lack, width) in lacking {
            let grown = lack.min(spare / sharers);
            *width += grown;
            spare -= grown;
            sharers -= 1;
        }
        shown
    }

    fn line(
        &self,
        widths: &[(usize, usize)],
        row: &[String],
        style: impl Fn(&Column, &str) -> Option<Style>,
    ) -> String {
        let mut line = String::new();
        for (index, (place, width)) in widths.iter().enumerate() {
            let (column, cell) = (&self.columns[*place], &row[*place]);
            let shown = shortened(cell, *width, column.fit);
            let space = " ".repeat(width.saturating_sub(measure_text_width(&shown)));
            let shown = match style(column, cell) {
                Some(style) => painted(&shown, style, self.is_colored),
                None => shown,
            };
            if index > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            line += &if column.is_right { space + &shown } else { shown + &space };
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    }
}

/// A key or a hash that is short enough to stand in a line beside others.
pub(crate) fn short_key(key: &str) -> String {
    shortened(key, 17, Fit::Middle(17))
}

/// A text of at most this width, with a sign where something is left out.
fn shortened(text: &str, width: usize, fit: Fit) -> String {
    let (front, back) = match fit {
        _ if measure_text_width(text) <= width => return text.to_owned(),
        Fit::Whole => return text.to_owned(),
        Fit::Middle(_) => (width / 2, width.saturating_sub(1) / 2),
        Fit::End(_) => (width.saturating_sub(1), 0),
    };
    let start: String = within(front, text.chars()).collect();
    let end: Vec<char> = within(back, text.chars().rev()).collect();
    start.trim_end().chars().chain(['…']).chain(end.into_iter().rev()).collect()
}

/// The first characters that together have at most this width.
fn within(width: usize, chars: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    chars
        .scan(0, |taken, c| {
            *taken += measure_text_width(c.encode_utf8(&mut [0; 4]));
            Some((*taken, c))
        })
        .take_while(move |(taken, _)| *taken <= width)
        .map(|(_, c)| c)
}

fn color(state: &str) -> Option<AnsiColor> {
    match state {
        "paid" | "settled" | "delivered" | "enabled" | "CURRENT" => Some(AnsiColor::Green),
        "pending" | "open" | "unseen" | "waiting" => Some(AnsiColor::Yellow),
        "expired" | "cancelled" | "refused" | "displaced" | "failed" | "disabled" | "gone"
        | "REVOKED" => Some(AnsiColor::Red),
        _ => None,
    }
}
