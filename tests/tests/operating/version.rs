use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bsv_tests::Done;
use bsv_tests::build::workspace;
use tempfile::TempDir;

/// The build script of the programs, compiled.
fn build_script(dir: &Path) -> PathBuf {
    let program = dir.join("build-script");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "-o"]).arg(&program);
    let done = Done::of(rustc.arg(workspace().join("bsv-server/build.rs")));
    assert_eq!(done.code, 0, "{}", done.stderr);
    program
}

fn git(dir: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
    let done = Done::of(Command::new("git").args(identity).args(arguments).current_dir(dir));
    assert_eq!(done.code, 0, "git {arguments:?}: {}", done.stderr);
    done.stdout.trim().to_owned()
}

#[test]
fn release_builds_tell_the_commit_that_they_are_built_from() {
    let dir = TempDir::new().unwrap();
    let program = build_script(dir.path());
    let told = |package: &Path, profile: &str, commit: Option<&str>| {
        let mut command = Command::new(&program);
        command.current_dir(package).env("PROFILE", profile).env_remove("BSV_COMMIT");
        command.envs(commit.map(|commit| ("BSV_COMMIT", commit)));
        let done = Done::of(&mut command);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let mut lines = done.stdout.lines().map(str::to_owned);
        lines.find_map(|line| {
            line.strip_prefix("cargo::rustc-env=BSV_BUILT_FROM=").map(str::to_owned)
        })
    };
    let package = dir.path().join("checkout/bsv-server");
    let elsewhere = dir.path().join("checkout/vendor/bsv-server");
    let unpacked = dir.path().join("unpacked/bsv-server");
    for package in [&package, &elsewhere, &unpacked] {
        fs::create_dir_all(package).unwrap();
    }
    let checkout = package.parent().unwrap();
    git(checkout, &["init", "--quiet"]);
    assert_eq!(told(&package, "release", None), None, "there is no commit yet");
    git(checkout, &["commit", "--quiet", "--allow-empty", "--message", "Begin"]);
    let commit = git(checkout, &["rev-parse", "--short=12", "HEAD"]);
    assert_eq!(told(&package, "release", None), Some(commit));
    assert_eq!(told(&package, "debug", None), None);
    assert_eq!(told(&elsewhere, "release", None), None, "vendored in another repository");
    assert_eq!(told(&unpacked, "release", None), None);
    let given = "0123456789abcdef0123456789abcdef01234567";
    assert_eq!(told(&unpacked, "release", Some(given)).as_deref(), Some(given));
    assert_eq!(told(&unpacked, "release", Some("x; rm -rf")), None);
}
