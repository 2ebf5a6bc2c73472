//! Following transactions until their Merkle proofs are stored, and again when their blocks leave
//! the chain.

mod payees_proof;
mod reorganisation;
mod schedule;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bsv_network::{ChainTip, Fate, NetworkSource, NodeError, Offered, Place, SourceError, Verdict};
use bsv_tx::Transaction;
use futures_util::{StreamExt, stream};

use self::reorganisation::Fork;
pub(crate) use self::schedule::Following;
use crate::error::Error;
use crate::ledger::queries::{GetAncestors, GetFollowed, GetFollowedOf, GetHolder, GetTransaction};
use crate::ledger::rows::{Damaged, FollowedBlock};
use crate::ledger::{
    ConfirmTip, Contest, Displace, FreeInvoices, Invalidate, Refuse, TellByServices, TellContested,
    Unfollow,
};
use crate::model::outgoing::OutgoingState;
use crate::model::process::Task;
use crate::model::time::Timestamp;
use crate::model::transaction::{Followed, FollowedUntil, Purpose, RawBytes, TransactionState};
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;
use crate::wallet::sources::{FOLLOWING_TURNS, away};

/// A transaction is lost once the network has refused the transaction itself, or has not known the
/// coins that it spends, at this many tips in a row.
const PATIENCE: u32 = 6;
/// How many transactions are read at once.
const PAGE: usize = 100;
/// How long a payment of which services say nothing keeps its invoice from being paid otherwise.
const HOLDING_PERIOD: Duration = Duration::from_secs(10 * 60);

/// The node that a round asks, and its tip at the beginning of the round.
#[derive(Clone, Copy)]
struct Round<'n> {
    source: &'n NetworkSource,
    tip: ChainTip,
    is_new_tip: bool,
}

impl Wallet {
    /// Does one round of following: records which transactions the network shows, finds proofs, and
    /// notices contested and displaced transactions. The caller repeats it about every second. It
    /// fails if the node cannot be used, and the next call goes on.
    pub(crate) async fn follow(self: &Arc<Self>, following: &mut Following) -> Result<(), Error> {
        let source = &self.sources()?.following;
        self.catch_up(source).await?;
        // The tip is set again at the end, so that everything is looked at again if the round
        // fails.
        let last = following.tip.take();
        let mut noted = last;
        let tip = self.note_tip(source, &mut noted).await?;
        let is_new_tip = last != Some(tip);
        let is_confirmed = source.confirms(&tip).await;
        if is_new_tip {
            let followed_to = last.filter(|_| !following.is_other_chain);
            let fork = self.forget_lost_blocks(source, tip, followed_to).await?;
            following.is_other_chain = fork == Fork::OtherChain;
            if !following.is_other_chain {
                self.store.execute(ConfirmTip(is_confirmed)).await?;
                self.go_on_to(source, tip, fork.height()).await?;
            }
        } else if following.is_confirmed != is_confirmed && !following.is_other_chain {
            self.store.execute(ConfirmTip(is_confirmed)).await?;
            self.follow_tip(FollowedBlock { height: tip.height, hash: tip.hash }).await?;
        }
        following.is_confirmed = is_confirmed;
        if !following.is_other_chain && source.reads_blocks() {
            self.rescan_for_a_turn(source, tip, &mut |_, _| ()).await?;
        }
        if last.is_none()
            && source.reads_blocks()
            && let Some(reason) = source.blind_spot().await.map_err(away)?
        {
            tracing::warn!("{reason}");
        }
        if last.is_none() && !source.excludes_rivals() {
            self.tell_by_services().await?;
        }
        let round = Round { source, tip, is_new_tip };
        following.begin_round(is_new_tip, source.spare_questions(), source.is_heard());
        self.read_news(following).await?;
        for number in following.take_open() {
            let row = self.store.get(GetFollowed(number.saturating_sub(1), 1)).await?;
            let still_there = row.into_iter().filter(|followed| followed.number == number);
            self.look_after_all(round, still_there.collect(), following).await?;
        }
        loop {
            let page = self.store.get(GetFollowed(following.last, PAGE)).await?;
            let Some(last) = page.last() else { break };
            following.last = last.number;
            self.look_after_all(round, page, following).await?;
        }
        following.end_round();
        if is_new_tip && self.settings.consolidate {
            let wallet = Arc::clone(self);
            following.talk(async move { wallet.consolidate_some().await });
        }
        following.tip = Some(tip);
        Ok(())
    }

