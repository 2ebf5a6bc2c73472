//! Passes the commit that the program is built from to the compiler, in release builds. Other
//! builds would be repeated after each commit.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BSV_COMMIT");
    let told = std::env::var("BSV_COMMIT").ok().filter(|commit| is_commit(commit));
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = told.or_else(|| is_release.then(checked_out).flatten());
    if let Some(commit) = commit {
        println!("cargo::rustc-env=BSV_BUILT_FROM={commit}");
    }
}

/// The commit that this package is checked out at. `None` if the package is in no repository, or in
/// the repository of something else.
fn checked_out() -> Option<String> {
    let place = git(&["rev-parse", "--show-prefix"])?;
    if place != "bsv-server/" {
        return None;
    }
    // The log grows with each commit and each checkout.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "--short=12", "HEAD"]).filter(|commit| is_commit(commit))
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
