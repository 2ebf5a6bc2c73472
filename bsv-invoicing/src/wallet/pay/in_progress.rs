use tokio::sync::watch;

use crate::error::Error;
use crate::wallet::running::{Place, Running};

/// The payments that are being made, by their URLs, or by what else tells them apart: at most one of each.
#[derive(Debug, Default)]
pub(crate) struct PaymentsInProgress(Running<String, Paying>);

/// A payment that is being made.
#[derive(Clone, Debug)]
pub(in crate::wallet) struct Paying {
    /// Whether somebody waits for it, or it is looked after in the background.
    is_asked_for: bool,
    end: watch::Receiver<()>,
}

/// Keeps others from making the same payment, and tells them when it is done.
pub(in crate::wallet) struct PlaceToPay {
    _place: Place<String, Paying>,
    // Dropped last.
    _end: watch::Sender<()>,
}

impl PaymentsInProgress {
    /// Keeps others from making the same payment. What goes on with it in the background is waited for.
    pub(in crate::wallet) async fn place(&self, what: &str) -> Result<PlaceToPay, Error> {
        loop {
            match self.begin(what, true) {
                Ok(place) => return Ok(place),
                Err(Paying { is_asked_for: true, .. }) => return Err(Error::PaymentRunning),
                Err(Paying { mut end, .. }) => drop(end.changed().await),
            }
        }
    }

    /// Keeps others from making the same payment, unless somebody else does already.
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
