use thiserror::Error;

/// The deepest nesting of arrays and objects that nodes read, including the outermost one.
pub(super) const MOST_DEPTH: usize = 2049;

/// Why nodes cannot read a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum NodeJsonError {
    #[error("not JSON")]
    Syntax,
    #[error("a string in it is not Unicode in the form that nodes require")]
    Text,
    #[error("nested deeper than {MOST_DEPTH} levels, which JSON allows and nodes do not read")]
    TooDeep,
}
