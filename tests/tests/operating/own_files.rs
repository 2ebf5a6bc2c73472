//! The command line itself reads and writes the files that arguments name. A server under systemd
//! could neither see them nor the system's /tmp.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use bsv_tests::{Done, Site, vectors};
use serde_json::Value;
use tempfile::TempDir;

/// For each process, this is its own working directory. Therefore, the server does not find there
/// what the command line finds.
const OWN: &str = "/proc/self/cwd";

/// A site whose command line works in one directory, and its server in another.
struct Scene {
    site: Site,
    of_cli: TempDir,
    of_server: TempDir,
}

impl Scene {
    fn new() -> Self {
        let (of_cli, of_server) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let mut site = Site::new();
        site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
        // The passphrase of the site's keystores. The keys of the import are in clear text and need
        // none.
        site.set_env("BSV_KEYSTORE_PASSPHRASE", "of the keys");
        Self { site, of_cli, of_server }
    }

    fn cli(&self, arguments: &[&str]) -> Value {
        let mut command = self.site.cli_command(&[arguments, &["--json"]].concat());
        let done = Done::of(command.current_dir(self.of_cli.path()));
        assert_eq!(done.code, 0, "{arguments:?}: {}", done.stderr);
        serde_json::from_str(&done.stdout).unwrap()
    }

    /// Runs every command that takes the name of a file.
    fn run(&self) {
        let names = |name: &str| format!("{OWN}/{name}");
        let newer = names("keys");
        vectors::write_home(&vectors::minerid_0_2(), self.of_cli.path());
        let imported = self.cli(&["importminerid", "--from", &names("home")]);
        assert!(!imported["aliases"].as_array().unwrap().is_empty(), "{imported}");

        let keystore = ["--revocation-keystore", &newer];
        let made = self.cli(
            &[&["miner", "create", "--name", "new", "--protocol", "1.0"][..], &keystore].concat(),
        );
        let roll = ["miner", "revocation-key", "rotate", "--name", "new"];
        let rolled = self.cli(&[&roll[..], &keystore].concat());
        assert_ne!(made["revocationKey"], rolled["revocationKey"]);
        let upgrade = ["miner", "upgrade", "--name", "first", "--yes"];
        self.cli(&[&upgrade[..], &keystore].concat());
        let verified = self.cli(&[&["keystore", "verify"][..], &keystore].concat());
        assert_eq!(verified["faults"], serde_json::json!([]));
        let readable = verified["readable"].as_array().unwrap();
        for key in ["revocation/new_1", "revocation/new_2", "revocation/first_1"] {
            assert!(readable.contains(&key.into()), "{verified}");
        }
        assert_eq!(
            names_in(&self.of_cli.path().join("keys")),
            ["first_1.key", "keystore.json", "lock", "new_1.key", "new_2.key"]
                .map(str::to_owned)
                .into()
        );

        let backup = self.cli(&["backup", &names("backup")]);
        assert!(self.of_cli.path().join("backup").is_file(), "{backup}");
        fs::create_dir(self.of_cli.path().join("backups")).unwrap();
        let kept = self.cli(&["backup", "--keep", "1", &names("backups")]);
        assert!(kept["file"].as_str().unwrap().contains("/bsv-regtest-"), "{kept}");
        fs::write(self.of_cli.path().join("extensions"), r#"{"PublicIP": "203.0.113.7"}"#).unwrap();
        self.cli(&["miner", "extensions", "--name", "new", &names("extensions")]);

        // This command is the last one, since any further one would need the new passphrase.
        fs::write(self.of_cli.path().join("passphrase"), "another one").unwrap();
        let change = ["keystore", "passphrase", "--new-passphrase-file", &names("passphrase")];
        self.cli(&[&change[..], &keystore].concat());
        assert_eq!(names_in(self.of_server.path()), BTreeSet::new(), "nothing lands elsewhere");
    }
}

fn names_in(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn server_in(site: &Site, dir: &Path) -> std::process::Child {
    let mut command: Command = site.server_command();
    command.current_dir(dir).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn each_file_that_an_argument_names_is_read_and_written_by_the_command_line() {
    let scene = Scene::new();
    let mut server = server_in(&scene.site, scene.of_server.path());
    let begun = std::time::Instant::now();
    while scene.site.cli(&["status", "--alive"]).code != 0 {
        assert!(begun.elapsed().as_secs() < 60, "the server does not answer");
    }
    scene.run();
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn without_a_server_the_command_line_reads_and_writes_the_same_files() {
    Scene::new().run();
}

#[test]
fn a_revocation_keystore_is_locked_while_it_is_used_and_only_made_by_commands_that_make_keys() {
    let scene = Scene::new();
    let keys = scene.of_cli.path().join("keys");
    let keystore = ["--revocation-keystore", keys.to_str().unwrap()];
    let create = ["miner", "create", "--name", "new", "--protocol", "1.0"];
    scene.cli(&create);
    let roll = [&["miner", "revocation-key", "rotate", "--name", "new"][..], &keystore].concat();
    let refused = scene.site.cli(&roll);
    assert!(
        refused.stderr.contains("there is no keystore of revocation keys in "),
        "{}",
        refused.stderr
    );
    assert!(!keys.exists());
    let create = ["miner", "create", "--name", "other", "--protocol", "1.0"];
    scene.cli(&[&create[..], &keystore].concat());
    let lock = fs::File::open(keys.join("lock")).unwrap();
    lock.lock().unwrap();
    let refused = scene.site.cli(&[&["keystore", "verify"][..], &keystore].concat());
    assert!(refused.code == 1 && refused.stderr.contains("is in use by"), "{}", refused.stderr);
}
