//! Tests of the units in `deploy/systemd`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use bsv_tests::build::{cli_program, server_program, workspace};
use bsv_tests::{Done, Site};
use tempfile::TempDir;

const UNITS: [&str; 4] = [
    "bsv-server.service",
    "bsv-server.socket",
    "bsv-server-backup.service",
    "bsv-server-backup.timer",
];

fn unit(name: &str) -> PathBuf {
    workspace().join("deploy/systemd").join(name)
}

/// The settings of a unit, each with all its values.
fn settings(name: &str) -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(unit(name)).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut settings: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once('=')) {
        settings.entry(name.to_owned()).or_default().push(value.to_owned());
    }
    settings
}

#[test]
fn systemd_understands_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no systemd-analyze");
        return;
    }
    let dir = TempDir::new().unwrap();
    // The paths of the programs of this test.
    for name in UNITS {
        let text = fs::read_to_string(unit(name)).unwrap();
        let text = text
            .replace("/usr/local/bin/bsv-server", server_program().to_str().unwrap())
            .replace("/usr/local/bin/bsv-cli", cli_program().to_str().unwrap())
            .replace("User=bsv-server", "User=daemon")
            .replace("Group=bsv-server", "Group=daemon");
        fs::write(dir.path().join(name), text).unwrap();
    }
    let units = UNITS.map(|name| dir.path().join(name));
    let done = Done::of(Command::new("systemd-analyze").args(["--man=no", "verify"]).args(units));
    assert_eq!((done.code, done.stderr.trim()), (0, ""), "{}", done.stdout);
}

#[test]
fn the_socket_unit_has_the_addresses_of_the_default_settings() {
    let site = Site::new();
    let mut shown = site.cli_command(&["config", "show", "--json"]);
    let shown = Done::of(shown.env_remove("BSV_CONFIG"));
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    let address = |settings: &serde_json::Value| {
        format!("{}:{}", settings["host"].as_str().unwrap(), settings["port"])
    };
    let addresses = [&shown, &shown["wallet"], &shown["payments"]].map(address);
    assert_eq!(settings("bsv-server.socket")["ListenStream"], addresses);
}

#[test]
fn the_units_run_commands_that_exist() {
    let server = &settings("bsv-server.service")["ExecStart"][0];
    let backup = &settings("bsv-server-backup.service")["ExecStart"][0];
    let site = Site::new();
    let dir = TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (config, passphrase) = (file("settings.toml", ""), file("passphrase", "of the backup"));
    let backups = dir.path().join("backups");
    fs::create_dir(&backups).unwrap();
    site.cli_ok(&["init"]);
    let replaced = backup
        .replace("/etc/bsv-server/settings.toml", &config)
        .replace("/etc/bsv-server/backup-passphrase", &passphrase)
        .replace("/var/backups/bsv-server", backups.to_str().unwrap())
        .replace(" --data-dir /var/lib/bsv-server", "");
    let words: Vec<_> = replaced.split(' ').skip(1).collect();
    site.cli_ok(&words);
    assert_eq!(fs::read_dir(&backups).unwrap().count(), 1);
    // `--help` shows that the server's arguments are right, without starting it in the unit's data
    // directory.
    let words = server.split(' ').skip(1).collect::<Vec<_>>();
    let mut help = Command::new(server_program());
    let done = Done::of(help.args(words).arg("--help"));
    assert_eq!(done.code, 0, "{}", done.stderr);
}

/// The files of an archive or a package, unpacked by a command.
fn unpacked(unpack: &mut Command, dir: &TempDir) -> PathBuf {
    let done = Done::of(unpack);
    assert_eq!(done.code, 0, "{}", done.stderr);
    dir.path().to_owned()
}

#[test]
fn the_archive_and_the_package_hold_programs_that_run_and_units_that_find_them() {
    let out = TempDir::new().unwrap();
    let programs = server_program().parent().unwrap();
    let mut make = Command::new(workspace().join("deploy/package"));
    let made = Done::of(make.arg(programs).env("CARGO_TARGET_DIR", out.path()));
    assert_eq!(made.code, 0, "{}", made.stderr);
    let files: Vec<_> = made.stdout.lines().collect();
    let has_dpkg = Command::new("dpkg-deb").arg("--version").output().is_ok();
    assert_eq!(files.len(), if has_dpkg { 2 } else { 1 }, "{}", made.stderr);

    let [archive, package] = [(); 2].map(|()| TempDir::new().unwrap());
    let mut tar = Command::new("tar");
    tar.args(["--strip-components=1", "-xzf", files[0], "-C"]).arg(archive.path());
    let archive = unpacked(&mut tar, &archive);
    let version = format!("{} {}", "bsv-server", env!("CARGO_PKG_VERSION"));
    let says_version = |program: PathBuf| {
        let said = Done::of(Command::new(program).arg("--version")).stdout;
        assert!(said.starts_with(&version), "{said}");
    };
    says_version(archive.join("bsv-server"));
    for file in ["bsv-cli", "README.md", "LICENSE", "docs/shop.md", "systemd/bsv-server.service"] {
        assert!(archive.join(file).is_file(), "{file}");
    }
    if !has_dpkg {
        eprintln!("there is no dpkg-deb: no Debian package is made here");
        return;
    }
    let mut dpkg = Command::new("dpkg-deb");
    let package = unpacked(dpkg.arg("-x").arg(files[1]).arg(package.path()), &package);
    says_version(package.join("usr/bin/bsv-server"));
    let mut script = Command::new("dpkg-deb");
    let script = Done::of(script.args(["--info", files[1], "postinst"])).stdout;
    for made in ["/etc/bsv-server", "/var/lib/bsv-server", "/var/backups/bsv-server"] {
        assert!(script.contains(made), "{made}: {script}");
    }
    for name in UNITS {
        let text = fs::read_to_string(package.join("usr/lib/systemd/system").join(name)).unwrap();
        let started = text.lines().filter_map(|line| line.strip_prefix("ExecStart=/"));
        for command in started {
            let program = command.split(' ').next().unwrap();
            assert!(package.join(program).is_file(), "{name}: {program}");
        }
    }
}
