use crate::ledger::Books;
use crate::ledger::rows::{ReadRows, Rows};

/// Something that can happen, as data.
pub trait Command: Send + Sync + 'static {
    /// What is answered when it has happened.
    type Answer: Send + 'static;

    /// Does it.
    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<Self::Answer, R::Error>;
}

/// A question that rows answer.
pub trait Query: Send + 'static {
    /// What is answered.
    type Answer: Send + 'static;

    /// Answers it.
    fn run<R: ReadRows>(self, rows: &R) -> Result<Self::Answer, R::Error>;
}
