//! Files that arguments name, where - stands for standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::CliError;

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

/// The whole text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let read = open(path).and_then(|file| file.take(MAX_LEN).read_to_string(&mut text));
    let name = || match path == Path::new(STANDARD) {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    read.map_err(|source| CliError::Input { name: name(), source })?;
    Ok(text)
}

/// The same path for the server, which has another working directory.
pub(crate) fn absolute(path: Option<&Path>) -> Option<PathBuf> {
    path.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}
