//! Idempotent answers: a repeated request with the same key gets the answer to the first one.

use crate::ledger::idempotency::{Answered, Route};
use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{IdempotencyAges, IdempotentAnswers, WalletStoreError};
use crate::ledger::{Books, Refusal};
use crate::model::idempotency::{IDEMPOTENCY_PERIOD, IdempotencyKey};
use crate::model::time::Timestamp;

impl Books<'_> {
    /// The number of the resource that was created with this key, if the key is known. Refused if
    /// the request is another one.
    pub(crate) fn first_answer(
        &self,
        route: Route,
        idempotency: Option<&IdempotencyKey>,
        now: Timestamp,
    ) -> Result<Option<u64>, WalletStoreError> {
        match self.remembered(route, idempotency, now)? {
            None => Ok(None),
            Some((number, true)) => Ok(Some(number)),
            Some((_, false)) => Err(Refusal::KeyReused.into()),
        }
    }

    /// The number of the resource that was created with this key, if the key is known, and whether
    /// the request is the same.
    pub(crate) fn remembered(
        &self,
        route: Route,
        idempotency: Option<&IdempotencyKey>,
        now: Timestamp,
    ) -> Result<Option<(u64, bool)>, WalletStoreError> {
        let Some(IdempotencyKey { key, request_hash }) = idempotency else { return Ok(None) };
        let answered = self.rows.get::<IdempotentAnswers>(&(route, key.clone()))?;
        let now = self.next_event_at(now);
        let known = answered.filter(|answered| answered.at.after(IDEMPOTENCY_PERIOD) > now);
        Ok(known.map(|answered| (answered.number, answered.request_hash == *request_hash)))
    }

    pub(crate) fn remember(
        &mut self,
        route: Route,
        idempotency: Option<&IdempotencyKey>,
        number: u64,
        now: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let Some(IdempotencyKey { key, request_hash }) = idempotency else { return Ok(()) };
        let at = self.next_event_at(now);
        if let Some(old) = self.rows.get::<IdempotentAnswers>(&(route, key.clone()))? {
            self.rows.remove::<IdempotencyAges>((old.at, route, key.clone()))?;
        }
        let answered = Answered { request_hash: *request_hash, number, at };
        self.rows.put::<IdempotentAnswers>((route, key.clone()), &answered)?;
        self.rows.put::<IdempotencyAges>((at, route, key.clone()), &())
    }

    /// Deletes keys that are older than [`IDEMPOTENCY_PERIOD`], up to `limit`. Returns how many.
    pub(crate) fn forget_keys(
        &mut self,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, WalletStoreError> {
        let end = now.before(IDEMPOTENCY_PERIOD).as_micros() + 1;
        let end = (Timestamp::from_micros(end), Route::Invoices, String::new());
        let old = self.rows.first::<IdempotencyAges>(..end, Ascending, limit)?;
        for ((at, route, key), ()) in &old {
            self.rows.remove::<IdempotencyAges>((*at, *route, key.clone()))?;
            self.rows.remove::<IdempotentAnswers>((*route, key.clone()))?;
        }
        Ok(old.len())
    }
}
