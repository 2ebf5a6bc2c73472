//! Killing a program at a chosen step: before or after it waits for the disk or communicates.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::faults::build_library;
use crate::site::Site;

static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| build_library("kill"));

/// Controls when the programs of one site are killed.
#[derive(Debug)]
pub struct Killer {
    control: File,
    _dir: TempDir,
}

impl Killer {
    /// Loads the library into all programs that `site` starts from now on. Nothing is killed yet.
    pub fn install(site: &mut Site) -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("control");
        let control = File::create_new(&path).unwrap();
        let killer = Self { control, _dir: dir };
        killer.spare();
        site.set_env("LD_PRELOAD", &*LIBRARY);
        site.set_env("BSV_KILL_CONTROL", &path);
        killer
    }

    /// Counts steps from 1 again, and kills at this one.
    pub fn kill_at(&self, step: u64) {
        self.set(0, u64::MAX);
        self.set(1, 0);
        self.set(0, step);
    }

    /// Stops killing.
    pub fn spare(&self) {
        self.kill_at(u64::MAX);
    }

    /// The number of steps since counting last started.
    pub fn steps(&self) -> u64 {
        let mut count = [0; 8];
        self.control.read_exact_at(&mut count, 8).unwrap();
        u64::from_ne_bytes(count)
    }

    fn set(&self, word: u64, value: u64) {
        self.control.write_all_at(&value.to_ne_bytes(), word * 8).unwrap();
    }
}
