//! Transactions from the mempool that wait until they are recorded.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use bsv_tx::{Transaction, Txid};

use crate::model::time::Timestamp;

/// How many transactions may wait, and how many bytes of memory they may take. Further ones wait in
/// the connection to the node.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 32 << 20;
/// How many transactions are recorded at once, and after how many bytes no more are added.
const AT_ONCE: usize = 100;
const BYTES_AT_ONCE: usize = 1 << 20;

/// A transaction from the mempool.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) txid: Txid,
    pub(super) transaction: Arc<Transaction>,
    pub(super) came_at: Timestamp,
}

/// The waiting transactions, in one line for each invoice. The lines take turns, so that many
/// transactions for one invoice do not hold up those for another. A transaction comes after those
/// whose outputs it spends.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    lines: HashMap<u64, VecDeque<Arrival>>,
    /// The lines, in the order of their turns. Each has a transaction.
    turns: VecDeque<u64>,
    waiting: HashSet<Txid>,
    bytes: usize,
}

impl Arrivals {
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < MOST && self.bytes < MOST_BYTES
    }

    /// Adds a transaction at the end of a line, unless it waits already.
    pub(super) fn add(&mut self, line: u64, arrival: Arrival) {
        if !self.waiting.insert(arrival.txid) {
            return;
        }
        self.bytes += size(&arrival.transaction);
        let waiting = self.lines.entry(line).or_default();
        if waiting.is_empty() {
            self.turns.push_back(line);
        }
        waiting.push_back(arrival);
    }

    /// Takes out the transactions to record next. There are some unless this is empty.
    pub(super) fn take(&mut self) -> Vec<Arrival> {
        let (mut taken, mut bytes, mut passed_over) = (Vec::new(), 0, 0);
        let is_full = |taken: &[Arrival], bytes| taken.len() >= AT_ONCE || bytes >= BYTES_AT_ONCE;
        while !is_full(&taken, bytes) && passed_over < self.turns.len() {
            let Some(line) = self.turns.pop_front() else { break };
            if !self.is_ready(line) {
                self.turns.push_back(line);
                passed_over += 1;
                continue;
            }
            passed_over = 0;
            if let Some(arrival) = self.pop(line) {
                bytes += size(&arrival.transaction);
                taken.push(arrival);
            }
        }
        if taken.is_empty() {
            // Each line waits for another one, so they came in the wrong order.
            let line = self.turns.pop_front();
            taken.extend(line.and_then(|line| self.pop(line)));
        }
        taken
    }

    /// Whether the first transaction of a line spends no output of a waiting one.
    fn is_ready(&self, line: u64) -> bool {
        let first = self.lines.get(&line).and_then(VecDeque::front);
        let mut spent = first.into_iter().flat_map(|it| &it.transaction.inputs);
        !spent.any(|input| self.waiting.contains(&input.previous_output.txid))
    }

    /// Takes the first transaction out of a line. The line gets its next turn if it has more.
    fn pop(&mut self, line: u64) -> Option<Arrival> {
        let waiting = self.lines.get_mut(&line)?;
        let arrival = waiting.pop_front()?;
        if waiting.is_empty() {
            self.lines.remove(&line);
        } else {
            self.turns.push_back(line);
        }
        self.waiting.remove(&arrival.txid);
        self.bytes -= size(&arrival.transaction);
        Some(arrival)
    }
}

/// About how many bytes of memory a transaction takes.
fn size(transaction: &Transaction) -> usize {
    const EACH: usize = 100;
    let unlocking = transaction.inputs.iter().map(|it| it.unlocking_script.as_bytes().len());
    let locking = transaction.outputs.iter().map(|it| it.locking_script.as_bytes().len());
    unlocking.chain(locking).map(|len| EACH + len).sum()
}

#[cfg(test)]
mod tests {
    use bsv_tx::{OutPoint, Script, TxIn};

    use super::*;

    /// A transaction that spends others.
    fn spending(number: u32, parents: &[&Arrival]) -> Arrival {
        let txids = parents.iter().map(|it| it.txid).chain([Txid::from_bytes([7; 32])]);
        let input = |txid| TxIn {
            previous_output: OutPoint { txid, vout: number },
            unlocking_script: Script::default(),
            sequence: u32::MAX,
        };
        let inputs = txids.map(input).collect();
        let transaction = Transaction { version: 1, inputs, outputs: vec![], lock_time: 0 };
        let came_at = Timestamp::from_micros(0);
        Arrival { txid: transaction.txid(), transaction: Arc::new(transaction), came_at }
    }

    fn txids(arrivals: &[Arrival]) -> Vec<Txid> {
        arrivals.iter().map(|it| it.txid).collect()
    }

    #[test]
    fn a_single_transaction_of_a_line_does_not_wait_for_the_many_of_another() {
        let mut arrivals = Arrivals::default();
        let many: Vec<_> = (0..1_000).map(|number| spending(number, &[])).collect();
        many.iter().for_each(|it| arrivals.add(1, it.clone()));
        let single = spending(1_000, &[]);
        arrivals.add(2, single.clone());
        let first = arrivals.take();
        assert_eq!((first.len(), first[1].txid), (AT_ONCE, single.txid));
        let mut taken = first.len();
        while !arrivals.is_empty() {
            taken += arrivals.take().len();
        }
        assert_eq!(taken, 1_001);
        assert_eq!((arrivals.waiting.len(), arrivals.lines.len(), arrivals.bytes), (0, 0, 0));
    }

    #[test]
    fn a_transaction_comes_after_those_whose_outputs_it_spends() {
        let mut arrivals = Arrivals::default();
        let [first, second] = [1, 2].map(|number| spending(number, &[]));
        let parent = spending(3, &[&second]);
        let child = spending(4, &[&first, &parent]);
        for (line, arrival) in [(1, &first), (1, &second), (1, &parent), (2, &child), (1, &first)] {
            arrivals.add(line, arrival.clone());
        }
        let all = [&first, &second, &parent, &child].map(|it| it.txid);
        assert_eq!(txids(&arrivals.take()), all);
        assert!(arrivals.is_empty());
    }

    #[test]
    fn transactions_in_the_wrong_order_do_not_wait_for_ever() {
        let parent = spending(1, &[]);
        let child = spending(2, &[&parent]);
        for lines in [[1, 1], [1, 2]] {
            let mut arrivals = Arrivals::default();
            arrivals.add(lines[0], child.clone());
            arrivals.add(lines[1], parent.clone());
            let mut taken = arrivals.take();
            taken.extend(arrivals.take());
            assert_eq!(taken.len(), 2, "{lines:?}");
            assert!(arrivals.is_empty());
        }
    }
}
