use crate::ledger::Books;
use crate::ledger::rows::{Engine, WalletStoreError};

/// A change of the books, as plain data.
pub trait Command: Send + Sync + 'static {
    /// The result of the change.
    type Answer: Send + 'static;

    /// Makes the change.
    fn run(&self, books: &mut Books<'_>) -> Result<Self::Answer, WalletStoreError>;

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
    fn run(self, rows: &dyn Engine) -> Result<Self::Answer, WalletStoreError>;
}

/// A change of the books, and the answer to a question about the books after it, in one step. The
/// question may not be about the figures, which a batch keeps in memory.
#[derive(Clone, Debug)]
pub(crate) struct Asked<C, Q>(pub(crate) C, pub(crate) Q);

impl<C: Command, Q: Query + Clone + Sync> Command for Asked<C, Q> {
    type Answer = Q::Answer;

    fn run(&self, books: &mut Books<'_>) -> Result<Self::Answer, WalletStoreError> {
        self.0.run(books)?;
        self.1.clone().run(&books.rows)
    }

    fn weight(&self) -> usize {
        self.0.weight()
    }
}
