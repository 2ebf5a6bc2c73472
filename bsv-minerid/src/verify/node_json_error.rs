use thiserror::Error;

/// How deep arrays and objects lie within one another that nodes read, the outermost included.
pub(super) const MOST_DEPTH: usize = 2049;

/// Why nodes do not read a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum NodeJsonError {
    #[error("not JSON")]
    Syntax,
    #[error("a text in it is not Unicode as nodes read it, which JSON alone does not demand")]
    Text,
    #[error("nested deeper than {MOST_DEPTH} levels, which JSON allows and nodes do not read")]
    TooDeep,
}
