//! BEEFs that lie: each is refused with a reason, before the node gets anything.

use std::thread;

use bsv_tests::ancestry::{beef, bump};
use bsv_tests::purse::FEE;
use bsv_tests::rival::{Rival, height};
use bsv_tests::{Bill, Gate};
use bsv_tx::{
    Ancestry, Beef, BeefVersion, Bump, MerkleBranch, MerkleTree, Sibling, Transaction, TxOut, Txid,
    write_var_int,
};

use super::counter::{Counter, PRICE, check_problem};
use super::forms::{check_taken, post_transaction};
use super::merchant::wait_until;

/// A payment that spends a coin in a block, and that comes with a false ancestry.
struct Liar {
    counter: Counter,
    gate: Gate,
    id: String,
    bill: Bill,
    /// The transaction in a block, and the payment that spends it.
    parent: Transaction,
    payment: Transaction,
    /// A transaction that nobody has, and a payment that spends it.
    invented: [Transaction; 2],
}

impl Liar {
    fn new() -> Self {
        let (counter, gate) = Counter::with_gate(2);
        let (id, bill) = counter.bill();
        let made = counter.purse.spend(&[counter.purse.coin()], vec![], FEE);
        let spent = counter.purse.spend(&counter.purse.coins_of(&made), bill.outputs(), FEE);
        let payment = counter.purse.transaction_for(&bill);
        let parent = bsv_tests::ancestry::transaction(
            &counter.node,
            &payment.inputs[0].previous_output.txid,
        );
        Self { counter, gate, id, bill, parent, payment, invented: [made, spent] }
    }

    /// The right Merkle path.
    fn bump(&self) -> Bump {
        bump(&self.counter.node, &self.parent.txid())
    }

    /// A BEEF with this path.
    fn with_bump(&self, bump: Bump) -> Vec<u8> {
        with_path(&self.parent, &self.payment, bump)
    }

    /// A BEEF of the transaction that nobody has, with this path.
    fn inventing(&self, bump: Bump) -> Vec<u8> {
        let [made, spent] = &self.invented;
        with_path(made, spent, bump)
    }

    /// Posts bytes that must be refused. Answers the detail of the refusal.
    fn refuse(&self, status: u16, code: &str, what: &str, bytes: &[u8]) -> String {
        let reply = post_transaction(&self.counter, &self.id, bytes);
        let detail = check_problem(&reply, status, code, what);
        assert_eq!(self.gate.heard("sendrawtransaction", ""), 0, "{what}");
        self.counter.check_unpaid(&self.id, what);
        detail
    }

    /// Checks that the right BEEF is accepted.
    fn tell_the_truth(&self) {
        let bytes = self.with_bump(self.bump());
        let reply = post_transaction(&self.counter, &self.id, bytes);
        check_taken(&reply, &self.payment, "accepted", "the truth");
        self.counter.check_paid(&self.id, &self.payment);
    }
}

/// A payment with its parent, which this path is said to prove.
fn with_path(parent: &Transaction, payment: &Transaction, bump: Bump) -> Vec<u8> {
    let ancestry = Ancestry { transactions: vec![parent.clone()], bumps: vec![bump], held: vec![] };
    Beef::new(BeefVersion::V1, payment.clone(), ancestry).unwrap().to_bytes()
}

/// A BEEF of version 1 without any checks: transactions, and the index of the path that each is
/// claimed to be in.
fn written(bumps: &[Bump], entries: &[(&Transaction, Option<u8>)]) -> Vec<u8> {
    let mut bytes = vec![1, 0, 0xbe, 0xef];
    write_var_int(&mut bytes, bumps.len() as u64);
    bumps.iter().for_each(|bump| bump.encode(&mut bytes));
    write_var_int(&mut bytes, entries.len() as u64);
    for (transaction, bump) in entries {
        transaction.encode(&mut bytes);
        match bump {
            Some(bump) => bytes.extend_from_slice(&[1, *bump]),
            None => bytes.push(0),
        }
    }
    bytes
}

/// A Merkle path to the root of a block that does not exist.
fn made_up(height: u32, txid: Txid) -> Bump {
    let branch = MerkleBranch { position: 1, siblings: vec![Sibling::Hash([7; 32])] };
    Bump::of(height, &[(txid, branch)]).unwrap()
}

