use tokio::sync::watch;

use crate::error::Error;
use crate::wallet::running::{Place, Running};

/// The payments that are being made, by their URLs: at most one to each.
#[derive(Debug, Default)]
pub(crate) struct PaymentsInProgress(Running<String, Paying>);

/// A payment that is being made.
#[derive(Clone, Debug)]
pub(super) struct Paying {
    /// Whether somebody waits for it, or it is looked after in the background.
    is_asked_for: bool,
    end: watch::Receiver<()>,
}

/// Keeps others from making the same payment, and tells them when it is done.
pub(super) struct PlaceToPay {
    _place: Place<String, Paying>,
    // Dropped last.
    _end: watch::Sender<()>,
}

impl PaymentsInProgress {
    /// Keeps others from making a payment to this URL. What goes on there in the background is waited
    /// for.
    pub(super) async fn place(&self, url: &str) -> Result<PlaceToPay, Error> {
        loop {
            match self.begin(url, true) {
                Ok(place) => return Ok(place),
                Err(Paying { is_asked_for: true, .. }) => return Err(Error::PaymentRunning),
                Err(Paying { mut end, .. }) => drop(end.changed().await),
            }
        }
    }

    /// Keeps others from making a payment to this URL, unless somebody else does already.
    pub(super) fn begin(&self, url: &str, is_asked_for: bool) -> Result<PlaceToPay, Paying> {
        let (sender, end) = watch::channel(());
        let place = self.0.begin(url.to_owned(), Paying { is_asked_for, end })?;
        Ok(PlaceToPay { _place: place, _end: sender })
    }
}
