//! Listening to what broadcasters tell by themselves.

use bsv_network::broadcasters::{Callback, ReasonToAsk};
use bsv_network::{NetworkSource, SecretString};
use bsv_tx::Txid;

use crate::wallet::Wallet;

impl Wallet {
    /// The bearer token with which broadcasters call back. All processes that have the same seed have
    /// the same one.
    pub fn callback_token(&self) -> SecretString {
        Callback::token_of(&self.keys.callbacks)
    }

    /// Whether a callback comes from somebody who knows the token. The time that this takes tells
    /// nothing about the right token.
    pub fn is_callback_token(&self, token: &str) -> bool {
        Callback::is_token_of(&self.keys.callbacks, token)
    }

    /// Takes note of a callback: a broadcaster says that these transactions may have changed. That
    /// changes nothing, and is only a reason to ask. Those that the wallet does not follow are not
    /// asked about.
    pub fn hear_callback(&self, txids: &[Txid]) {
        if let Some(sources) = &self.sources {
            for txid in txids {
                let reason = ReasonToAsk::Changed(*txid);
                sources.following.hear(reason);
                self.note_news(&sources.following, reason);
            }
        }
    }

    /// Listens to what services tell by themselves, for as long as it is polled.
    pub(super) async fn keep_listening(&self) {
        if let Some(sources) = &self.sources {
            let source = &sources.following;
            source.listen(|reason| self.note_news(source, reason)).await;
        }
    }

    fn note_news(&self, source: &NetworkSource, reason: ReasonToAsk) {
        // A node is asked about everything again and again.
        if source.spare_questions().is_some() {
            self.news.note(reason);
        }
    }
}
