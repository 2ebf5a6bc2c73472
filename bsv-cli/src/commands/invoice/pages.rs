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
    /// Whether the service begins with the oldest. The table begins with the newest all the same.
    pub(super) is_oldest_first: bool,
    /// The text for an empty list.
    pub(super) none: &'l str,
}

impl<T: DeserializeOwned> Pages<'_, T> {
    /// Prints page by page, so that a list of any length takes little memory. Only a table in another
    /// order than the pages is read as a whole first.
    pub(super) async fn print(&self, context: &Context) -> Result<(), CliError> {
        let mut left = self.limit;
        let mut service = context.service(Stores::Wallet).await?;
        let (mut path, mut is_first) = (Some(self.first.clone()), true);
        let mut table = context.table(self.columns);
        let is_turned = self.is_oldest_first && !context.is_json;
        while let Some(page) = path.filter(|_| left > 0) {
            let answer = service.get(page).await?;
            let elements: Vec<&RawValue> =
                serde_json::from_str(&answer.body).map_err(ReachError::Nonsense)?;
            let elements = &elements[..elements.len().min(left.try_into().unwrap_or(usize::MAX))];
            if !elements.is_empty() {
                match context.is_json {
                    true => output::print_json(&lines(elements, is_first))?,
                    false => self.add(&mut table, elements)?,
                }
                if !is_turned && !context.is_json {
                    output::print(&table.take())?;
                }
                is_first = false;
            }
            left -= elements.len() as u64;
            path = answer.next;
        }
        if is_turned {
            table.turn();
        }
        Ok(output::print(&match (context.is_json, is_first) {
            (true, true) => "[]\n".to_owned(),
            (true, false) => "\n]\n".to_owned(),
            (false, true) => self.none.to_owned(),
            (false, false) => table.end(),
        })?)
    }

    fn add(&self, table: &mut Table, elements: &[&RawValue]) -> Result<(), CliError> {
        for element in elements {
            let element = serde_json::from_str(element.get()).map_err(ReachError::Nonsense)?;
            (self.add)(table, &element);
        }
        Ok(())
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
