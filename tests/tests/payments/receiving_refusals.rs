//! Payments that must be refused. The answer says what is wrong, and the invoice does not change.

use bsv_tests::purse::{Coin, FEE, knows, send};
use bsv_tests::{Bill, Gate, Node, Purse, Site};
use bsv_tx::{OutPoint, Script, Transaction, TxIn, TxOut};
use serde_json::json;

use super::counter::{COIN, Counter, PRICE, check_problem};

/// Makes payments that are refused, for one invoice.
struct Refusals {
    counter: Counter,
    id: String,
    bill: Bill,
    coin: Coin,
}

impl Refusals {
    fn new() -> Self {
        let counter = Counter::new(4);
        let (id, bill) = counter.bill();
        let coin = counter.purse.coin();
        Self { counter, id, bill, coin }
    }

    fn purse(&self) -> &Purse {
        &self.counter.purse
    }

    /// A transaction that would be accepted.
    fn good(&self) -> Transaction {
        self.purse().spend(&[self.coin], self.bill.outputs(), FEE)
    }

    /// The good transaction, changed and signed again.
    fn changed(&self, change: impl FnOnce(&mut Transaction)) -> Transaction {
        let mut transaction = self.good();
        change(&mut transaction);
        self.purse().sign(&mut transaction, &[self.coin]);
        transaction
    }

    /// A transaction with these outputs, and change.
    fn paying(&self, outputs: &[TxOut]) -> Transaction {
        self.purse().spend(&[self.coin], outputs.to_vec(), FEE)
    }

    /// The output that the invoice asks for, with this amount.
    fn output(&self, satoshis: u64) -> TxOut {
        TxOut { satoshis, ..self.bill.outputs()[0].clone() }
    }

    fn refuse(&self, status: u16, code: &str, what: &str, transaction: &Transaction) -> String {
        let before = self.counter.mempool();
        let detail = self.refuse_bytes(status, code, what, &transaction.to_bytes());
        assert!(!knows(&self.counter.node, transaction), "{what}");
        assert_eq!(self.counter.mempool(), before, "{what}");
        detail
    }

    fn refuse_bytes(&self, status: u16, code: &str, what: &str, transaction: &[u8]) -> String {
        let reply = self.counter.post_bytes(&self.id, transaction);
        self.counter.check_unpaid(&self.id, what);
        check_problem(&reply, status, code, what)
    }

    /// Checks that the invoice can still be paid, with the same coin.
    fn check_payable(&self) {
        assert_eq!(self.counter.shop.balance(), 0);
        let transaction = self.good();
        let reply = self.bill.post(&transaction);
        assert_eq!(reply.status, 201, "{}", reply.body);
        self.counter.check_paid(&self.id, &transaction);
        assert_eq!(self.counter.shop.balance(), PRICE);
    }
}

#[test]
fn payments_of_too_little_are_refused() {
    let refusals = Refusals::new();
    let asked = refusals.output(PRICE);
    let foreign = TxOut { satoshis: PRICE, locking_script: refusals.purse().script() };
    let longer = [asked.locking_script.as_bytes(), &[0x51]].concat();
    let longer = TxOut { satoshis: PRICE, locking_script: Script::from_bytes(longer) };
    for (what, named, outputs) in [
        ("underpaid", "output 0", vec![refusals.output(PRICE - 1)]),
        ("nothing", "output 0", vec![refusals.output(0)]),
        ("to the payer", "no output", vec![foreign]),
        ("to a longer script", "no output", vec![longer]),
        ("without the output", "no output", vec![]),
        ("in parts", "2 outputs", vec![refusals.output(PRICE / 2), refusals.output(PRICE / 2 - 1)]),
    ] {
        let transaction = refusals.paying(&outputs);
        let detail = refusals.refuse(400, "wrong-outputs", what, &transaction);
        assert!(detail.contains(named), "{what}: {detail}");
    }
    refusals.check_payable();
}

