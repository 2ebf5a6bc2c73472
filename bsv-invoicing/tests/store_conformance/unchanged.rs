//! Commands that change nothing.

use bsv_invoicing::invoices::PaymentRules;
use bsv_invoicing::ledger::rows::FollowedBlock;
use bsv_invoicing::ledger::{
    Claim, DropBytes, FollowTip, LetGo, Notice, Noticed, SetRules, ShownPlace, Sighting,
};
use bsv_invoicing::store::{Task, WalletStore};
use bsv_tx::BlockHash;

use super::making::*;
use super::noticed::{MEMPOOL, block, paying_invoices, shown};
use super::*;

/// How many payments wait for a block.
const WAITING: usize = 2_000;

/// Looks again and again at payments that wait for a block, at one that is seen and at one that is mined. `commits` tells
/// how many commits there were until then.
pub(crate) async fn run_unchanged(store: &impl WalletStore, commits: impl Fn() -> u64) {
    shown(store, 1).await;
    let waiting = ShownPlace::Mempool(Sighting::judged(false));
    let noticed = |salt: usize, place: &ShownPlace| Noticed {
        transaction: (&paying_invoices(&[(1, 5)], salt)).into(),
        place: place.clone(),
        came_at: at(1),
        ancestry: Vec::new(),
    };
    let wait = || (0..WAITING).map(|salt| noticed(salt, &waiting));
    let notice = Notice { shown: wait().collect(), now: at(1) };
    store.execute(notice.clone()).await.unwrap();
    let [mined, seen] = [WAITING + 1, WAITING + 2].map(|number| number as u64);
    let own = [noticed(WAITING, &block(7)), noticed(WAITING + 1, &MEMPOOL)];
    store.execute(Notice { shown: own.to_vec(), now: at(2) }).await.unwrap();
    let tip = FollowedBlock { height: 7, hash: BlockHash::from_bytes([7; 32]) };
    store.execute(FollowTip { tip, now: at(0) }).await.unwrap();
    store.execute(Claim { task: Task::Following, number: 1 }).await.unwrap();
    store.execute(SetRules { rules: PaymentRules::default() }).await.unwrap();
    let (before, held) = (commits(), Held::of(store).await);
    for _ in 0..3 {
        for number in 1..=WAITING as u64 {
            store.see_waiting(number, at(3)).await.unwrap();
            store.contest(number, at(3)).await.unwrap();
        }
        store.execute(notice.clone()).await.unwrap();
        store.execute(Notice { shown: own.to_vec(), now: at(3) }).await.unwrap();
        store.see(seen, at(3)).await.unwrap();
        store.mine(mined, proof(7), at(3)).await.unwrap();
        store.tell_contested(seen, at(3)).await.unwrap();
        store.follow_tip(tip).await.unwrap();
        store.execute(DropBytes { transaction: 1, tip: 200 }).await.unwrap();
        store.execute(Claim { task: Task::Following, number: 1 }).await.unwrap();
        store.execute(LetGo { task: Task::Following, number: 9 }).await.unwrap();
        store.execute(SetRules { rules: PaymentRules::default() }).await.unwrap();
        store.release(99).await.unwrap();
    }
    assert_eq!(commits(), before);
    assert_eq!(Held::of(store).await, held);
    store.see(1, at(4)).await.unwrap();
    assert_eq!(commits(), before + 1);
}
