use crate::ledger::Books;
use crate::ledger::rows::{ReadRows, Rows};

/// A change of the books, as plain data.
pub trait Command: Send + Sync + 'static {
    /// The result of the change.
    type Answer: Send + 'static;

    /// Makes the change.
    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<Self::Answer, R::Error>;

    /// About how many bytes the change adds to the books, if these may be many. Large changes do not all
    /// share a commit.
    fn weight(&self) -> usize {
        0
    }
}

/// A question about the books.
pub trait Query: Send + 'static {
    /// The answer.
    type Answer: Send + 'static;

    /// Finds the answer.
    fn run<R: ReadRows>(self, rows: &R) -> Result<Self::Answer, R::Error>;
}