    /// Takes note of the transactions that may have changed.
    async fn read_news(&self, following: &mut Following) -> Result<(), Error> {
        let (txids, is_missed) = self.news.take();
        if is_missed {
            following.note_missed();
        }
        if !txids.is_empty() {
            for number in self.store.get(GetFollowedOf(txids)).await? {
                following.note_told(number);
            }
        }
        Ok(())
    }

    /// Takes note of the fee rate and the time that go with a new tip, and of the tip as the last
    /// one.
    pub(crate) async fn note_tip(
        &self,
        source: &NetworkSource,
        last: &mut Option<ChainTip>,
    ) -> Result<ChainTip, Error> {
        let tip = source.tip().await.map_err(away)?;
        if *last != Some(tip) {
            let floor = source.policy().await.map_err(away)?.mining_fee_rate;
            self.fee_floor.store(floor, Ordering::Relaxed);
            if let Some(block) = source.header(&tip.hash).await.map_err(away)? {
                let micros = u64::from(block.header.time) * 1_000_000;
                self.note_tip_time(Timestamp::from_micros(micros));
            }
            *last = Some(tip);
        }
        Ok(tip)
    }

    /// Takes note that services tell of transactions that a node has shown before.
    async fn tell_by_services(&self) -> Result<(), Error> {
        let mut last = 0;
        loop {
            let page = self.store.get(GetFollowed(last, PAGE)).await?;
            let Some(end) = page.last() else { return Ok(()) };
            last = end.number;
            for followed in page.iter().filter(|followed| followed.record.is_judged()) {
                let (transaction, now) = (followed.number, self.now());
                self.store.execute(TellByServices { transaction, now }).await?;
            }
        }
    }

    async fn look_after_all(
        self: &Arc<Self>,
        round: Round<'_>,
        page: Vec<Followed>,
        following: &mut Following,
    ) -> Result<(), Error> {
        following.note_open(&page);
        let due = following.take_due(&page, round.is_new_tip);
        for (followed, place) in self.places(round.source, due).await {
            self.look_after(round, followed, place, following).await?;
        }
        Ok(())
    }