#[test]
fn transactions_that_do_not_pay_the_invoice_are_refused() {
    let refusals = Refusals::new();
    let most = |satoshis| TxOut { satoshis, locking_script: refusals.purse().script() };
    let asked = refusals.output(PRICE);
    let bad = |what: &str, transaction: &Transaction| {
        refusals.refuse(400, "bad-transaction", what, transaction)
    };
    bad("no inputs", &Transaction { inputs: vec![], ..refusals.good() });
    bad("no outputs", &Transaction { outputs: vec![], ..refusals.good() });
    bad("nothing", &Transaction { inputs: vec![], outputs: vec![], ..refusals.good() });
    for (what, more) in [
        ("the sum overflows", vec![most(u64::MAX)]),
        ("the sum overflows to the price", vec![most(u64::MAX - PRICE), most(PRICE + 1)]),
        ("one output overflows", vec![most(u64::MAX - PRICE + 1)]),
        ("a negative output", vec![most(1 << 63)]),
        ("more than all satoshis", vec![most(2_100_000_000_000_000)]),
        ("more than the inputs", vec![most(COIN - PRICE + 1)]),
    ] {
        bad(what, &refusals.changed(|it| it.outputs = [vec![asked.clone()], more].concat()));
    }
    let mut twice = refusals.good();
    twice.inputs.push(twice.inputs[0].clone());
    refusals.purse().sign(&mut twice, &[refusals.coin; 2]);
    bad("the same input twice", &twice);
    refusals.check_payable();
}

#[test]
fn payments_with_a_fee_too_low_to_be_mined_are_refused() {
    let refusals = Refusals::new();
    let asked = refusals.bill.outputs();
    let spend = |fee| refusals.purse().spend(&[refusals.coin], asked.clone(), fee);
    refusals.refuse(422, "fee-too-low", "no fee", &spend(0));
    // Payers compute 100 satoshis per 1000 bytes, with two roundings.
    let len = spend(0).to_bytes().len() as u64;
    let detail = refusals.refuse(422, "fee-too-low", "a low fee", &spend(len * 100 / 1000 - 3));
    assert!(detail.contains(&format!("fee of {} satoshis", len * 100 / 1000 - 3)), "{detail}");
    refusals.check_payable();

    // The node accepts this transaction, and will never mine it. The payment is noted, and does not
    // count.
    let Counter { node, purse, shop } = &refusals.counter;
    let (id, bill) = refusals.counter.bill();
    let free = purse.spend(&[purse.coin()], bill.outputs(), 0);
    send(node, &free);
    for _ in 0..2 {
        check_problem(&bill.post(&free), 422, "payment-waiting", "sent by the payer");
    }
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("pending", PRICE));
    let payments = shop.payments(&id);
    assert_eq!(payments.len(), 1, "{payments:?}");
    assert_eq!(payments[0]["state"], "waiting");
    assert_eq!(bill.post(&purse.transaction_for(&bill)).status, 201);
    assert_eq!(shop.balance(), 2 * PRICE);
}

#[test]
fn payments_that_the_network_does_not_accept_are_refused() {
    let refusals = Refusals::new();
    let refused = |what: &str, transaction: &Transaction| {
        refusals.refuse(422, "refused-by-network", what, transaction)
    };
    let mut unsigned = refusals.good();
    unsigned.inputs[0].unlocking_script = Script::default();
    refused("unsigned", &unsigned);
    let stranger = Purse::filled(&refusals.counter.node, 1, COIN);
    let mut stolen = refusals.good();
    stranger.sign(&mut stolen, &[refusals.coin]);
    refused("signed with another key", &stolen);
    let mut tampered = refusals.good();
    tampered.outputs[1].satoshis -= 1;
    refused("changed after it was signed", &tampered);
    let mut damaged = refusals.good();
    let mut script = damaged.inputs[0].unlocking_script.as_bytes().to_vec();
    script[10] ^= 1;
    damaged.inputs[0].unlocking_script = Script::from_bytes(script);
    refused("a damaged signature", &damaged);
    let rich = Purse::filled(&refusals.counter.node, 1, 100_000_000);
    let coin = rich.coin();
    let wasteful = rich.spend(&[coin], refusals.bill.outputs(), 90_000_000);
    let detail = refused("an absurd fee", &wasteful);
    assert!(detail.contains("absurdly-high-fee"), "{detail}");
    refusals.check_payable();
}

