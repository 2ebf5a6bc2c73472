//! Files that arguments name, where - stands for standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Standard input or output.
pub(crate) const STANDARD: &str = "-";

pub(crate) fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    match path == Path::new(STANDARD) {
        true => Ok(Box::new(io::stdin().lock())),
        false => Ok(Box::new(File::open(path)?)),
    }
}

/// Longer than what the service takes.
const MAX_LEN: u64 = 2 << 20;

/// Reads the whole text of a file that an argument names.
pub(crate) fn text(path: &str) -> io::Result<String> {
    let mut text = String::new();
    open(Path::new(path))?.take(MAX_LEN).read_to_string(&mut text)?;
    Ok(text)
}
