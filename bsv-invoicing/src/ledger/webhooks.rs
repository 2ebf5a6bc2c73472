//! Webhooks: how far each has come in the log of events, and its deliveries.

mod again;
mod change;
mod create;
mod forget;
mod lag;
mod note;
mod queries;
mod sent;

pub(crate) use self::again::filter_of;
pub use self::again::{Redeliver, Replay, Replayed};
pub use self::change::{ChangeWebhook, DeleteWebhook, RotateSecret};
pub use self::create::CreateWebhook;
pub use self::forget::ForgetDeliveries;
pub use self::lag::{GetLags, Lag};
pub use self::note::{AttemptMade, NoteAttempts};
pub use self::queries::{
    DueDelivery, GetDeliveries, GetDelivery, GetDueDeliveries, GetWebhook, GetWebhooks,
    ListedDelivery, LoadedWebhook,
};
pub use self::sent::GetSent;

use crate::ledger::rows::{Deliveries, DeliveriesByTime, WalletStoreError, Webhooks};
use crate::ledger::{Books, Refusal};
use crate::model::delivery::Delivery;
use crate::model::webhook::{Webhook, WebhookId, WebhookState};

impl Books<'_> {
    fn webhook(&self, id: WebhookId) -> Result<Webhook, WalletStoreError> {
        Ok(self.rows.get::<Webhooks>(&id)?.ok_or(Refusal::UnknownWebhook(id))?)
    }

    /// Replaces the delivery `before` by `after`.
    fn put_delivery(
        &mut self,
        key @ (id, number): (WebhookId, u64),
        before: Option<&Delivery>,
        after: &Delivery,
    ) -> Result<(), WalletStoreError> {
        if let Some((is_over, at)) = before.map(Delivery::place) {
            self.rows.remove::<DeliveriesByTime>((id, is_over, at, number))?;
        }
        let (is_over, at) = after.place();
        self.rows.put::<DeliveriesByTime>((id, is_over, at, number), &())?;
        self.rows.put::<Deliveries>(key, after)
    }

    /// Disables all webhooks. A restored backup needs this.
    pub(super) fn disable_webhooks(&mut self) -> Result<(), WalletStoreError> {
        for (id, mut webhook) in self.rows.range::<Webhooks>(..)? {
            webhook.state = WebhookState::Disabled;
            self.rows.put::<Webhooks>(id, &webhook)?;
        }
        Ok(())
    }
}

impl Webhook {
    fn forget_failures(&mut self) {
        self.failing_since = None;
        self.failures = 0;
    }
}