#[test]
fn refused_payments_that_are_not_final_never_reach_the_network_later() {
    let refusals = Refusals::new();
    let node = &refusals.counter.node;
    let height = node.call("getblockcount", json!([])).as_u64().unwrap() as u32;
    let not_yet = |lock_time, sequence| {
        refusals.changed(|it| {
            it.lock_time = lock_time;
            it.inputs[0].sequence = sequence;
        })
    };
    for (what, lock_time, sequence) in [
        ("two blocks early", height + 3, 0),
        ("for ever", 499_999_999, 1),
        ("years early", u32::MAX, u32::MAX - 1),
    ] {
        let transaction = not_yet(lock_time, sequence);
        let detail = refusals.refuse(422, "not-final", what, &transaction);
        assert!(detail.contains("final"), "{detail}");
        // A transaction in this list would be kept until its time, and then mined.
        assert_eq!(node.call("getrawnonfinalmempool", json!([])), json!([]), "{what}");
    }
    refusals.counter.mine(5);
    assert_eq!(refusals.counter.mempool(), json!([]));
    assert!(!knows(node, &not_yet(height + 3, 0)));
    // Meanwhile, the transaction is final.
    let (id, bill) = (&refusals.id, &refusals.bill);
    let transaction = not_yet(height + 3, 0);
    assert_eq!(bill.post(&transaction).status, 201);
    refusals.counter.check_paid(id, &transaction);
}

#[test]
fn payments_that_spend_missing_coins_are_refused() {
    let refusals = Refusals::new();
    let Counter { node, purse, .. } = &refusals.counter;
    let unknown = |what: &str, transaction: &Transaction| {
        refusals.refuse(422, "unknown-inputs", what, transaction)
    };
    let spending = |outpoint| {
        let coin = Coin { outpoint, ..refusals.coin };
        purse.spend(&[refusals.coin, coin], refusals.bill.outputs(), FEE)
    };
    let OutPoint { txid, .. } = refusals.coin.outpoint;
    let unheard_of = refusals.good().txid();
    for (what, outpoint) in [
        ("of an unknown transaction", OutPoint { txid: unheard_of, vout: 0 }),
        ("beyond the last output", OutPoint { txid, vout: 1000 }),
        ("beyond all numbers", OutPoint { txid, vout: u32::MAX }),
        ("beyond signed numbers", OutPoint { txid, vout: 1 << 31 }),
        ("of nothing", OutPoint::NULL),
    ] {
        let detail = unknown(what, &spending(outpoint));
        assert!(detail.contains(&format!("input 1 spends {outpoint}")), "{detail}");
    }

    let [in_mempool, in_block] = [purse.coin(), purse.coin()];
    let elsewhere = |coin| purse.spend(&[coin], vec![], FEE);
    send(node, &elsewhere(in_block));
    node.mine(1);
    send(node, &elsewhere(in_mempool));
    for (what, coin) in [("spent in the mempool", in_mempool), ("spent in a block", in_block)] {
        unknown(what, &purse.spend(&[coin], refusals.bill.outputs(), FEE));
    }
    refusals.check_payable();
}

