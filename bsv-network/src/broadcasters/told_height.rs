use std::time::Duration;

use tokio::time::Instant;

/// How far a broadcaster knows the chain, as it says.
#[derive(Debug, Default)]
pub(super) struct ToldHeight {
    /// What it has told last, and when. It may have told nothing.
    told: Option<(Option<u32>, Instant)>,
    asked: Option<Instant>,
}

/// How long a height is believed. A broadcaster may lose its chain, and a lie need not last.
const BELIEVED: Duration = Duration::from_secs(60);
/// How often a broadcaster is asked at most.
const PERIOD: Duration = Duration::from_secs(2);
/// The same if it has told enough, or does not tell. It is asked again before its word is too old.
const LONG_PERIOD: Duration = Duration::from_secs(30);

impl ToldHeight {
    /// The height, if it was told lately.
    pub(super) fn known(&self) -> Option<u32> {
        let (height, at) = self.told?;
        height.filter(|_| at.elapsed() < BELIEVED)
    }

    /// Whether it is time to ask, if somebody wants to know whether it is at this height.
    pub(super) fn is_due(&self, wanted: u32) -> bool {
        let tells_nothing = matches!(self.told, Some((None, _)));
        let period = match tells_nothing || self.known() >= Some(wanted) {
            true => LONG_PERIOD,
            false => PERIOD,
        };
        self.asked.is_none_or(|asked| asked.elapsed() >= period)
    }

    /// Takes note of a question that begins.
    pub(super) fn ask(&mut self) {
        self.asked = Some(Instant::now());
    }

    /// Takes note of an answer.
    pub(super) fn hear(&mut self, height: Option<u32>) {
        self.told = Some((height, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    /// When a broadcaster is asked whether it is at height 7, in seconds, if it answers this.
    async fn asked(answers: impl Fn(u64) -> Option<Option<u32>>) -> Vec<u64> {
        let (mut height, mut asked) = (ToldHeight::default(), Vec::new());
        for second in 0..100 {
            if height.is_due(7) {
                asked.push(second);
                height.ask();
                if let Some(told) = answers(second) {
                    height.hear(told);
                }
            }
            advance(Duration::from_secs(1)).await;
        }
        asked
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_tells_enough_or_nothing_is_seldom_asked() {
        for told in [Some(7), Some(8), None] {
            assert_eq!(asked(|_| Some(told)).await, [0, 30, 60, 90], "{told:?}");
        }
        let often: Vec<_> = (0..100).step_by(2).collect();
        assert_eq!(asked(|_| Some(Some(6))).await, often);
        assert_eq!(asked(|_| None).await, often);
    }

    #[tokio::test(start_paused = true)]
    async fn a_height_is_believed_for_a_minute() {
        let mut height = ToldHeight::default();
        assert_eq!(height.known(), None);
        height.ask();
        height.hear(Some(4_000_000_000));
        advance(Duration::from_secs(59)).await;
        assert_eq!(height.known(), Some(4_000_000_000));
        advance(Duration::from_secs(1)).await;
        assert_eq!(height.known(), None);
        assert!(height.is_due(7));
        height.hear(Some(6));
        assert_eq!(height.known(), Some(6));
        height.hear(None);
        assert_eq!(height.known(), None);
    }
}
