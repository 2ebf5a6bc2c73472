use bsv_invoicing::dpp::ReceivedTerms;
use bsv_tests::ancestry::bump;
use bsv_tests::purse::{Coin, FEE, send};
use bsv_tests::{Node, Purse};
use bsv_tx::{Ancestry, Beef, BeefVersion, Bump, Transaction, TxOut};

/// The satoshis of each invoice.
pub(super) const PRICE: u64 = 1_000;
/// The satoshis of each coin.
const COIN: u64 = 2_000;
/// How many coins a mined transaction makes. Payments carry the whole transaction along.
const EACH: usize = 20;

/// Mined coins, with the transactions that made them and their Merkle paths.
pub(super) struct Coins {
    purse: Purse,
    parents: Vec<(Transaction, Bump)>,
    coins: Vec<(Coin, usize)>,
}

impl Coins {
    /// So many coins on the chain of a node.
    pub(super) fn of(node: &Node, count: usize) -> Self {
        let made = count.div_ceil(EACH);
        let purse = Purse::filled(node, made, EACH as u64 * COIN + 10 * FEE);
        let transactions: Vec<_> = (0..made)
            .map(|_| {
                let output = TxOut { satoshis: COIN, locking_script: purse.script() };
                let transaction = purse.spend_all(&[purse.coin()], vec![output; EACH]);
                send(node, &transaction);
                transaction
            })
            .collect();
        node.mine(1);
        let coins = |(parent, transaction): (usize, &Transaction)| {
            purse.coins_of(transaction).into_iter().map(move |coin| (coin, parent))
        };
        let coins = transactions.iter().enumerate().flat_map(coins).collect();
        let with_path = |transaction: Transaction| {
            let path = bump(node, &transaction.txid());
            (transaction, path)
        };
        Self { parents: transactions.into_iter().map(with_path).collect(), coins, purse }
    }

    /// A payment of these terms, with its mined parent.
    pub(super) fn pay(&mut self, terms: &ReceivedTerms) -> Beef {
        let (coin, parent) = self.coins.pop().unwrap();
        let destinations = terms.terms.destinations.iter();
        let output = |satoshis, script| TxOut { satoshis, locking_script: script };
        let outputs = destinations.map(|it| output(it.satoshis, it.script.clone())).collect();
        let (transaction, path) = self.parents[parent].clone();
        let ancestry =
            Ancestry { transactions: vec![transaction], bumps: vec![path], ..Ancestry::default() };
        let paying = self.purse.spend(&[coin], outputs, FEE);
        Beef::new(BeefVersion::V1, paying, ancestry).unwrap()
    }
}
