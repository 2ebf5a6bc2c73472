use std::path::Path;
use std::thread;

use rustix::process::setpriority_process;

use crate::error::StoreError;
use crate::files::FileError;

/// Whether somebody waits for a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Hurried,
    /// Nobody waits: other work on the processors comes first.
    Unhurried,
}

impl Pace {
    /// Runs work on the file at `path`. The work must hold no lock that others wait for.
    pub(super) fn run<T: Send>(
        self,
        path: &Path,
        work: impl FnOnce() -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        if self == Self::Hurried {
            return work();
        }
        let work = || {
            // On Linux, this sets the priority of the thread only. If it fails, the work runs all
            // the same.
            let _ = setpriority_process(None, LOWEST_PRIORITY);
            work()
        };
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("store check".to_owned());
            let start_error = FileError::new("start a thread that reads", path);
            let thread = thread.spawn_scoped(scope, work).map_err(start_error)?;
            thread.join().unwrap_or(Err(StoreError::Panicked))
        })
    }
}

const LOWEST_PRIORITY: i32 = 19;

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn only_what_is_unhurried_has_a_low_priority() {
        let priority = || getpriority_process(None).unwrap();
        let before = priority();
        let run = |pace: Pace| pace.run(Path::new("rows.redb"), || Ok(priority())).unwrap();
        assert_eq!(run(Pace::Unhurried), LOWEST_PRIORITY);
        assert_eq!([run(Pace::Hurried), priority()], [before; 2]);
    }
}
