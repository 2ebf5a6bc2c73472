use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::chain::MOST_AT_ONCE;
use super::file::HeaderFile;
use super::place::{Behind, Place, now};
use super::source::{Answers, CatchUpError, CaughtUp, HeaderSource};
use super::source_error::SourceError;

/// The questions to one source, until it fails.
#[derive(Debug)]
pub(super) struct Visit<'a> {
    file: &'a Arc<HeaderFile>,
    place: &'a Place,
    source: HeaderSource,
    answers: Answers,
    begun: Instant,
    /// When it has last answered.
    answered: Instant,
    /// When it has last changed the best branch.
    useful: Instant,
}

/// How long a source may take to give the headers that it claims to have. Each answer that brings the
/// chain forward, or many new headers, begins this time anew.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(60);
/// The time between two questions to a source that cannot tell of new blocks, or does not.
pub(super) const PERIOD: Duration = Duration::from_secs(30);
/// The time between two questions to a source that has not given what it claims.
const CLAIM_PERIOD: Duration = Duration::from_secs(5);
/// The shortest time between two questions to a source whose answers bring nothing new.
const SHORTEST_PERIOD: Duration = Duration::from_secs(1);
/// How long a source may bring nothing new while the newest header is old.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// The age of the newest header, in seconds, from which it is old here. Blocks come every 10 minutes.
const OLD: u64 = 3_600;

impl<'a> Visit<'a> {
    pub(super) fn new(file: &'a Arc<HeaderFile>, place: &'a Place, source: HeaderSource) -> Self {
        let begun = Instant::now();
        let answers = Answers::default();
        Self { file, place, source, answers, begun, answered: begun, useful: begun }
    }

    /// For how long the source has answered.
    pub(super) fn lasted(&self) -> Duration {
        self.answered - self.begun
    }

    /// Asks again and again until the source fails, or is idle while there are others. Answers why.
    pub(super) async fn stay(&mut self, has_others: impl Fn() -> bool) -> CatchUpError {
        loop {
            let asked = Instant::now();
            if let Err(error) = self.catch_up().await {
                return error;
            }
            if self.is_idle() && has_others() {
                return CatchUpError::Idle { name: self.source.name().to_owned() };
            }
            if let Err(error) = self.wait().await {
                return error.into();
            }
            // A source may announce what it likes.
            sleep_until(asked + SHORTEST_PERIOD).await;
        }
    }

    /// Whether another source may know more: some give nothing, or not all that they have.
    fn is_idle(&self) -> bool {
        let time = self.file.chain().tip().time;
        let is_old = time.is_none_or(|time| now().saturating_sub(time.into()) > OLD);
        is_old && self.useful.elapsed() >= IDLE_TIMEOUT
    }

    /// Asks until the source has given all that it has, and what it claims to have.
    pub(super) async fn catch_up(&mut self) -> Result<CaughtUp, CatchUpError> {
        let mut deadline = Instant::now() + CLAIM_TIMEOUT;
        loop {
            let claimed = self.source.claimed_height().await?;
            self.answers.begin_below_tip(self.file);
            loop {
                let has_more = self.ask(claimed, deadline).await?;
                self.answered = Instant::now();
                let Answers { new, is_useful, shown, .. } = self.answers;
                if is_useful {
                    self.useful = self.answered;
                }
                if is_useful || new > MOST_AT_ONCE / 2 {
                    deadline = Instant::now() + CLAIM_TIMEOUT;
                }
                let owes = self.owes(claimed);
                self.place.note_answer(self.source.name(), self.behind(has_more), owes, shown);
                if !has_more && !owes {
                    return Ok(self.answers.caught_up);
                }
                match (has_more, new) {
                    (true, 0) => sleep(SHORTEST_PERIOD).await,
                    (true, _) => {}
                    (false, _) => break,
                }
            }
            sleep(CLAIM_PERIOD).await;
        }
    }

    /// Asks once. A source that owes headers is not waited for after the deadline.
    async fn ask(&mut self, claimed: u32, deadline: Instant) -> Result<bool, CatchUpError> {
        let owes = self.owes(claimed);
        let asked = self.answers.take_next(&mut self.source, self.file, now());
        if !owes {
            return asked.await;
        }
        match timeout_at(deadline, asked).await {
            Ok(has_more) => has_more,
            Err(_) => Err(CatchUpError::Withheld { name: self.source.name().to_owned(), claimed }),
        }
    }