#[test]
fn bytes_that_are_no_transaction_are_refused() {
    let refusals = Refusals::new();
    let bytes = refusals.good().to_bytes();
    let bad = |what: &str, bytes: &[u8]| refusals.refuse_bytes(400, "bad-transaction", what, bytes);
    for len in 1..bytes.len() {
        let reply = refusals.counter.post_bytes(&refusals.id, &bytes[..len]);
        check_problem(&reply, 400, "bad-transaction", "truncated");
    }
    bad("one byte too many", &[bytes.as_slice(), &[0]].concat());
    bad("twice", &[bytes.as_slice(), &bytes].concat());
    // The count of inputs, the length of the input's script, the count of outputs, and the length
    // of the output's script.
    let input_end = 5 + 36 + 1 + usize::from(bytes[41]) + 4;
    for place in [4, 41, input_end, input_end + 9] {
        for varint in [
            "fd0000",
            "fd0100",
            "fdffff",
            "fe00000000",
            "fe01000000",
            "feffffffff",
            "ff0000000000000000",
            "ff0100000000000000",
            "ffffffffffffffffff",
            "ffffffffffffffff7f",
            "fd",
            "fe",
            "ff",
        ] {
            let hostile = [&bytes[..place], &hex::decode(varint).unwrap(), &bytes[place + 1..]];
            bad(&format!("{varint} at {place}"), &hostile.concat());
        }
    }
    refusals.check_payable();
}

#[test]
fn bodies_that_are_no_payment_message_are_refused() {
    let refusals = Refusals::new();
    let good = refusals.good().to_hex();
    let nested = "[".repeat(1_000_000);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let odd = &good[1..];
    let other_mode = json!({ "modeId": "ef63d9775da6", "mode": { "optionId": "choiceID0", "transactions": [good] } });
    let several = json!({ "modeId": "ef63d9775da5", "mode": { "transactions": [good, good] } });
    for (what, body) in [
        ("empty", String::new()),
        ("not JSON", "rawTx=00".to_owned()),
        ("the transaction alone", good.clone()),
        ("a list", format!("[\"{good}\"]")),
        ("a list as an object", format!("[{{\"rawTx\":\"{good}\"}}]")),
        ("null", "null".to_owned()),
        ("a text", format!("\"{good}\"")),
        ("broken off", format!("{{\"rawTx\":\"{good}\"")),
        ("more after it", format!("{{\"rawTx\":\"{good}\"}}{{}}")),
        ("no transaction", "{}".to_owned()),
        ("under another name", json!({ "rawtx": good }).to_string()),
        ("no text", json!({ "rawTx": 1 }).to_string()),
        ("a list of texts", json!({ "rawTx": [good] }).to_string()),
        ("null as the transaction", json!({ "rawTx": null }).to_string()),
        ("an empty transaction", json!({ "rawTx": "" }).to_string()),
        ("not hexadecimal", json!({ "rawTx": "zz" }).to_string()),
        ("with a prefix", json!({ "rawTx": format!("0x{good}") }).to_string()),
        ("with a space", json!({ "rawTx": format!(" {good}") }).to_string()),
        ("an odd number of digits", json!({ "rawTx": odd }).to_string()),
        ("twice", format!("{{\"rawTx\":\"{good}\",\"rawTx\":\"{good}\"}}")),
        ("in two dialects", json!({ "rawTx": good, "transaction": good }).to_string()),
        ("in another mode", other_mode.to_string()),
        ("several transactions", several.to_string()),
        ("too long a refundTo", json!({ "rawTx": good, "refundTo": "x".repeat(101) }).to_string()),
        ("refundTo is no text", json!({ "rawTx": good, "refundTo": {} }).to_string()),
        ("nested without end", nested.clone()),
        ("nested without end in a member", format!("{{\"merchantData\":{nested}")),
        ("deep", deep.clone()),
        ("a deep transaction", format!("{{\"rawTx\":{deep}}}")),
        ("a deep mode", format!("{{\"modeId\":\"ef63d9775da5\",\"mode\":{deep}}}")),
        ("deep merchant data and no more", format!("{{\"merchantData\":{deep}}}")),
    ] {
        let reply = refusals.counter.post(&refusals.id, body);
        refusals.counter.check_unpaid(&refusals.id, what);
        check_problem(&reply, 400, "malformed-payment", what);
    }
    for body in [&b"\xff\xfe"[..], b"{\"rawTx\":\"\xff\"}", &[0; 1000]] {
        let reply = refusals.counter.post(&refusals.id, body);
        check_problem(&reply, 400, "malformed-payment", "not UTF-8");
    }
    assert_eq!(refusals.counter.mempool(), json!([]));
    refusals.check_payable();
}

