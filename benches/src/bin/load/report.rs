use bsv_benches::{Table, median, verdict};

/// Figures by name, each taken several times.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    what: String,
    figures: Vec<f64>,
    bar: Option<Bar>,
}

/// The limit that a figure has to keep.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    AtLeast(f64),
    AtMost(f64),
}

impl Report {
    /// Notes a figure that is not compared with anything.
    pub(crate) fn figure(&mut self, what: impl Into<String>, figure: f64) {
        self.note(what.into(), figure, None);
    }

    /// Notes a figure, and the limit that its median has to keep.
    pub(crate) fn compare(&mut self, what: impl Into<String>, figure: f64, bar: Bar) {
        self.note(what.into(), figure, Some(bar));
    }

    fn note(&mut self, what: String, figure: f64, bar: Option<Bar>) {
        match self.rows.iter_mut().find(|row| row.what == what) {
            Some(row) => row.figures.push(figure),
            None => self.rows.push(Row { what, figures: vec![figure], bar }),
        }
    }

    /// The table of the medians.
    pub(crate) fn table(&self) -> Table<4> {
        let mut table = Table::new(["", "median", "bar", ""]);
        for Row { what, figures, bar } in &self.rows {
            let figure = median(figures.iter().copied());
            let (bar, verdict) = match *bar {
                Some(Bar::AtLeast(bar)) => (format!(">= {bar}"), verdict(figure >= bar)),
                Some(Bar::AtMost(bar)) => (format!("<= {bar}"), verdict(figure <= bar)),
                None => (String::new(), String::new()),
            };
            let figure =
                if figure < 100.0 { format!("{figure:.3}") } else { format!("{figure:.0}") };
            table.row([what.clone(), figure, bar, verdict]);
        }
        table
    }
}
