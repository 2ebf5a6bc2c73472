//! Disks that are full or broken: a library that is loaded into the programs under test and makes
//! their operations on the data directory fail.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::LazyLock;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tempfile::TempDir;

use crate::build::{target_dir, workspace};
use crate::repetitions;
use crate::site::{Server, Site};

/// The kinds of operations that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operations {
    /// Operations that need space: writing, growing, creating, renaming.
    TakingRoom,
    /// Operations that wait for the disk.
    Syncing,
}

/// A fault.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The kind of operations.
    pub operations: Operations,
    /// The number of the first that fails, from 0.
    pub first: u64,
    /// How many fail.
    pub span: u64,
    /// Whether the first write that fails leaves half of its bytes.
    pub torn: bool,
    /// The error code that the operations give, or 0 if they hang until the faults end.
    pub error: i32,
}

impl Fault {
    /// The disk is full from the first operation on.
    pub const FULL: Self = Self {
        operations: Operations::TakingRoom,
        first: 0,
        span: u64::MAX,
        torn: false,
        error: ENOSPC,
    };
    /// The disk does not confirm that it has stored the data.
    pub const BROKEN: Self = Self { operations: Operations::Syncing, error: EIO, ..Self::FULL };

    /// The disk hangs.
    pub const HANGING: Self = Self { error: 0, ..Self::BROKEN };

    /// All kinds of faults, including those of a single operation, and those with a partial write.
    pub const KINDS: [Self; 6] = [
        Self::FULL,
        Self::BROKEN,
        Self { torn: true, ..Self::FULL },
        Self { span: 1, ..Self::FULL },
        Self { error: ENOSPC, ..Self::BROKEN },
        Self { span: 1, ..Self::BROKEN },
    ];

    /// All kinds in a full run. Otherwise the first two, with a note in the output.
    pub fn some_kinds(what: &str) -> &'static [Self] {
        &Self::KINDS[..repetitions(what, Self::KINDS.len(), 2)]
    }
}

/// Controls the faults in the programs of one site, or of one database.
#[derive(Debug)]
pub struct Faults {
    control: File,
    /// The environment of the programs.
    variables: [(&'static str, PathBuf); 3],
    _dir: Option<TempDir>,
}

static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| build_library("full_disk"));

/// "No space left on device".
pub const ENOSPC: i32 = 28;
/// "Input/output error".
pub const EIO: i32 = 5;

impl Faults {
    /// Loads the library into all programs that `site` starts from now on, and keeps the site on the disk. Nothing fails
    /// yet.
    pub fn install(site: &mut Site) -> Self {
        site.keep_on_disk();
        let dir = TempDir::new().unwrap();
        let faults = Self::below(site.data_dir(), dir.path().join("control"));
        for (name, value) in faults.variables() {
            site.set_env(name, value);
        }
        Self { _dir: Some(dir), ..faults }
    }

    /// Faults of operations on the files below a directory, in programs that are started with these
    /// [`variables`](Self::variables). Makes the file that controls them. Nothing fails yet.
    pub(crate) fn below(directory: &Path, control: PathBuf) -> Self {
        let file = File::create_new(&control).unwrap();
        file.set_len(9 * 8).unwrap();
        let variables = [
            ("LD_PRELOAD", LIBRARY.clone()),
            ("BSV_FAULT_DIR", fs::canonicalize(directory).unwrap()),
            ("BSV_FAULT_CONTROL", control),
        ];
        let faults = Self { control: file, variables, _dir: None };
        faults.end();
        faults
    }

    /// The environment that loads the library into a program.
    pub(crate) fn variables(&self) -> &[(&'static str, PathBuf)] {
        &self.variables
    }

    /// Counts operations from 0 again, and makes some fail.
    pub fn begin(&self, fault: Fault) {
        self.end();
        let gate = gate(fault.operations);
        self.set(8, u64::from(fault.torn));
        self.set(gate + 1, fault.span);
        self.set(gate + 2, u64::try_from(fault.error).unwrap());
        self.set(gate + 3, 0);
        self.set(gate, fault.first);
    }

    /// Ends the faults.
    pub fn end(&self) {
        for operations in [Operations::TakingRoom, Operations::Syncing] {
            self.set(gate(operations), u64::MAX);
        }
    }

    /// The number of operations since [`begin`](Self::begin).
    pub fn count(&self, operations: Operations) -> u64 {
        let mut bytes = [0; 8];
        self.control.read_exact_at(&mut bytes, (gate(operations) + 3) * 8).unwrap();
        u64::from_ne_bytes(bytes)
    }

    fn set(&self, word: u64, value: u64) {
        self.control.write_all_at(&value.to_ne_bytes(), word * 8).unwrap();
    }
}

/// The first of the words that control a kind of operations: `struct control` in the library.
fn gate(operations: Operations) -> u64 {
    match operations {
        Operations::TakingRoom => 0,
        Operations::Syncing => 4,
    }
}

/// Builds the library of `tests/faults/<name>.c`, which can be loaded into programs.
pub(crate) fn build_library(name: &str) -> PathBuf {
    let shelf = target_dir().join("test-faults");
    fs::create_dir_all(&shelf).unwrap();
    // Test programs that run at the same time may build it at the same time.
    let partial = shelf.join(format!("{name}.{}.so", process::id()));
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"])
        .arg(&partial)
        .arg(workspace().join(format!("tests/faults/{name}.c")))
        .arg("-ldl")
        .status()
        .expect("the build needs a C compiler too");
    assert!(status.success(), "cannot compile tests/faults/{name}.c");
    let library = shelf.join(format!("{name}.so"));
    fs::rename(&partial, &library).unwrap();
    library
}

/// Makes the operating system refuse files of a server above this size in bytes, or lifts that
/// limit.
pub fn limit_file_size(server: &Server, bytes: Option<u64>) {
    let pid = Pid::from_raw(server.id().try_into().unwrap());
    prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}
