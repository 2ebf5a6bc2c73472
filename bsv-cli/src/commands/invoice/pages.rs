//! Lists of any length, which are printed page by page.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{self, Column, Table};
use crate::service::ReachError;

/// A list, and how it is printed as a table.
pub(super) struct Pages<'l, T> {
    /// The path of the first page.
    pub(super) first: String,
    /// The most elements to print.
    pub(super) limit: u64,
    /// The columns of the table.
    pub(super) columns: &'static [Column],
    /// Adds an element to a table.
    pub(super) add: &'l dyn Fn(&mut Table, &T),
    /// The text for an empty list.
    pub(super) none: &'l str,
}

impl<T: DeserializeOwned> Pages<'_, T> {
    /// Prints page by page, so that a list of any length takes little memory.
    pub(super) async fn print(&self, context: &Context) -> Result<(), CliError> {
        let mut left = self.limit;
        let mut service = context.service(Stores::Wallet).await?;
        let (mut path, mut is_first) = (Some(self.first.clone()), true);
        let mut table = context.table(self.columns);
        while let Some(page) = path.filter(|_| left > 0) {
            let answer = service.get(page).await?;
            let elements: Vec<&RawValue> =
                serde_json::from_str(&answer.body).map_err(ReachError::Nonsense)?;
            let elements = &elements[..elements.len().min(left.try_into().unwrap_or(usize::MAX))];
            if !elements.is_empty() {
                match context.is_json {
                    true => output::print_json(&lines(elements, is_first))?,
                    false => output::print(&self.rows(&mut table, elements)?)?,
                }
                is_first = false;
            }
            left -= elements.len() as u64;
            path = answer.next;
        }
        Ok(output::print(match (context.is_json, is_first) {
            (true, true) => "[]\n",
            (true, false) => "\n]\n",
            (false, true) => self.none,
            (false, false) => "",
        })?)
    }

    /// The next part of a table.
    fn rows(&self, table: &mut Table, elements: &[&RawValue]) -> Result<String, CliError> {
        for element in elements {
            let element = serde_json::from_str(element.get()).map_err(ReachError::Nonsense)?;
            (self.add)(table, &element);
        }
        Ok(table.take())
    }
}

/// A part of a JSON array, with an element on each line.
fn lines(elements: &[&RawValue], is_first: bool) -> String {
    let mut text = String::new();
    for (place, element) in elements.iter().enumerate() {
        text.push_str(if is_first && place == 0 { "[\n" } else { ",\n" });
        text.push_str(element.get());
    }
    text
}
