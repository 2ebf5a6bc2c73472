use tokio::sync::watch;

use crate::error::Error;
use crate::wallet::running::{Place, Running};

/// The payments that are being made, by URL or another name. There is at most one of each name.
#[derive(Debug, Default)]
pub(crate) struct PaymentsInProgress(Running<String, Paying>);

/// A payment that is being made.
#[derive(Clone, Debug)]
pub(in crate::wallet) struct Paying {
    /// Whether a caller waits for it. Otherwise it is followed in the background.
    is_asked_for: bool,
    end: watch::Receiver<()>,
}

/// Keeps others from making the same payment. Dropping it tells them that the payment is done.
pub(in crate::wallet) struct PlaceToPay {
    _place: Place<String, Paying>,
    // The last field, so that it is dropped last.
    _end: watch::Sender<()>,
}

impl PaymentsInProgress {
    /// Keeps others from making the same payment. Waits while the payment is followed in the
    /// background, and fails if another caller is making it.
    pub(in crate::wallet) async fn place(&self, what: &str) -> Result<PlaceToPay, Error> {
        loop {
            match self.begin(what, true) {
                Ok(place) => return Ok(place),
                Err(Paying { is_asked_for: true, .. }) => return Err(Error::PaymentRunning),
                Err(Paying { mut end, .. }) => drop(end.changed().await),
            }
        }
    }

    /// Keeps others from making the same payment, unless it is already being made.
    pub(in crate::wallet) fn begin(
        &self,
        what: &str,
        is_asked_for: bool,
    ) -> Result<PlaceToPay, Paying> {
        let (sender, end) = watch::channel(());
        let place = self.0.begin(what.to_owned(), Paying { is_asked_for, end })?;
        Ok(PlaceToPay { _place: place, _end: sender })
    }
}