#[test]
fn payments_that_are_too_large_are_refused() {
    const MOST: usize = 10_000_000;
    let refusals = Refusals::new();
    for len in [MOST + 1, 2 * MOST] {
        let body = format!("{{\"rawTx\":\"{}\"}}", "0".repeat(len - 12));
        assert_eq!(body.len(), len);
        let reply = refusals.counter.post(&refusals.id, body);
        check_problem(&reply, 413, "too-large", "more than 10 MB");
    }
    for (what, filling) in [("zeroes", "00"), ("inputs", "ff")] {
        let body = format!("{{\"rawTx\":\"{}\"}}", filling.repeat((MOST - 12) / 2));
        assert_eq!(body.len(), MOST);
        let reply = refusals.counter.post(&refusals.id, body);
        check_problem(&reply, 400, "bad-transaction", what);
    }
    let many = Transaction {
        inputs: (0..100_000)
            .map(|vout| TxIn {
                previous_output: OutPoint { vout, ..refusals.coin.outpoint },
                unlocking_script: Script::default(),
                sequence: u32::MAX,
            })
            .collect(),
        ..refusals.good()
    };
    let reply = refusals.counter.post_bytes(&refusals.id, &many.to_bytes());
    check_problem(&reply, 400, "bad-transaction", "100,000 inputs");
    refusals.counter.check_unpaid(&refusals.id, "too large");
    refusals.check_payable();
}

#[test]
fn a_payment_of_almost_10_mb_is_taken() {
    let counter = Counter::new(0);
    let rich = Purse::filled(&counter.node, 1, 10_000_000);
    let (id, bill) = counter.bill();
    let data = [&[0x00, 0x6a][..], &[1; 4_999_000]].concat();
    let data = TxOut { satoshis: 0, locking_script: Script::from_bytes(data) };
    let outputs = [bill.outputs(), vec![data]].concat();
    let transaction = rich.spend(&[rich.coin()], outputs, 600_000);
    let reply = counter.post_bytes(&id, &transaction.to_bytes());
    assert_eq!(reply.status, 201, "{}", reply.body);
    counter.check_paid(&id, &transaction);
    assert_eq!(counter.shop.balance(), PRICE);
}

/// The shop does not ask the node for the scripts of spent outputs, since a small payment could
/// make the node's answer huge.
#[test]
fn a_payment_that_spends_large_scripts_is_taken() {
    let node = Node::start_with(&["maxscriptsizepolicy=0"]);
    let counter = Counter::on(node, 0, Site::on);
    let rich = Purse::filled(&counter.node, 4, 10_000_000);
    // The script pushes a million bytes, drops them, and succeeds.
    let script = [&[0x4e, 0x40, 0x42, 0x0f, 0x00][..], &[1; 1_000_000], &[0x75, 0x51]].concat();
    let large = TxOut { satoshis: 1000, locking_script: Script::from_bytes(script) };
    let (id, bill) = counter.bill();
    let mut inputs = Vec::new();
    for _ in 0..4 {
        let hoard = rich.spend(&[rich.coin()], vec![large.clone(); 9], 1_000_000);
        send(&counter.node, &hoard);
        inputs.extend((0..9).map(|vout| TxIn {
            previous_output: OutPoint { txid: hoard.txid(), vout },
            unlocking_script: Script::default(),
            sequence: u32::MAX,
        }));
    }
    let transaction = Transaction { version: 1, inputs, outputs: bill.outputs(), lock_time: 0 };
    let reply = bill.post(&transaction);
    assert_eq!(reply.status, 201, "{}", reply.body);
    counter.check_paid(&id, &transaction);
}