    /// Where the network has transactions. The proofs of those in blocks are stored.
    async fn places<'a>(
        &self,
        source: &NetworkSource,
        due: Vec<&'a Followed>,
    ) -> Vec<(&'a Followed, Result<Place, Error>)> {
        let looks: Vec<_> = due.iter().map(|followed| self.place(source, followed)).collect();
        // Asking at the same time lets their proofs share commits.
        let places: Vec<_> = stream::iter(looks).buffered(FOLLOWING_TURNS).collect().await;
        due.into_iter().zip(places).collect()
    }

    async fn place(&self, source: &NetworkSource, followed: &Followed) -> Result<Place, Error> {
        let txid = &followed.record.txid;
        let place = source.place(txid).await.map_err(away)?;
        if let Place::Mined(_) = place {
            self.find_proof(source, followed.number, txid).await?;
        }
        Ok(place)
    }

    async fn look_after(
        self: &Arc<Self>,
        round: Round<'_>,
        followed: &Followed,
        place: Result<Place, Error>,
        following: &mut Following,
    ) -> Result<(), Error> {
        let is_shown = matches!(place, Ok(Place::Unmined));
        let seen_to = match place {
            Ok(Place::Mined(_)) => {
                following.forget(followed.number);
                Ok(())
            }
            Ok(Place::Unmined) => self.see_in_mempool(round.source, followed, following).await,
            Ok(Place::Nowhere) => self.see_nowhere(round, followed, following).await,
            // One service knows a rival. The others may still take this one.
            Ok(Place::Disputed) => match self.note_rival(followed.number).await {
                Ok(()) => self.see_nowhere(round, followed, following).await,
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        match seen_to {
            Err(error @ (Error::NetworkAway(_) | Error::Store(_))) => return Err(error),
            // The other transactions need not wait for this one.
            Err(error) => tracing::debug!("transaction {}: {error}", followed.record.txid),
            Ok(()) => {}
        }
        if following.is_limited() || followed.record.state != TransactionState::Seen {
            let is_seen = is_shown && followed.record.state == TransactionState::Seen;
            following.wait(followed, is_seen);
        }
        Ok(())
    }

    async fn see_in_mempool(
        &self,
        source: &NetworkSource,
        followed: &Followed,
        following: &mut Following,
    ) -> Result<(), Error> {
        let Followed { number, record, .. } = *followed;
        following.forget(number);
        // A node judges anew what only services have told of.
        let is_known = record.word.is_none() || !source.excludes_rivals();
        if (record.state == TransactionState::Seen && is_known) || self.is_busy(number).await? {
            return Ok(());
        }
        match self.sight_of(source, number, &record.txid).await? {
            Some(sight) => self.note_unmined(source, number, sight).await,
            None => Ok(()),
        }
    }

    async fn see_nowhere(
        self: &Arc<Self>,
        round: Round<'_>,
        followed: &Followed,
        following: &mut Following,
    ) -> Result<(), Error> {
        let Followed { number, record, until, .. } = *followed;
        match record.state {
            TransactionState::Offered | TransactionState::Unseen => {
                if !self.give_up_silent(round.source, followed).await? {
                    self.resolve(followed, following);
                }
                Ok(())
            }
            TransactionState::Waiting
            | TransactionState::Seen
            | TransactionState::Contested { .. } => {
                self.send_again(round, followed, following).await
            }
            TransactionState::Displaced
            | TransactionState::Invalid
            | TransactionState::Refused
            | TransactionState::Cancelled => {
                if matches!(until, FollowedUntil::Time(until) if until <= self.expiry_time()) {
                    self.store.execute(Unfollow { transaction: number }).await?;
                }
                Ok(())
            }
            // A change of the chain makes the wallet look at its block.
            TransactionState::Mined(_) => Ok(()),
        }
    }

    /// Frees the invoices of a payment that services neither take nor refuse, after a while. A node
    /// decides at once. If nobody knows the coins that it spends, so that it cost its sender nothing, it
    /// counts as refused. Returns whether it does.
    async fn give_up_silent(
        &self,
        source: &NetworkSource,
        Followed { number, record, .. }: &Followed,
    ) -> Result<bool, Error> {
        let is_strangers = record.purpose.is_from_outside();
        let is_held_for_long = record.at.after(HOLDING_PERIOD) <= self.now();
        if !is_strangers || source.excludes_rivals() || !is_held_for_long {
            return Ok(false);
        }
        if !record.are_coins_known() && !self.is_busy(*number).await? {
            self.store.execute(Refuse { transaction: *number, now: self.now() }).await?;
            return Ok(true);
        }
        self.store.execute(FreeInvoices { transaction: *number }).await?;
        Ok(false)
    }

    /// Whether a process is offering a transaction to the network.
    pub(crate) async fn is_busy(&self, transaction: u64) -> Result<bool, Error> {
        Ok(self.store.get(GetHolder(Task::Offering(transaction))).await?.is_some())
    }

    /// Resumes a transaction whose outcome is open.
    fn resolve(self: &Arc<Self>, followed: &Followed, following: &mut Following) {
        let Followed { number, record, .. } = *followed;
        let wallet = Arc::clone(self);
        match record.purpose {
            Purpose::Incoming(invoice) => following.send(async move {
                wallet.resume_incoming(number, invoice, record.txid).await;
            }),
            Purpose::Outgoing(payment) => {
                following.talk(async move { wallet.resume(payment).await });
            }
            Purpose::Cancellation(payment) => {
                following.talk(async move { wallet.resume_cancellation(payment).await });
            }
            // They were never on their way.
            Purpose::Found | Purpose::Coinbase => {}
        }
    }

    /// Sends a transaction again that the node has lost, or finds out why the node does not take
    /// it.
    async fn send_again(
        self: &Arc<Self>,
        round: Round<'_>,
        followed: &Followed,
        following: &mut Following,
    ) -> Result<(), Error> {
        let source = round.source;
        let Followed { number, record, .. } = *followed;
        if let Purpose::Outgoing(payment) = record.purpose
            && self.outgoing_payment(payment).await?.state == OutgoingState::Cancelling
        {
            // The owner has decided against it.
            return Ok(());
        }
        if record.raw == RawBytes::Dropped {
            // The chain has lost more blocks than anyone expects. Others must send it again.
            return self.contest(number, following).await;
        }
        let transaction = self.transaction(number).await?;
        if !source.takes_extended() {
            let ancestors = self.store.get(GetAncestors(number)).await?;
            match self.show_ancestors(source, &ancestors).await {
                Err(error @ Error::Store(_)) => return Err(error),
                // The node's answer about the transaction itself decides.
                Err(error) => tracing::debug!("ancestors of transaction {}: {error}", record.txid),
                Ok(_) => {}
            }
        }
        let package = self.package(source, number, &transaction).await?;
        let refusal = match source.offer(&package).await {
            Ok(Offered::Unmined(sight)) => {
                following.forget(number);
                return match record.state {
                    TransactionState::Seen => Ok(()),
                    _ => self.note_unmined(source, number, sight).await,
                };
            }
            Ok(Offered::Mined) => return self.find_proof(source, number, &record.txid).await,
            Ok(Offered::NotShown) => None,
            Ok(Offered::Refused(verdict)) => Some(verdict),
            Ok(Offered::Disputed) => {
                following.forget_tips(number);
                return self.note_rival(number).await;
            }
            Ok(Offered::Unknown) => {
                following.forget_tips(number);
                return Ok(());
            }
            // A node that takes no transaction, for example in safe mode, says nothing about this one.
            Err(SourceError::Node(NodeError::SafeMode(_) | NodeError::Rejected { .. })) => None,
            Err(error) => return Err(away(error)),
        };
        if self.look(source, number, &record.txid).await? {
            following.forget(number);
            return Ok(());
        }
        self.contest(number, following).await?;
        if let Purpose::Outgoing(payment) = record.purpose {
            let (wallet, txid) = (Arc::clone(self), record.txid);
            following.talk(async move { wallet.ask_payee(number, payment, &txid).await });
        }
        self.judge(round, followed, &transaction, refusal, following).await
    }

    /// Records that the network does not show a transaction, and tells of it after a while.
    async fn contest(&self, transaction: u64, following: &mut Following) -> Result<(), Error> {
        self.store.execute(Contest { transaction, now: self.now() }).await?;
        if following.is_contested_for_long(transaction) {
            self.store.execute(TellContested { transaction, now: self.now() }).await?;
        }
        Ok(())
    }

    /// Decides whether a transaction that the network does not show is lost.
    async fn judge(
        &self,
        round: Round<'_>,
        followed: &Followed,
        transaction: &Transaction,
        refusal: Option<Verdict>,
        following: &mut Following,
    ) -> Result<(), Error> {
        let (number, now, height) = (followed.number, self.now(), round.tip.height);
        // What the wallet has sent is given up only on proof: nobody else knows whom services have told.
        let may_be_invalid =
            followed.record.purpose.is_from_outside() || round.source.excludes_rivals();
        let refusal = refusal.filter(|verdict| verdict.is_for_itself && may_be_invalid);
        match round.source.fate(transaction).await.map_err(away)? {
            Fate::Displaced => {
                self.note_displaced(followed).await?;
            }
            Fate::Orphaned if !following.is_other_chain => {
                if self.is_old_enough(round, followed).await?
                    && following.count_tips(number, height) >= PATIENCE
                {
                    self.note_displaced(followed).await?;
                }
            }
            Fate::Unclear if let Some(verdict) = refusal => {
                if following.count_tips(number, height) >= PATIENCE {
                    let (txid, reason) = (followed.record.txid, verdict.reason);
                    tracing::warn!("transaction {txid} is invalid: {reason}");
                    self.store.execute(Invalidate { transaction: number, now }).await?;
                }
            }
            Fate::Orphaned | Fate::Unclear => following.forget_tips(number),
        }
        Ok(())
    }

    async fn note_displaced(&self, followed: &Followed) -> Result<(), Error> {
        tracing::warn!("transaction {} was displaced", followed.record.txid);
        let displace = Displace { transaction: followed.number, now: self.now() };
        Ok(self.store.execute(displace).await?)
    }

    /// Whether a payment from outside is older than the tip. If it is newer, the node may still
    /// have to read blocks that make the coins that it spends.
    async fn is_old_enough(
        &self,
        Round { source, tip, .. }: Round<'_>,
        followed: &Followed,
    ) -> Result<bool, Error> {
        if !followed.record.purpose.is_from_outside() {
            return Ok(false);
        }
        let block = source.header(&tip.hash).await.map_err(away)?;
        let mined_at = block.map_or(0, |block| u64::from(block.header.time) * 1_000_000);
        Ok(followed.record.at.as_micros() <= mined_at)
    }

    pub(crate) async fn transaction(&self, number: u64) -> Result<Transaction, Error> {
        let missing = || WalletStoreError::from(Damaged::missing("a transaction"));
        Ok(self.store.get(GetTransaction(number)).await?.ok_or_else(missing)?)
    }
}
