//! A wall clock that tests can set: a library that is loaded into the programs under test and
//! shifts their time of day.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::faults;
use crate::site::Site;

static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| faults::build_library("clock"));

/// Controls the wall clock of the programs of one site.
#[derive(Debug)]
pub struct Clock {
    control: File,
    _dir: TempDir,
}

/// A day, in seconds.
pub const DAY: i64 = 24 * 60 * 60;

impl Clock {
    /// Loads the library into all programs that `site` starts from now on. At first the clock is
    /// right.
    pub fn install(site: &mut Site) -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("control");
        let clock = Self { control: File::create_new(&path).unwrap(), _dir: dir };
        clock.shift(0);
        site.set_env("LD_PRELOAD", &*LIBRARY);
        site.set_env("BSV_CLOCK_CONTROL", &path);
        clock
    }

    /// Sets the clock to this many seconds after the right time, or before it, and makes the
    /// running server accept it.
    pub fn set(&self, site: &Site, seconds: i64) {
        self.shift(seconds);
        site.cli_ok(&["wallet", "accept-clock"]);
    }

    /// Sets the clock to this many seconds after the right time, or before it.
    pub fn shift(&self, seconds: i64) {
        self.control.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }
}
