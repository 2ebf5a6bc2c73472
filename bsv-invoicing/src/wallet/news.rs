//! What others say may have changed: a reason to ask services, and nothing else.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bsv_network::broadcasters::ReasonToAsk;
use bsv_tx::Txid;

/// Transactions that may have changed since they were last asked about.
#[derive(Debug, Default)]
pub(crate) struct News(Mutex<Unread>);

/// What was told.
#[derive(Debug, Default)]
struct Unread {
    /// In the order in which they were told, each once.
    txids: VecDeque<Txid>,
    /// Whether any transaction may have changed.
    is_missed: bool,
}

/// How many transactions wait to be asked about. Those that are told beside them are asked about in
/// their time.
const MOST: usize = 1_000;
/// How many of them are looked up at once.
const AT_ONCE: usize = 100;

impl News {
    pub(crate) fn note(&self, reason: ReasonToAsk) {
        let mut unread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match reason {
            ReasonToAsk::Changed(txid) => {
                if unread.txids.len() < MOST && !unread.txids.contains(&txid) {
                    unread.txids.push_back(txid);
                }
            }
            ReasonToAsk::Missed => unread.is_missed = true,
        }
    }

    /// Takes out those transactions that were told first, and whether any other one may have changed.
    pub(crate) fn take(&self) -> (Vec<Txid>, bool) {
        let mut unread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = unread.txids.len().min(AT_ONCE);
        let txids = unread.txids.drain(..count).collect();
        (txids, std::mem::take(&mut unread.is_missed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(number: u32) -> ReasonToAsk {
        let mut txid = [0; 32];
        txid[..4].copy_from_slice(&number.to_le_bytes());
        ReasonToAsk::Changed(Txid::from_bytes(txid))
    }

    #[test]
    fn the_number_of_transactions_that_wait_is_bounded() {
        let news = News::default();
        for number in 0..3_000 {
            news.note(changed(number));
            news.note(changed(number));
        }
        let mut counts = Vec::new();
        while counts.last() != Some(&0) {
            let (txids, is_missed) = news.take();
            assert!(!is_missed);
            counts.push(txids.len());
        }
        assert_eq!(counts, [vec![AT_ONCE; MOST / AT_ONCE], vec![0]].concat());
        news.note(ReasonToAsk::Missed);
        assert_eq!([news.take(), news.take()], [(vec![], true), (vec![], false)]);
    }

    #[test]
    fn those_that_are_told_again_and_again_do_not_keep_another_one_waiting() {
        let news = News::default();
        for round in 0..4 {
            let others = (0..256).map(changed);
            others.chain([changed(7_777)]).for_each(|reason| news.note(reason));
            let taken = news.take().0;
            if taken.iter().any(|txid| ReasonToAsk::Changed(*txid) == changed(7_777)) {
                assert_eq!(round, 2);
                return;
            }
        }
        panic!("it was never taken");
    }
}
