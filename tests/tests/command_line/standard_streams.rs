//! The file name `-` stands for standard input and output.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use bsv_tests::{Done, Site};
use serde_json::Value;

const DATA: &str = r#"{"dataRefs":{"refs":[]}}"#;

fn site() -> Site {
    let mut site = Site::new();
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
    site
}

fn code(done: &Done) -> Value {
    let error: Value = serde_json::from_str(&done.stderr).unwrap();
    error["code"].clone()
}

/// Runs a command with a file as its standard input.
fn fed(site: &Site, arguments: &[&str], file: &Path) -> Done {
    Done::of(site.cli_command(arguments).stdin(File::open(file).unwrap()))
}

#[test]
fn a_backup_can_be_written_to_and_read_from_a_pipe() {
    let site = site();
    site.cli_ok(&["init"]);
    site.cli_ok(&["miner", "create", "--name", "pool"]);
    let words = site.cli_ok(&["wallet", "words", "--yes"]);
    let dir = tempfile::tempdir().unwrap();
    let [file, passphrase] = ["backup", "passphrase"].map(|name| dir.path().join(name));
    let out = File::create(&file).unwrap();
    let status = site.cli_command(&["backup", "-"]).stdout(out).status().unwrap();
    assert!(status.success());
    assert!(fs::metadata(&file).unwrap().len() > 1000);

    let other = self::site();
    let refused = fed(&other, &["restore", "-", "--json"], &file);
    assert_eq!(code(&refused), "needs-yes");
    fs::write(&passphrase, "of the backup\n").unwrap();
    let from_input = ["restore", "-", "--yes", "--passphrase-file", "-", "--json"];
    assert_eq!(code(&fed(&other, &from_input, &file)), "unfitting");
    let restored = fed(&other, &["restore", "-", "--yes"], &file);
    assert_eq!(restored.code, 0, "{restored:?}");
    assert_eq!(other.cli_ok(&["wallet", "words", "--yes"]), words);
    assert_eq!(other.cli_ok(&["miner", "list"]), site.cli_ok(&["miner", "list"]));

    // If the backup does not use standard input, the passphrase may.
    let another = Site::new();
    let arguments = ["restore", file.to_str().unwrap(), "--yes", "--passphrase-file", "-"];
    let restored = fed(&another, &arguments, &passphrase);
    assert_eq!(restored.code, 0, "{restored:?}");
}

#[test]
fn a_backup_to_a_closed_pipe_fails() {
    let site = site();
    site.cli_ok(&["init"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = site.cli_command(&["backup", "-", "--json"]);
    let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["code"], "backup-failed");
}

#[test]
fn a_backup_is_not_written_to_a_terminal() {
    let site = site();
    site.cli_ok(&["init"]);
    let mut terminal = bsv_tests::terminal::Terminal::start(&site, &["backup", "-"]);
    terminal.wait_for("a terminal cannot take a backup");
    assert_eq!(terminal.end().0, 1);
}

#[test]
fn documents_are_read_from_standard_input() {
    let site = Site::new();
    site.cli_ok(&["miner", "create", "--name", "pool", "--protocol", "1.0"]);
    for (command, text) in [("extensions", r#"{"x":1}"#), ("data-refs", DATA)] {
        let mut command = site.cli_command(&["miner", command, "--name", "pool", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), complaint.as_str()), (Some(0), ""));
    }
    let script = site.cli_ok(&["miner", "script", "--name", "pool", "--height", "9"]);
    assert!(script.contains(&hex::encode("\"x\":1")), "{script}");
    let shown = fed(&site, &["miner", "data-refs", "--name", "pool", "-"], Path::new("/dev/null"));
    assert_eq!(shown.code, 1, "empty input is no data: {shown:?}");
}
