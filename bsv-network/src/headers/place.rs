use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bsv_tx::BlockHash;
use tokio::time::Instant;

use super::source::CatchUpError;
use super::source_error::SourceError;
use crate::service::host_of;

/// A place for one source at a time.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) origin: Origin,
    report: Mutex<SourceReport>,
}

/// Where the source at a place comes from.
#[derive(Debug)]
pub(super) enum Origin {
    /// An HTTP service at this URL.
    Url(String),
    /// A node at this name.
    Node(String),
    /// A node that one of these seeds names.
    Seeds(Vec<&'static str>),
}

/// What is known of a source.
#[derive(Clone, Debug)]
pub struct SourceReport {
    /// `chaintracks` or `p2p`.
    pub kind: &'static str,
    /// The configured host, with its port if the settings name one, or `seeds`.
    pub host: String,
    /// What it does.
    pub state: SourceState,
    /// The time of its last answer that could be used, in seconds since 1970.
    pub last_answer: Option<u64>,
    /// How many questions had each outcome.
    pub outcomes: [u64; Outcome::ALL.len()],
    /// The last valid header that it has given, even if others had given the same one before.
    pub last_header: Option<BlockHash>,
    /// The source that was last set aside because it does not give the headers that it claims to
    /// have, if it has not given them since. It is told for an hour.
    pub withheld: Option<Withheld>,
    /// Why its answers show that the headers lack blocks.
    pub(super) behind: Option<Behind>,
}

/// What a source claims, and has not given within a minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// The host and the port.
    pub name: String,
    /// The height of the block that it claims to have.
    pub claimed: u32,
    at: Instant,
}

/// What a source does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// It has not answered yet.
    New,
    /// It answers.
    Live,
    /// It does not answer.
    Away,
    /// It answers nonsense.
    Wrong,
    /// It has not given the headers that it claims to have.
    Withholds,
}

/// How a question to a source ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer can be used.
    Answered,
    /// There is no answer.
    Away,
    /// The answer is nonsense, or a header in it is not valid.
    Nonsense,
    /// It has not given the headers that it claims to have.
    Withheld,
}

/// Why headers may lack blocks of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// The newest block is older than three hours, or its time is not known. Regtest has no such
    /// limit.
    OldTip,
    /// A source has valid headers that are not followed yet.
    MoreToCome,
    /// A source has headers that are valid but for their time, which is more than two hours ahead of
    /// this machine's clock. The clock may be slow.
    SlowClock,
}

/// How long a source is told that was set aside.
const TOLD: Duration = Duration::from_secs(3_600);

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Answered, Self::Away, Self::Nonsense, Self::Withheld];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Away => "away",
            Self::Nonsense => "nonsense",
            Self::Withheld => "withheld",
        }
    }
}

impl SourceState {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Live => "live",
            Self::Away => "away",
            Self::Wrong => "wrong",
            Self::Withholds => "withholds",
        }
    }
}

impl Place {
    pub(super) fn new(origin: Origin) -> Self {
        let (kind, host) = match &origin {
            Origin::Url(url) => ("chaintracks", host_of(url)),
            Origin::Node(name) => ("p2p", name.clone()),
            Origin::Seeds(_) => ("p2p", "seeds".to_owned()),
        };
        let report = Mutex::new(SourceReport {
            kind,
            host,
            state: SourceState::New,
            last_answer: None,
            outcomes: Default::default(),
            last_header: None,
            withheld: None,
            behind: None,
        });
        Self { origin, report }
    }

    pub(super) fn is_seeded(&self) -> bool {
        matches!(self.origin, Origin::Seeds(_))
    }

    pub(super) fn report(&self) -> SourceReport {
        let mut report = self.locked();
        report.withheld.take_if(|withheld| withheld.at.elapsed() > TOLD);
        report.clone()
    }

    /// Notes an answer of the source with this name. `owes` says that it has not given yet what it
    /// claims to have, `last_header` is the last valid header that it has given.
    pub(super) fn note_answer(
        &self,
        name: &str,
        behind: Option<Behind>,
        owes: bool,
        last_header: Option<BlockHash>,
    ) {
        let mut report = self.locked();
        report.last_header = last_header.or(report.last_header);
        report.last_answer = Some(now());
        report.behind = behind;
        report.outcomes[Outcome::Answered as usize] += 1;
        let was_aside = report.withheld.as_ref().is_some_and(|withheld| withheld.name == name);
        report.state = if was_aside && owes { SourceState::Withholds } else { SourceState::Live };
        if was_aside && !owes {
            report.withheld = None;
        }
    }

    /// Notes and logs why a source is left.
    pub(super) fn note_left(&self, error: &CatchUpError) {
        let mut report = self.locked();
        report.behind = None;
        let (state, outcome) = match error {
            CatchUpError::File(error) => {
                tracing::error!("headers cannot be stored: {error}");
                return;
            }
            // It has answered, and another one at the place is asked at once.
            CatchUpError::Idle { .. } => {
                tracing::info!(host = report.host.as_str(), kind = report.kind, "{error}");
                return;
            }
            CatchUpError::Source(SourceError::Unreachable { .. }) => {
                (SourceState::Away, Outcome::Away)
            }
            CatchUpError::Withheld { name, claimed } => {
                let (name, claimed, at) = (name.clone(), *claimed, Instant::now());
                report.withheld = Some(Withheld { name, claimed, at });
                (SourceState::Withholds, Outcome::Withheld)
            }
            _ => (SourceState::Wrong, Outcome::Nonsense),
        };
        let is_same = report.state == state;
        report.outcomes[outcome as usize] += 1;
        report.state = state;
        let (host, kind) = (report.host.as_str(), report.kind);
        match outcome {
            // Nodes often close connections.
            Outcome::Away if is_same => tracing::debug!(host, kind, "no headers: {error}"),
            Outcome::Away => tracing::info!(host, kind, "no headers: {error}"),
            _ => tracing::warn!(host, kind, "no headers: {error}"),
        }
    }

    fn locked(&self) -> MutexGuard<'_, SourceReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time of this machine's clock, in seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
