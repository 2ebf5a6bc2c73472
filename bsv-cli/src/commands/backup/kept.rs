//! The backups of one network in a directory. The name of a backup contains its time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

/// `bsv-regtest-20261121T180211Z.backup`.
const FORM: &str = "%Y%m%dT%H%M%SZ";
const SUFFIX: &str = ".backup";

fn prefix(network: &str) -> String {
    format!("bsv-{network}-")
}

/// The name of a backup that is made now.
pub(super) fn new_name(network: &str) -> String {
    format!("{}{}{SUFFIX}", prefix(network), Timestamp::now().strftime(FORM))
}

/// Deletes all but the newest `keep` backups of a network, and answers the deleted ones. Files with
/// other names stay.
pub(super) fn delete_oldest(dir: &Path, network: &str, keep: usize) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        names.extend(name.to_str().filter(|name| is_of(network, name)).map(str::to_owned));
    }
    names.sort();
    names.truncate(names.len().saturating_sub(keep));
    let deleted: Vec<_> = names.into_iter().map(|name| dir.join(name)).collect();
    deleted.iter().try_for_each(fs::remove_file)?;
    Ok(deleted)
}

fn is_of(network: &str, name: &str) -> bool {
    let time = name.strip_prefix(&prefix(network)).and_then(|rest| rest.strip_suffix(SUFFIX));
    let shape = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
    };
    time.is_some_and(|time| shape(time) == "00000000T000000Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_deleted_and_nothing_else() {
        let dir = std::env::temp_dir().join(format!("bsv-kept-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let (of_day, others) = (
            |day: u32| format!("bsv-livenet-202611{day:02}T180211Z.backup"),
            ["bsv-regtest-20200101T000000Z.backup", "bsv-livenet-by-hand.backup", "notes"],
        );
        let mine: Vec<_> = [7, 3, 21, 9].map(of_day).into();
        for name in mine.iter().map(String::as_str).chain(others) {
            fs::write(dir.join(name), "").unwrap();
        }
        let deleted = delete_oldest(&dir, "livenet", 2).unwrap();
        assert_eq!(deleted, [dir.join(of_day(3)), dir.join(of_day(7))]);
        let mut left = others.map(str::to_owned).into_iter().chain([of_day(9), of_day(21)]);
        assert!(left.all(|name| dir.join(name).exists()));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 5);
        assert!(is_of("livenet", &new_name("livenet")));
        fs::remove_dir_all(&dir).unwrap();
    }
}
