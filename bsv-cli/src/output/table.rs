use std::fmt;

use comfy_table::presets::NOTHING;
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Width,
};

use super::printable;

/// Rows under a header. In a terminal they are wrapped to its width. Elsewhere each row is one line
/// of any length.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    is_colored: bool,
    is_continued: bool,
    least_widths: Vec<u16>,
}

/// The name of columns with states.
const STATE: &str = "state";
/// The names of columns with numbers, which are aligned to the right.
const NUMBERS: [&str; 6] = ["satoshis", "fee", "keys", "number", "behind", "attempts"];
/// A terminal that reports a smaller width is not believed.
const LEAST_WIDTH: u16 = 20;

impl Table {
    pub(crate) fn new(header: &[&str], is_colored: bool) -> Self {
        let header = header.iter().map(ToString::to_string).collect();
        Self { header, rows: vec![], is_colored, is_continued: false, least_widths: vec![] }
    }

    /// Aligns the rows with those of an earlier table that has these least widths of columns.
    pub(crate) fn continued(mut self, is_continued: bool, least_widths: &[u16]) -> Self {
        self.is_continued = is_continued;
        self.least_widths = least_widths.to_vec();
        self
    }

    /// Adds a row. Control characters are escaped.
    pub(crate) fn add<const N: usize>(&mut self, row: [&dyn fmt::Display; N]) {
        self.rows.push(row.map(|cell| printable(&cell.to_string())).into());
    }

    fn build(&self) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING);
        if let Some(width) = table.width().filter(|width| *width >= LEAST_WIDTH) {
            table.set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
        }
        match self.is_colored {
            true => table.enforce_styling(),
            false => table.force_no_tty(),
        };
        if !self.is_continued {
            let bold = |name| Cell::new(name).add_attribute(Attribute::Bold);
            table.set_header(self.header.iter().map(bold));
        }
        for row in &self.rows {
            table.add_row(row.iter().zip(&self.header).map(|(text, name)| cell(text, name)));
        }
        for (column, name) in table.column_iter_mut().zip(&self.header) {
            column.set_padding((0, 2));
            if NUMBERS.contains(&name.as_str()) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for (column, width) in table.column_iter_mut().zip(&self.least_widths) {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width + 2)));
        }
        table
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.build().trim_fmt())
    }
}

fn cell(text: &str, name: &str) -> Cell {
    let cell = Cell::new(text);
    match text {
        _ if name != STATE => cell,
        "paid" | "settled" | "delivered" | "enabled" | "CURRENT" => cell.fg(Color::Green),
        "pending" | "open" | "unseen" | "waiting" => cell.fg(Color::Yellow),
        "expired" | "cancelled" | "refused" | "displaced" | "failed" | "disabled" | "gone"
        | "REVOKED" => cell.fg(Color::Red),
        _ => cell,
    }
}