#[test]
fn the_roots_of_paths_must_be_those_of_our_main_chain() {
    let liar = Liar::new();
    let txid = liar.invented[0].txid();
    let right = liar.bump();
    let branch =
        MerkleBranch { position: 1, siblings: vec![Sibling::Hash(*liar.parent.txid().as_bytes())] };
    let tip = u32::try_from(height(&liar.counter.node)).unwrap();
    for (what, bump) in [
        ("a root that travels along", made_up(right.height(), txid)),
        ("beside a transaction", Bump::of(right.height(), &[(txid, branch)]).unwrap()),
        ("the first block", made_up(0, txid)),
    ] {
        let height = bump.height();
        let detail = liar.refuse(422, "bad-ancestry", what, &liar.inventing(bump));
        assert!(detail.contains(&format!("main chain's block at height {height}")), "{detail}");
    }
    for beyond in [tip + 1, tip + 1000, u32::MAX] {
        let bytes = liar.inventing(made_up(beyond, txid));
        let detail = liar.refuse(503, "unknown-block", "beyond the tip", &bytes);
        assert!(detail.contains(&format!("at height {beyond}")), "{detail}");
    }
    // A path that no transaction needs has to be right too.
    let unneeded = made_up(1, Txid::from_bytes([9; 32]));
    let height = right.height();
    let entries = [(&liar.parent, Some(0)), (&liar.payment, None)];
    let bytes = written(&[right, unneeded], &entries);
    liar.refuse(422, "bad-ancestry", "a path that nothing needs", &bytes);
    // The node has this parent, whatever the path says.
    let bytes = liar.with_bump(made_up(height, liar.parent.txid()));
    check_taken(&post_transaction(&liar.counter, &liar.id, bytes), &liar.payment, "accepted", "");
}

#[test]
fn a_block_off_the_main_chain_proves_nothing_until_its_chain_is_the_longer_one() {
    let (counter, gate) = Counter::with_gate(1);
    let rival = Rival::of(&counter.node);
    let (id, bill) = counter.bill();
    let parent = counter.purse.spend(&[counter.purse.coin()], vec![], FEE);
    let payment = counter.purse.spend(&counter.purse.coins_of(&parent), bill.outputs(), FEE);
    rival.mine(&[&parent], 1);
    let by_rival = beef(&rival.node, BeefVersion::V2, &payment, &[]).to_bytes();
    counter.node.mine(1);
    let reply = post_transaction(&counter, &id, &by_rival);
    check_problem(&reply, 422, "bad-ancestry", "another block at that height");
    assert_eq!(gate.heard("sendrawtransaction", ""), 0);
    rival.outgrow(&counter.node);
    rival.show_to(&counter.node);
    let reply = post_transaction(&counter, &id, &by_rival);
    check_taken(&reply, &payment, "accepted", "the chain of the rival");
    counter.check_paid(&id, &payment);
}

#[test]
fn a_payment_waits_for_a_block_that_our_node_is_about_to_get() {
    let (counter, gate) = Counter::with_gate(1);
    let rival = Rival::of(&counter.node);
    let (id, bill) = counter.bill();
    let parent = counter.purse.spend(&[counter.purse.coin()], vec![], FEE);
    let payment = counter.purse.spend(&counter.purse.coins_of(&parent), bill.outputs(), FEE);
    rival.mine(&[&parent], 1);
    let bytes = beef(&rival.node, BeefVersion::V2, &payment, &[]).into_atomic().unwrap();
    let asked = || gate.heard("getblockchaininfo", "");
    thread::scope(|scope| {
        let before = asked();
        let post = scope.spawn(|| post_transaction(&counter, &id, bytes.to_bytes()));
        // This is more often than the wallet would ask without the payment.
        wait_until("the tip is asked for again and again", || asked() >= before + 5);
        rival.show_to(&counter.node);
        check_taken(&post.join().unwrap(), &payment, "accepted", "it has come");
    });
    counter.check_paid(&id, &payment);
}

