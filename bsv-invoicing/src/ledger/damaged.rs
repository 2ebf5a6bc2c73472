/// A row cannot be read, or does not fit together with other rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stored record is damaged: {0}")]
pub struct Damaged(pub String);

impl Damaged {
    /// A row that another one names is missing.
    pub(crate) fn missing(what: &str) -> Self {
        Self(format!("{what} is missing"))
    }
}
