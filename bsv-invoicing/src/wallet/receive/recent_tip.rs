use std::time::Duration;

use bsv_network::NetworkSource;
use bsv_tx::Tip;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::error::Error;
use crate::wallet::sources::away;

/// The recent tip of the main chain, shared by all payments that wait for a block. Strangers decide
/// how many payments wait, and the node runs only few calls at a time.
#[derive(Debug, Default)]
pub(crate) struct RecentTip(Mutex<Option<(Instant, Tip)>>);

impl RecentTip {
    /// How long a tip counts as recent.
    pub(super) const AGE: Duration = Duration::from_millis(100);
    /// How long a caller waits for the answer to another caller's question.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// The tip. If several callers ask at once, one of them asks the node.
    pub(super) async fn get(&self, source: &NetworkSource) -> Result<Tip, Error> {
        let silent = |_| Error::NetworkAway("the node does not answer".to_owned());
        let mut recent = timeout(Self::PATIENCE, self.0.lock()).await.map_err(silent)?;
        if let Some((asked, tip)) = *recent
            && asked.elapsed() < Self::AGE
        {
            return Ok(tip);
        }
        let tip = source.tip().await.map_err(away)?;
        let tip = Tip { height: tip.height, median_time: tip.median_time };
        *recent = Some((Instant::now(), tip));
        Ok(tip)
    }
}
