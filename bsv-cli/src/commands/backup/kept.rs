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

/// The other backups in the directory of a new one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Others {
    /// Those that stay, and the new one, the oldest first.
    pub(super) kept: Vec<PathBuf>,
    /// Those that were deleted.
    pub(super) deleted: Vec<PathBuf>,
    /// Those whose names lie in the future. They stay, and do not count as kept: the clock is wrong,
    /// or was.
    pub(super) future: Vec<PathBuf>,
}

/// Deletes the oldest backups of a network, so that with `new`, the name of the one that was just
/// made, `keep` stay. Files with other names stay.
pub(super) fn delete_oldest(
    dir: &Path,
    network: &str,
    new: &str,
    keep: usize,
) -> io::Result<Others> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let name = name.to_str().filter(|name| is_of(network, name) && *name != new);
        names.extend(name.map(str::to_owned));
    }
    names.sort();
    let now = new_name(network);
    let (past, future): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| *name <= now);
    // Those that others make at the same time stay.
    let (mut older, mut kept): (Vec<_>, Vec<_>) =
        past.into_iter().partition(|name| name.as_str() < new);
    let deleted_len = older.len().saturating_sub(keep.saturating_sub(1));
    let deleted: Vec<_> = older.drain(..deleted_len).collect();
    older.push(new.to_owned());
    kept.splice(..0, older);
    let [kept, deleted, future] =
        [kept, deleted, future].map(|names| names.into_iter().map(|name| dir.join(name)).collect());
    let others = Others { kept, deleted, future };
    others.deleted.iter().try_for_each(fs::remove_file)?;
    Ok(others)
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
            |day: u32| format!("bsv-livenet-202011{day:02}T180211Z.backup"),
            ["bsv-regtest-20200101T000000Z.backup", "bsv-livenet-by-hand.backup", "notes"],
        );
        let mine: Vec<_> = [7, 3, 21, 9].map(of_day).into();
        for name in mine.iter().map(String::as_str).chain(others) {
            fs::write(dir.join(name), "").unwrap();
        }
        let delete = |new: &str| delete_oldest(&dir, "livenet", new, 2).unwrap();
        let days = |days: &[u32]| days.iter().map(|day| dir.join(of_day(*day))).collect();
        let kept = days(&[3, 7, 9, 21]);
        let (deleted, future) = (vec![], vec![]);
        assert_eq!(delete(&of_day(3)), Others { kept, deleted, future }, "the others are newer");
        let (kept, deleted, future) = (days(&[9, 21]), days(&[3, 7]), vec![]);
        assert_eq!(delete(&of_day(21)), Others { kept, deleted, future });
        let mut left = others.map(str::to_owned).into_iter().chain([of_day(9), of_day(21)]);
        assert!(left.all(|name| dir.join(name).exists()));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 5);

        let new = new_name("livenet");
        assert!(is_of("livenet", &new));
        let future = ["99980101T000000Z", "99990101T000000Z"]
            .map(|time| dir.join(format!("bsv-livenet-{time}.backup")));
        for path in future.iter().chain([&dir.join(&new)]) {
            fs::write(path, "").unwrap();
        }
        let deleted = vec![dir.join(of_day(9))];
        let kept = vec![dir.join(of_day(21)), dir.join(&new)];
        assert_eq!(delete(&new), Others { kept, deleted, future: future.into() });
        // The clock has been set back since the new one got its name.
        let of_past = dir.join(&new);
        assert_eq!(delete("bsv-livenet-99970101T000000Z.backup").deleted, [dir.join(of_day(21))]);
        assert!(of_past.exists());
        fs::remove_dir_all(&dir).unwrap();
    }
}
