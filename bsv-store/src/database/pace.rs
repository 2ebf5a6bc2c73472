use std::path::Path;
use std::thread;

use rustix::process::setpriority_process;

use crate::error::StoreError;
use crate::files::FileError;

/// Whether a copy is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Hurried,
    /// The processors are left to others.
    Unhurried,
}

impl Pace {
    /// Runs a part of the work on the file at `path` that holds up nobody.
    pub(super) fn run<T: Send>(
        self,
        path: &Path,
        work: impl FnOnce() -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        if self == Self::Hurried {
            return work();
        }
        let work = || {
            // Of a thread, on Linux; that it hurries is no reason not to do it.
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
