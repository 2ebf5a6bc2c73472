use std::sync::Arc;

use bsv_tx::Txid;
use tokio::sync::watch;

use crate::error::Error;

/// A payment that is being offered to the network: its transaction, and its outcome.
#[derive(Clone, Debug)]
pub(crate) struct Broadcast {
    pub(super) txid: Txid,
    pub(super) outcome: watch::Receiver<Option<Outcome>>,
}

pub(super) type Outcome = Result<(), Arc<Error>>;

/// Waits until the outcome of a payment is known.
pub(super) async fn outcome_of(mut outcome: watch::Receiver<Option<Outcome>>) -> Outcome {
    let decided = outcome.wait_for(Option::is_some).await;
    let broken_off = || Error::OutcomeUnknown("the wallet is stopping".to_owned());
    decided.map_err(|_| broken_off())?.clone().unwrap_or_else(|| Err(broken_off().into()))
}
