//! The programs under test. They are always built from the current sources.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The server.
pub fn server_program() -> &'static Path {
    &PROGRAMS.0
}

/// The command line.
pub fn cli_program() -> &'static Path {
    &PROGRAMS.1
}

/// An example of a library, by its name.
pub fn example_program(name: &str) -> PathBuf {
    EXAMPLES.join(name)
}

static PROGRAMS: LazyLock<(PathBuf, PathBuf)> = LazyLock::new(|| {
    let dir = build(&["--bin", "bsv-server", "--bin", "bsv-cli"]);
    (dir.join("bsv-server"), dir.join("bsv-cli"))
});

/// The directory of the examples.
static EXAMPLES: LazyLock<PathBuf> = LazyLock::new(|| build(&["--examples"]).join("examples"));

/// Builds programs, and returns their directory.
fn build(targets: &[&str]) -> PathBuf {
    eprintln!("building with cargo: {}", targets.join(" "));
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let output = cargo()
        // This builds the whole workspace, so that dependencies have the same features as in the
        // test build.
        .args(["build", "--quiet", "--workspace"])
        .args(targets)
        .args(["--profile", profile])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "cannot build the programs under test:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    target_dir().join(if profile == "dev" { "debug" } else { profile })
}

/// Cargo, in the workspace.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    // With the variables of the package whose tests run, build scripts and everything that depends
    // on them would be built again.
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"CARGO_PKG_") || name == "CARGO_MANIFEST_DIR" {
            cargo.env_remove(name);
        }
    }
    cargo.current_dir(workspace());
    cargo
}

/// The root of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Where cargo puts what it builds.
pub fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => workspace().join(dir),
        None => workspace().join("target"),
    }
}
