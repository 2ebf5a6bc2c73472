/// A row that does not fit together with others, or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stored record is damaged: {0}")]
pub struct Damaged(pub String);

impl Damaged {
    /// A row that is missing, which another one names.
    pub(crate) fn missing(what: &str) -> Self {
        Self(format!("{what} is missing"))
    }
}