#[test]
fn payments_to_paths_without_an_invoice_are_refused() {
    let counter = Counter::new(1);
    let (id, bill) = counter.bill();
    let transaction = counter.purse.transaction_for(&bill);
    let client = counter.shop.server.payments();
    let deleted = counter.shop.invoice(PRICE);
    let delete = format!("/api/v1/invoices/{deleted}");
    assert_eq!(counter.shop.server.wallet().request("DELETE", &delete, b"").status, 204);
    let last = if id.ends_with('a') { "b" } else { "a" };
    let forged = [&id[..11], last].concat();
    let swapped = if id.starts_with('a') { "b" } else { "a" };
    let moved = [swapped, &id[1..]].concat();
    let longer = format!("{id}a");
    let long = "a".repeat(10_000);
    let ids =
        [&deleted, &forged, &moved, &id[1..], &longer, &long, "000000000000", "%00", "..", "é"];
    for id in ids {
        for path in ["/dpp/api/v1/payment/", "/api/v1/payment/"] {
            let path = [path, id].concat();
            let terms = client.get(&path);
            check_problem(&terms, 404, "unknown-invoice", &path);
            let reply = client.post(&path, bill.payment(&transaction));
            check_problem(&reply, 404, "unknown-invoice", &path);
        }
    }
    for path in
        ["/dpp/api/v1/payment/", "/dpp/api/v1/payment", "/", "/api/v1/invoices", "/api/v1/pay"]
    {
        check_problem(&client.get(path), 404, "not-found", path);
        check_problem(&client.post(path, "{}"), 404, "not-found", path);
    }
    let path = format!("/dpp/api/v1/payment/{id}");
    for method in ["PUT", "DELETE", "PATCH"] {
        let reply = client.request(method, &path, b"");
        check_problem(&reply, 405, "method-not-allowed", method);
        assert_eq!(reply.header("allow"), Some("GET, HEAD, POST, OPTIONS"));
    }
    assert_eq!(counter.mempool(), json!([]));
    assert_eq!(bill.post(&transaction).status, 201);
    check_problem(&client.get(&path), 409, "invoice-paid", "terms of what is paid");
    let delete =
        counter.shop.server.wallet().request("DELETE", &format!("/api/v1/invoices/{id}"), b"");
    check_problem(&delete, 409, "invoice-paid", "deleted");
}

#[test]
fn a_payment_of_very_many_coins_is_taken_only_from_the_network() {
    const COINS: usize = 1_001;
    let node = Node::start();
    let mut gate = None;
    let counter = Counter::on(node, 0, |node| gate.insert(Gate::before(node)).site());
    let gate = gate.unwrap();
    let (id, bill) = counter.bill();
    let purse = Purse::filled(&counter.node, COINS, 1_000);
    let coins: Vec<_> = (0..COINS).map(|_| purse.coin()).collect();
    let transaction = purse.spend(&coins, bill.outputs(), 200 * COINS as u64);
    let asked = gate.heard("gettxouts", "");
    let detail = check_problem(&bill.post(&transaction), 400, "bad-transaction", "many coins");
    assert!(detail.contains("1001 coins"), "{detail}");
    assert_eq!(gate.heard("gettxouts", ""), asked, "the node has no work");
    counter.check_unpaid(&id, "many coins");
    send(&counter.node, &transaction);
    let reply = bill.post(&transaction);
    assert_eq!(reply.status, 201, "{}", reply.body);
    counter.check_paid(&id, &transaction);

    let (_, bill) = counter.bill();
    let coins = purse.coins_of(&transaction);
    assert_eq!(bill.post(&purse.spend(&coins, bill.outputs(), FEE)).status, 201);
}
