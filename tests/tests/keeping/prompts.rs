//! Secrets that are typed in at a terminal.

use std::fs;
use std::path::Path;

use bsv_tests::Site;
use bsv_tests::terminal::Terminal;

use crate::keeping::scene::sealed_site;

const TYPED: &str = "a passphrase that is typed";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const AGAIN: &str = "Once more: ";
const OF_KEYS: &str = "The new passphrase of the keys: ";
const OF_BACKUP: &str = "The passphrase of the backup: ";

/// A site whose programs log as much as they can.
fn talkative_site() -> Site {
    let mut site = sealed_site(None);
    site.set_env("BSV_LOG", "trace,rustls=trace");
    site
}

/// Runs the command line, types an answer to each prompt, and gives the exit code and what was
/// shown. Checks that the command restores the terminal's settings.
fn converse(site: &Site, arguments: &[&str], answers: &[(&str, &str)]) -> (i32, String) {
    let mut terminal = Terminal::start(site, arguments);
    for (prompt, answer) in answers {
        terminal.wait_for_secret_prompt(prompt);
        terminal.type_in(answer);
    }
    let (code, shown, echoes) = terminal.end();
    assert!(echoes, "{arguments:?} leaves the echo of the terminal off, after {answers:?}");
    assert!(!shown.contains(TYPED), "{arguments:?} shows what is typed: {shown}");
    (code, shown)
}

/// All files below a directory, with their contents.
fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            files.extend(contents(&entry.path()));
        } else if entry.file_type().unwrap().is_file() {
            files.push((entry.path().display().to_string(), fs::read(entry.path()).unwrap()));
        }
    }
    files.sort();
    files
}

/// Answers to a prompt for a new secret that are refused, and the message of each refusal.
fn refused(prompt: &'static str) -> Vec<(Vec<(&'static str, String)>, &'static str)> {
    let line = |text: &str| format!("{text}\r");
    vec![
        (vec![(prompt, line(TYPED)), (AGAIN, line("another"))], "was not typed the same way twice"),
        (vec![(prompt, line(TYPED)), (AGAIN, line(""))], "was not typed the same way twice"),
        (vec![(prompt, line("")), (AGAIN, line(""))], "is empty"),
        (vec![(prompt, CTRL_C.to_owned())], "was not typed in"),
        (vec![(prompt, format!("{TYPED}{CTRL_C}"))], "was not typed in"),
        (vec![(prompt, CTRL_D.to_owned())], "was not typed in"),
        (vec![(prompt, line(TYPED)), (AGAIN, CTRL_C.to_owned())], "was not typed in"),
        (vec![(prompt, line(TYPED)), (AGAIN, CTRL_D.to_owned())], "was not typed in"),
    ]
}

fn check_refused(site: &Site, arguments: &[&str], prompt: &'static str) {
    for (answers, reason) in refused(prompt) {
        let answers: Vec<_> = answers.iter().map(|(ask, keys)| (*ask, keys.as_str())).collect();
        let (code, shown) = converse(site, arguments, &answers);
        assert_eq!(code, 1, "{answers:?}: {shown}");
        assert!(shown.contains(reason), "{answers:?}: {shown}");
    }
}

#[test]
fn a_new_passphrase_of_the_keys_is_typed_twice_and_unseen() {
    let mut site = talkative_site();
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    let keystore = site.network_dir().join("keystore");
    let before = contents(&keystore);
    check_refused(&site, &["keystore", "passphrase"], OF_KEYS);
    assert_eq!(contents(&keystore), before);
    let answer = format!("{TYPED}\r");
    let answers = [(OF_KEYS, answer.as_str()), (AGAIN, &answer)];
    let (code, shown) = converse(&site, &["keystore", "passphrase"], &answers);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("The keys have the new passphrase"), "{shown}");
    assert_eq!(site.cli(&["miner", "list"]).code, 1);
    site.set_env("BSV_KEYSTORE_PASSPHRASE", TYPED);
    site.cli_ok(&["keystore", "verify"]);
}

#[test]
fn a_backups_passphrase_is_typed_twice_for_it_and_once_to_restore() {
    let site = talkative_site();
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("backup");
    let file = file.to_str().unwrap();
    check_refused(&site, &["backup", file], OF_BACKUP);
    assert_eq!(contents(dir.path()), []);
    let answer = format!("{TYPED}\r");
    // Backspace corrects a character, and Ctrl-U a whole line.
    let mended = format!("x{TYPED}\x15{TYPED}x\x7f\r");
    let answers = [(OF_BACKUP, answer.as_str()), (AGAIN, mended.as_str())];
    let (code, shown) = converse(&site, &["backup", file], &answers);
    assert_eq!(code, 0, "{shown}");

    let restored = talkative_site();
    for (answer, reason) in [
        (CTRL_C, "was not typed in"),
        (CTRL_D, "was not typed in"),
        ("\r", "is empty"),
        ("another\r", "passphrase"),
    ] {
        let (code, shown) =
            converse(&restored, &["restore", "--yes", file], &[(OF_BACKUP, answer)]);
        assert_eq!(code, 1, "{answer:?}: {shown}");
        assert!(shown.contains(reason), "{answer:?}: {shown}");
        assert_eq!(contents(restored.data_dir()), []);
    }
    let (code, shown) = converse(&restored, &["restore", "--yes", file], &[(OF_BACKUP, &answer)]);
    assert_eq!(code, 0, "{shown}");
    assert_eq!(restored.cli_ok(&["miner", "list"]), site.cli_ok(&["miner", "list"]));
}

#[test]
fn words_are_printed_after_a_confirmation_and_typed_to_restore() {
    let site = talkative_site();
    site.cli_ok(&["init"]);
    let words = site.cli_ok(&["wallet", "words", "--yes"]);
    let question = "Print them? [y/N] ";
    for (answer, is_sure) in [
        ("\r", false),
        ("n\r", false),
        ("nyes\r", false),
        ("yes!\r", false),
        ("yesyesyesyesyesyesyes\r", false),
        (CTRL_D, false),
        ("y\r", true),
        ("Y\r", true),
        (" yes \r", true),
    ] {
        let mut terminal = Terminal::start(&site, &["wallet", "words"]);
        terminal.wait_for(question);
        terminal.type_in(answer);
        let (code, shown, echoes) = terminal.end();
        let are_shown =
            words.split(' ').zip(1..).all(|it| shown.contains(&format!("{:>2} {}", it.1, it.0)));
        assert_eq!((code == 0, are_shown), (is_sure, is_sure), "{answer:?}: {shown}");
        assert!(echoes);
    }
    let restored = talkative_site();
    for (answer, expected) in [(CTRL_D, 1), (CTRL_C, -1), ("abandon art\r", 1)] {
        let mut terminal = Terminal::start(&restored, &["restore", "--yes", "--words"]);
        terminal.wait_for("The 24 words, in one line:");
        terminal.type_in(answer);
        let (code, shown, echoes) = terminal.end();
        assert_eq!((code, echoes), (expected, true), "{answer:?}: {shown}");
        assert_eq!(contents(restored.data_dir()), []);
    }
    let mut terminal = Terminal::start(&restored, &["restore", "--yes", "--words"]);
    terminal.wait_for("The 24 words, in one line:");
    terminal.type_in(&format!("{words}\r"));
    let (code, shown, _) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert_eq!(restored.cli_ok(&["wallet", "words", "--yes"]), words);
}
