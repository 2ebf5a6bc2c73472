//! Pages of lists that begin with the newest element.

use hyper::{StatusCode, Uri};

use crate::http::{self, Problem};

/// The most elements of a page.
const MAX_PAGE: u64 = 100;

/// The parameters of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    limit: Option<u64>,
    before: Option<u64>,
}

impl Page {
    /// Parses the query. Reports all faults at once.
    pub(super) fn parse(uri: &Uri) -> Result<Self, Problem> {
        let mut page = Self::default();
        let mut problem =
            Problem::new(StatusCode::BAD_REQUEST, "invalid-query", "the query cannot be answered");
        for (name, value) in http::parameters(uri) {
            if let Err(message) = page.set(&name, &value) {
                problem = problem.with_field(&name, &[message]);
            }
        }
        if problem.has_fields() { Err(problem) } else { Ok(page) }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number =
            value.bytes().all(|c| c.is_ascii_digit()).then(|| value.parse().ok()).flatten();
        match (name, number) {
            ("limit", Some(limit)) if (1..=MAX_PAGE).contains(&limit) && self.limit.is_none() => {
                self.limit = Some(limit);
            }
            ("limit", _) => return Err(format!("must be from 1 to {MAX_PAGE}, and there once")),
            ("before", Some(before)) if self.before.is_none() => self.before = Some(before),
            ("before", _) => return Err("must be a number, and there once".to_owned()),
            _ => return Err(http::UNKNOWN_PARAMETER.to_owned()),
        }
        Ok(())
    }

    /// The most elements of the page.
    pub(super) fn limit(&self) -> usize {
        self.limit.unwrap_or(MAX_PAGE) as usize
    }

    /// Elements with this number or a higher one are on earlier pages.
    pub(super) fn before(&self) -> u64 {
        self.before.unwrap_or(u64::MAX)
    }
}
