//! A user is created.

use crate::ledger::idempotency::Route;
use crate::ledger::keys::MAX_NUMBER;
use crate::ledger::rows::{Damaged, Users, WalletStoreError};
use crate::ledger::{Books, Command, Refusal};
use crate::model::event::EventKind;
use crate::model::idempotency::IdempotencyKey;
use crate::model::time::Timestamp;
use crate::model::user::UserDraft;

/// A user as stored: the id and the details.
pub type UserRecord = (u64, UserDraft);

/// Creates a user with the next id, or finds the one that was created with this key.
#[derive(Clone, Debug)]
pub struct CreateUser {
    /// The details.
    pub details: UserDraft,
    /// If the key is already known, the answer is the user that was created first.
    pub idempotency: Option<IdempotencyKey>,
    /// The time.
    pub now: Timestamp,
}

impl Command for CreateUser {
    type Answer = UserRecord;

    fn run(&self, books: &mut Books<'_>) -> Result<UserRecord, WalletStoreError> {
        let key = self.idempotency.as_ref();
        if let Some(id) = books.first_answer(Route::Users, key, self.now)? {
            let details = books.rows.get::<Users>(&id)?;
            return Ok((id, details.ok_or_else(|| Damaged::missing("a user"))?));
        }
        let last = books.figures.last_user;
        if last - books.figures.last_user_before >= MAX_NUMBER {
            return Err(Refusal::Full(last).into());
        }
        let id = last + 1;
        books.figures.last_user = id;
        books.rows.add::<Users>(id, &self.details)?;
        books.append_event(books.next_event_at(self.now), EventKind::UserCreated, id)?;
        books.remember(Route::Users, key, id, self.now)?;
        Ok((id, self.details.clone()))
    }
}
