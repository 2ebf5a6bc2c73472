//! Transactions that the network no longer shows, and lost transactions.

use bsv_invoicing::ledger::{
    Contest, Displace, Invalidate, Refusal, Refuse, TellContested, Unfollow,
};
use bsv_invoicing::transactions::{FollowedUntil, Purpose, TransactionState};

use crate::network::Place;
use crate::steps::Pick;
use crate::told::{DAY, is_lost, spends};
use crate::world::{World, pick};

impl World {
    pub(crate) fn contest(&mut self, choice: Pick) {
        let Some(transaction) = self.any(choice, spends) else { return };
        if self.network.place(self.told.entries[&transaction].transaction) != Place::Nowhere {
            return;
        }
        let at = self.at(&self.rows);
        self.execute(&Contest { transaction, now: self.now() }, |world, _| {
            if world.told.state(transaction) == TransactionState::Seen {
                world.told.set(transaction, TransactionState::Contested { told: false }, at);
            }
        })
        .unwrap();
    }

    pub(crate) fn tell_contested(&mut self, choice: Pick) {
        let is_contested = |state| matches!(state, TransactionState::Contested { .. });
        let Some(transaction) = self.any(choice, is_contested) else { return };
        let at = self.at(&self.rows);
        self.execute(&TellContested { transaction, now: self.now() }, |world, _| {
            world.told.set(transaction, TransactionState::Contested { told: true }, at);
        })
        .unwrap();
    }

    /// Only a transaction that the chain contradicts is displaced.
    pub(crate) fn displace(&mut self, choice: Pick) {
        let contradicted = self.told.entries.iter().filter(|(_, it)| {
            !is_lost(it.state) && self.network.rival_block(it.transaction).is_some()
        });
        let contradicted: Vec<_> = contradicted.map(|(number, _)| *number).collect();
        let Some(transaction) = pick(&contradicted, choice) else { return };
        let at = self.at(&self.rows);
        self.execute(&Displace { transaction, now: self.now() }, |world, _| {
            world.told.lose(transaction, TransactionState::Displaced, at);
        })
        .unwrap();
    }

    pub(crate) fn invalidate(&mut self, choice: Pick) {
        let Some(transaction) = self.any(choice, |_| true) else { return };
        if self.network.place(self.told.entries[&transaction].transaction) != Place::Nowhere {
            return;
        }
        let at = self.at(&self.rows);
        self.execute(&Invalidate { transaction, now: self.now() }, |world, _| {
            world.told.lose(transaction, TransactionState::Invalid, at);
        })
        .unwrap();
    }

    pub(crate) fn refuse(&mut self, choice: Pick) {
        let is_offered = |state| state == TransactionState::Offered;
        let Some(transaction) = self.any(choice, is_offered) else { return };
        if self.network.place(self.told.entries[&transaction].transaction) != Place::Nowhere {
            return;
        }
        let at = self.at(&self.rows);
        let _ =
            self.execute(&Refuse { transaction, now: self.now() }, |world, answer| {
                match world.told.entries[&transaction].purpose {
                    Purpose::Incoming(invoice) => {
                        assert!(answer.is_ok());
                        let index = world.told.entries[&transaction].transaction;
                        let is_long = world.network.transactions[index].is_long;
                        world.told.refuse(transaction, invoice, is_long, at);
                    }
                    _ => assert!(matches!(answer, Err(Refusal::NotInFlight(_)))),
                }
            });
    }

    pub(crate) fn unfollow(&mut self, choice: Pick) {
        let Some(transaction) = self.any(choice, is_lost) else { return };
        self.execute(&Unfollow { transaction }, |world, _| {
            let is_void = world.told.is_void(transaction);
            let entry = world.told.entries.get_mut(&transaction).unwrap();
            let Some(FollowedUntil::Time(until)) = entry.until else { return };
            let is_refused = entry.state == TransactionState::Refused;
            if is_refused && matches!(entry.purpose, Purpose::Incoming(_)) {
                world.told.entries.remove(&transaction);
            } else {
                let later = FollowedUntil::Time(until.after(DAY));
                entry.until = (!is_void).then_some(later);
                let is_long = world.network.transactions[entry.transaction].is_long;
                entry.are_bytes_dropped |= is_void && is_long;
            }
        })
        .unwrap();
    }
}