#[test]
fn the_transactions_of_a_beef_must_fit_together() {
    let liar = Liar::new();
    let (bump, parent, payment) = (liar.bump(), &liar.parent, &liar.payment);
    let bumps = std::slice::from_ref(&bump);
    let child = liar.counter.purse.spend(
        &liar.counter.purse.coins_of(payment),
        vec![TxOut { satoshis: 1, locking_script: liar.counter.purse.script() }],
        FEE,
    );
    let rich = |transaction: &Transaction| {
        let mut rich = transaction.clone();
        rich.outputs[0].satoshis += 1_000_000_000;
        rich
    };
    let rich_parent =
        rich(&liar.counter.purse.spend(&liar.counter.purse.coins_of(parent), vec![], FEE));
    let of_the_rich = liar.counter.purse.spend(
        &liar.counter.purse.coins_of(&rich_parent)[..1],
        liar.bill.outputs(),
        FEE,
    );
    let mut beyond = payment.clone();
    beyond.inputs[0].previous_output.vout = 1_000;
    for (what, status, code, reason, bytes) in [
        (
            "a parent behind its child",
            400,
            "bad-transaction",
            "does not precede it",
            written(bumps, &[(payment, None), (parent, Some(0))]),
        ),
        (
            "a child that is its own parent's parent",
            400,
            "bad-transaction",
            "does not precede it",
            written(bumps, &[(&child, None), (payment, None)]),
        ),
        (
            "no parent",
            400,
            "bad-transaction",
            "does not precede it",
            written(&[], &[(payment, None)]),
        ),
        (
            "twice",
            400,
            "bad-transaction",
            "in the beef twice",
            written(bumps, &[(parent, Some(0)), (parent, Some(0)), (payment, None)]),
        ),
        (
            "a path that is not there",
            400,
            "bad-transaction",
            "is not in the merkle path 1",
            written(bumps, &[(parent, Some(1)), (payment, None)]),
        ),
        (
            "a path of others",
            400,
            "bad-transaction",
            "is not in the merkle path 0",
            written(bumps, &[(parent, Some(0)), (payment, Some(0))]),
        ),
        (
            "an ancestor that makes money",
            422,
            "bad-ancestry",
            "are worth",
            written(bumps, &[(parent, Some(0)), (&rich_parent, None), (&of_the_rich, None)]),
        ),
        (
            "an output that is not there",
            422,
            "bad-ancestry",
            "which does not exist",
            written(bumps, &[(parent, Some(0)), (&beyond, None)]),
        ),
    ] {
        let detail = liar.refuse(status, code, what, &bytes);
        assert!(detail.contains(reason), "{what}: {detail}");
    }
    liar.tell_the_truth();
}

#[test]
fn announced_counts_are_not_believed() {
    let liar = Liar::new();
    let million = hex::decode("fe40420f00").unwrap();
    let endless = hex::decode("ffffffffffffffffff").unwrap();
    let prefixes: [&[u8]; 3] = [&[1, 0, 0xbe, 0xef], &[2, 0, 0xbe, 0xef], &[1, 0, 0xbe, 0xef, 0]];
    for prefix in prefixes {
        for (count, reason) in [(&million, "1000000"), (&endless, "18446744073709551615")] {
            let bytes = [prefix, count, &[0; 64]].concat();
            let detail = liar.refuse(400, "bad-transaction", "many", &bytes);
            assert!(detail.contains(reason) && detail.contains("more than 1,000"), "{detail}");
        }
    }
    liar.tell_the_truth();
}

#[test]
fn the_largest_beef_takes_memory_in_proportion() {
    const MANY: usize = 262_000;
    let liar = Liar::new();
    // Ten million bytes of a Merkle tree whose root is not that of any block.
    let txids: Vec<_> = (0..MANY as u32)
        .map(|number| {
            let mut id = [0; 32];
            id[..4].copy_from_slice(&number.to_le_bytes());
            Txid::from_bytes(id)
        })
        .collect();
    let invented = liar.invented[0].txid();
    let tree = MerkleTree::of(&[&[invented], &txids[..]].concat());
    let branches: Vec<_> = std::iter::once(invented)
        .chain(txids)
        .enumerate()
        .map(|(position, txid)| (txid, tree.branch(position).unwrap()))
        .collect();
    let bytes = liar.inventing(Bump::of(1, &branches).unwrap());
    assert!((9_500_000..10_000_000).contains(&bytes.len()), "{}", bytes.len());
    let server = &liar.counter.shop.server;
    liar.refuse(422, "bad-ancestry", "one of them", &bytes);
    server.reset_peak_memory();
    let before = server.peak_memory();
    thread::scope(|scope| {
        let posts =
            [(); 4].map(|()| scope.spawn(|| liar.refuse(422, "bad-ancestry", "four", &bytes)));
        posts.into_iter().for_each(|post| drop(post.join().unwrap()));
    });
    let grown = server.peak_memory().saturating_sub(before);
    assert!(grown < 4 * 12 * bytes.len() as u64, "{grown}");
    assert_eq!(liar.counter.shop.balance(), 0);
    liar.tell_the_truth();
    assert_eq!(liar.counter.shop.balance(), PRICE);
}
