//! Files in arguments. `-` stands for standard input.

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

/// The longest accepted text, in bytes: longer than the service accepts.
const MAX_LEN: u64 = 2 << 20;

/// Reads the text of a file in an argument.
pub(crate) fn text(path: &str) -> io::Result<String> {
    let mut text = String::new();
    open(Path::new(path))?.take(MAX_LEN).read_to_string(&mut text)?;
    Ok(text)
}