    /// Whether the source has not given the headers that it claims to have. One whose next header is
    /// ahead of the clock has.
    fn owes(&self, claimed: u32) -> bool {
        let CaughtUp { height, is_ahead, .. } = self.answers.caught_up;
        !is_ahead && height.max(Some(self.file.chain().tip().height)) < Some(claimed)
    }

    fn behind(&self, has_more: bool) -> Option<Behind> {
        let Answers { caught_up, new, is_full, .. } = self.answers;
        if caught_up.is_ahead {
            Some(Behind::SlowClock)
        } else {
            (has_more && is_full && new > 0).then_some(Behind::MoreToCome)
        }
    }

    /// Waits until the source may have new blocks.
    async fn wait(&mut self) -> Result<(), SourceError> {
        match &mut self.source {
            HeaderSource::Peer(peer) => {
                timeout(PERIOD, peer.announcement()).await.unwrap_or(Ok(()))
            }
            HeaderSource::Chaintracks(_) => {
                sleep(PERIOD).await;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use bsv_tx::Network;
    use tokio::io::duplex;

    use super::super::checkpoint::Checkpoint;
    use super::super::peer::Peer;
    use super::super::peer::tests::{HEADERS, headers, play};
    use super::super::place::{Origin, Outcome, SourceState};
    use super::*;

    const NETWORK: Network = Network::Livenet;
    const NAME: &str = "node:8333";

    fn place() -> Place {
        Place::new(Origin::Node(NAME.to_owned()))
    }

    fn open(directory: &tempfile::TempDir) -> Arc<HeaderFile> {
        let checkpoint =
            Checkpoint::from_headers(NETWORK, 900_146, &HEADERS[..147 * 80], 0).unwrap();
        let path = directory.path().join("headers");
        Arc::new(HeaderFile::open(&path, NETWORK, &checkpoint).unwrap())
    }

    /// A node that claims a height, and answers each question with these headers.
    async fn node(height: i32, range: Range<usize>) -> HeaderSource {
        let (ours, theirs) = duplex(1 << 20);
        tokio::spawn(play(theirs, height, vec![Some(headers(range)), None]));
        HeaderSource::Peer(Peer::greet(NETWORK, NAME, ours).await.unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_does_not_give_what_it_claims_is_named_until_it_does() {
        let directory = tempfile::tempdir().unwrap();
        let (file, place) = (open(&directory), place());
        for round in 1..=2 {
            let begun = Instant::now();
            // The headers that it gives again and again are known after the first time.
            let source = node(909_999, 147..447).await;
            let mut visit = Visit::new(&file, &place, source);
            let error = timeout(Duration::from_secs(300), visit.stay(|| true)).await.unwrap();
            let spent = begun.elapsed();
            assert!(spent >= CLAIM_TIMEOUT && spent < 2 * CLAIM_TIMEOUT, "{spent:?}");
            place.note_left(&error);
            sleep(Duration::from_secs(30 * round)).await;
            let report = place.report();
            assert_eq!(report.state, SourceState::Withholds);
            assert_eq!(report.outcomes[Outcome::Withheld as usize], round);
            let withheld = report.withheld.unwrap();
            assert_eq!((withheld.name.as_str(), withheld.claimed), (NAME, 909_999));
            // It is asked again.
            place.note_answer(NAME, None, true, None);
            assert_eq!(place.report().state, SourceState::Withholds);
        }
        let source = node(900_446, 447..447).await;
        assert!(Visit::new(&file, &place, source).catch_up().await.is_ok());
        let report = place.report();
        assert_eq!((report.state, report.withheld), (SourceState::Live, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_brings_nothing_new_is_left_if_there_are_others() {
        let directory = tempfile::tempdir().unwrap();
        let (file, place) = (open(&directory), place());
        let hour = Duration::from_secs(3_600);
        // What it brings at first is new.
        let mut visit = Visit::new(&file, &place, node(0, 147..447).await);
        let begun = Instant::now();
        let error = timeout(hour, visit.stay(|| true)).await.unwrap();
        assert!(matches!(error, CatchUpError::Idle { .. }), "{error}");
        let spent = begun.elapsed();
        assert!(spent >= IDLE_TIMEOUT && spent <= IDLE_TIMEOUT + 2 * PERIOD, "{spent:?}");
        place.note_left(&error);
        assert_eq!(place.report().state, SourceState::Live);
        let mut visit = Visit::new(&file, &place, node(0, 147..447).await);
        assert!(timeout(hour, visit.stay(|| false)).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_is_not_idle_while_the_newest_header_is_new() {
        let directory = tempfile::tempdir().unwrap();
        let (path, network) = (directory.path().join("headers"), Network::Regtest);
        let file = Arc::new(HeaderFile::open(&path, network, &Checkpoint::of(network)).unwrap());
        let mut header = file.chain().header_at(0).unwrap();
        header.previous_block = header.block_hash();
        (header.version, header.time) = (4, now() as u32);
        while !header.has_proof_of_work() {
            header.nonce += 1;
        }
        file.extend(&[header], now()).unwrap();
        let place = place();
        let mut visit = Visit::new(&file, &place, node(0, 0..0).await);
        assert!(timeout(Duration::from_secs(3_000), visit.stay(|| true)).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn headers_that_are_not_followed_yet_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let (file, place) = (open(&directory), place());
        let mut visit = Visit::new(&file, &place, node(0, 147..2_147).await);
        visit.answers.begin_below_tip(&file);
        let has_more = visit.ask(0, Instant::now()).await.unwrap();
        assert_eq!(visit.behind(has_more), Some(Behind::MoreToCome));
        place.note_answer(NAME, visit.behind(has_more), false, None);
        assert_eq!(place.report().behind, Some(Behind::MoreToCome));
        visit.catch_up().await.unwrap();
        assert_eq!(place.report().behind, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_was_set_aside_is_told_for_an_hour() {
        let place = place();
        place.note_left(&CatchUpError::Withheld { name: "other".to_owned(), claimed: 1 });
        sleep(Duration::from_secs(3_590)).await;
        // Another source at the place changes nothing.
        place.note_answer(NAME, None, false, None);
        let report = place.report();
        assert_eq!((report.state, report.withheld.is_some()), (SourceState::Live, true));
        sleep(Duration::from_secs(20)).await;
        assert_eq!(place.report().withheld, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_shows_the_tip_that_another_one_has_given() {
        let directory = tempfile::tempdir().unwrap();
        let (file, first, second) = (open(&directory), place(), place());
        for (place, height, range) in [
            (&first, 900_446, 147..447),
            // It answers from below the tip on.
            (&second, 900_446, 446..447),
        ] {
            let mut visit = Visit::new(&file, place, node(height, range).await);
            assert!(timeout(Duration::from_secs(20), visit.stay(|| true)).await.is_err());
            assert_eq!(place.report().last_header, Some(file.chain().tip().hash));
            assert_eq!(file.chain().tip().height, 900_446);
        }
        // One that gives nothing shows nothing, whatever it claims.
        let third = place();
        let mut visit = Visit::new(&file, &third, node(900_446, 0..0).await);
        assert!(timeout(Duration::from_secs(20), visit.stay(|| true)).await.is_err());
        assert_eq!(third.report().last_header, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_announces_without_end_is_asked_once_a_second() {
        let directory = tempfile::tempdir().unwrap();
        let (file, place) = (open(&directory), place());
        let (ours, theirs) = duplex(1 << 20);
        // Each answer is followed by an announcement.
        let answer = vec![Some(headers(0..0)), None, Some(headers(0..0))];
        tokio::spawn(play(theirs, 0, answer));
        let source = HeaderSource::Peer(Peer::greet(NETWORK, NAME, ours).await.unwrap());
        let mut visit = Visit::new(&file, &place, source);
        assert!(timeout(Duration::from_secs(20), visit.stay(|| true)).await.is_err());
        let asked = place.report().outcomes[Outcome::Answered as usize];
        assert!((15..=21).contains(&asked), "{asked}");
        assert!(visit.lasted() > Duration::from_secs(15));
    }
}
