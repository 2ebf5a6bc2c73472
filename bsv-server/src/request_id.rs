use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tracing::field::{DisplayValue, display};

/// The name of a request in the log: 16 hexadecimal digits that do not soon occur again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(u64);

tokio::task_local! {
    /// The request that the current task answers.
    static CURRENT: RequestId;
}

/// Distinguishes the ids of different processes.
static PROCESS: LazyLock<u64> = LazyLock::new(|| getrandom::u32().map_or(0, u64::from));
static COUNT: AtomicU32 = AtomicU32::new(0);

impl RequestId {
    pub(crate) fn next() -> Self {
        Self(*PROCESS << 32 | u64::from(COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Runs the work of a task that answers this request.
    pub(crate) async fn scope<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }

    /// The id of the request that the current task answers, for the field `request` of a log line.
    pub(crate) fn current() -> Option<DisplayValue<Self>> {
        CURRENT.try_with(|id| display(*id)).ok()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
