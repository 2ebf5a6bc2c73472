//! The form of keys and rows in a store.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::fmt::Write;
use std::time::Duration;

use bsv_invoicing::dpp::PeerChannel;
use bsv_invoicing::ledger::events::{EventDetails, EventRow, PaymentDetails, Sums};
use bsv_invoicing::ledger::figures::Figures;
use bsv_invoicing::ledger::idempotency::{Answered, Route};
use bsv_invoicing::ledger::rows::*;
use bsv_invoicing::{
    coins::*,
    events::*,
    invoices::*,
    receiving::*,
    sending::*,
    store::{Claimed, ProcessId, Task},
    transactions::*,
    webhooks::*,
    *,
};
use bsv_tx::{BlockHash, MerkleBranch, OutPoint, Sibling, Txid};
use proptest::prelude::*;

/// One row of each kind: its table, its key and itself, in hexadecimal digits.
const GOLDEN: &str = include_str!("rows.txt");

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000 + micros)
}

/// The line of a row in the file.
fn line<K: Kind>(key: &K::Key, row: &K::Row) -> String {
    let (key, bytes) = (K::key(key), row.encode());
    assert_eq!(K::Row::decode(&bytes).as_ref(), Ok(row));
    let (name, mut line) = (K::TABLE.name(), String::new());
    write!(line, "{} {name} {} {}", K::TABLE as u8, hex::encode(key), hex::encode(bytes)).unwrap();
    line
}

/// One row of each kind.
fn one_of_each() -> Vec<String> {
    let block = BlockPlace { hash: BlockHash::from_bytes([7; 32]), height: 900_000 };
    let coin = ReceiptKey { maker: 9, vout: 2 };
    let path = KeyPath { account: 3, chain: Chain::Change, index: 70_000 };
    let hook = WebhookId::from_number(0x0012_ab00_0000_00ff);
    let sums = Sums { paid: 900, due: 100, counted: 900 };
    let paying = PaymentDetails { transaction: 9, satoshis: 900, late: true, sums };
    let text = |text: &str| text.to_owned();
    let channel = PeerChannel {
        host: text("payee.example"),
        path: text("/p"),
        channel_id: text("c1"),
        token: text("secret"),
    };
    let draft = InvoiceDraft {
        satoshis: 1_000,
        description: Some(text("Tee")),
        reference: None,
        expires_at: Some(at(2)),
    };
    let invoice = Invoice::new((7, "bwWEkOWIH8Ck".parse().unwrap()), draft, at(1), Duration::ZERO);
    vec![
        line::<Invoices>(&7, &Invoice { payment_received_at: Some(at(3)), ..invoice }),
        line::<InvoicesByReference>(&(text("A\0ä"), 7), &()),
        line::<Users>(
            &1,
            &UserDraft {
                name: text("Ada"),
                email: text("ada@example.org"),
                avatar: text(""),
                address: text("1 Way"),
                phone_number: text("+44"),
            },
        ),
        line::<Events>(
            &5,
            &EventRow {
                at: at(4),
                kind: EventKind::PaymentMined,
                subject: 7,
                details: EventDetails::Payment(paying),
                block: Some(block),
            },
        ),
        line::<EventLog>(&(), &LogName::from_bytes([0, 0x9a, 0x1c, 2])),
        line::<Webhooks>(
            &hook,
            &Webhook {
                url: text("https://shop.example/hook"),
                types: text("invoice.*"),
                description: text("till"),
                in_order: true,
                state: WebhookState::Gone,
                created_at: at(5),
                cursor: 8,
                last_sent: 6,
                holding: Some(6),
                secret: vec![1, 2],
                former_secret: Some(FormerSecret { sealed: vec![3], until: at(6) }),
                last_success_at: None,
                failing_since: Some(at(7)),
                failures: 2,
            },
        ),
        line::<WebhookChanges>(&(), &300),
        line::<Deliveries>(
            &(hook, 6),
            &Delivery {
                previous: 4,
                state: DeliveryState::Pending { next_attempt_at: at(8) },
                tries: 2,
                attempts: vec![
                    Attempt {
                        at: at(7),
                        milliseconds: 40,
                        outcome: AttemptOutcome::Answered(503),
                        answer: text("busy"),
                    },
                    Attempt {
                        at: at(8),
                        milliseconds: 10_000,
                        outcome: AttemptOutcome::Failed(AttemptFailure::Timeout),
                        answer: text(""),
                    },
                ],
            },
        ),
        line::<DeliveriesByTime>(&(hook, true, at(8), 6), &()),
        line::<Expiries>(&(at(2), 7), &()),
        line::<IdempotentAnswers>(
            &(Route::Pay, text("k")),
            &Answered { request_hash: [5; 32], number: 7, at: at(9) },
        ),
        line::<IdempotencyAges>(&(at(9), Route::Pay, text("k")), &()),
        line::<AllFigures>(
            &(),
            &Figures {
                last_invoice: 7,
                last_event: 5,
                account: 3,
                holdings: Holdings { confirmed: 900, coins: 1, ..Holdings::default() },
                unproven_coins: 4,
                exposed: 900,
                exposure_told_for: 50,
                ..Figures::default()
            },
        ),
        line::<Owner>(&(), &[4; 20]),
        line::<FollowedTip>(&(), &FollowedBlock { height: block.height, hash: block.hash }),
        line::<Reorganisations>(
            &(),
            &Reorganised { count: 2, is_under_way: true, is_confirmed: None },
        ),
        line::<CatchUp>(&(), &CopyEnd { followed_to: Some(899_000), last_event: 4 }),
        line::<Accounts>(&3, &AccountStart { last_invoice_before: 6, last_user_before: 0 }),
        line::<Rules>(
            &(),
            &PaymentRules {
                underpaid_tolerance: 10,
                late: LatePayments::Accept,
                zero_conf_limit: Some(1_000_000),
                mined_blocks: 2,
                exposure_limit: Some(5_000_000),
            },
        ),
        line::<Watched>(&[6; 20], &path),
        line::<NewlyWatched>(&4, &[6; 20]),
        line::<WatchBacklog>(&path, &70_100),
        line::<Rescan>(&(), &RescanFrom::Time(at(1))),
        line::<Transactions>(
            &9,
            &TransactionRecord {
                txid: Txid::from_bytes([8; 32]),
                purpose: Purpose::Incoming(7),
                state: TransactionState::Mined(block),
                shown: ShownAs::Mined,
                satoshis: 900,
                at: at(3),
                raw: RawBytes::Short,
                word: Some(Word { has_rival: true, waits_for: WaitReason::Exposure }),
            },
        ),
        line::<TransactionNumbers>(&(Txid::from_bytes([8; 32]), 9), &()),
        line::<RawTransactions>(&9, &vec![1, 0, 0, 0]),
        line::<Ancestors>(&9, &vec![2, 0]),
        line::<Receipts>(&coin, &Receipt { satoshis: 900, key: path, spender: Some(11) }),
        line::<Spendable>(&(Trust::Unsure, 900, coin), &()),
        line::<Immature>(&(900_099, coin), &()),
        line::<Unassigned>(&coin, &()),
        line::<Unlisted>(&7, &coin),
        line::<Spends>(&(11, coin), &()),
        line::<Incoming>(&(7, 9), &Paid { first: 2, satoshis: 900 }),
        line::<ReceivedFor>(
            &7,
            &Received {
                in_time: Counting { unconfirmed: 1, unmined: 2, mined: 900 },
                late: Counting::default(),
                payments: 3,
                contested: 1,
                wishes: 2,
                changes: 1,
                refunded: 800,
                refunded_before: 700,
                last_payment_before: 2,
                surplus_refunded: 100,
                accepted: Some((903, 800)),
            },
        ),
        line::<Counted>(&(7, OUTSIDE_BLOCKS, 9), &()),
        line::<Wishes>(&(7, 9), &()),
        line::<Marked>(&7, &at(10)),
        line::<InFlight>(&7, &9),
        line::<Refunds>(&9, &text("76a914")),
        line::<Outgoing>(
            &2,
            &OutgoingRecord {
                transaction: 11,
                cancellation: None,
                previous: Some(1),
                purpose: OutgoingPurpose::Refund { invoice: 7, to: text("76a914") },
                satoshis: 800,
                fee: 20,
                created_at: at(11),
                expires_at: None,
                memo: text("thanks"),
                channel: Some(channel),
                surplus: 100,
                is_refused: true,
            },
        ),
        line::<Messages>(&2, &b"{}".to_vec()),
        line::<PostingUrls>(&2, &text("https://payee.example/pay")),
        line::<OutgoingByUrl>(&[9; 32], &2),
        line::<LastRefunds>(&7, &2),
        line::<Withdrawals>(
            &1,
            &WithdrawalRecord {
                to: text("mxVFsFW5N4mu1HPkxPttorvocvzeZ7KZyk"),
                reference: Some(text("rent")),
                first_payment: 3,
                payments: 2,
                created_at: at(12),
            },
        ),
        line::<Reservations>(&12, &vec![coin, ReceiptKey { maker: 10, vout: 0 }]),
        line::<Processes>(&ProcessId::from_bytes([3; 16]), &()),
        line::<Claims>(
            &Task::Offering(9),
            &Claimed { holder: ProcessId::from_bytes([3; 16]), number: 5 },
        ),
        line::<FollowedTransactions>(&9, &FollowedUntil::Time(at(13))),
        line::<Proofs>(
            &(9, 1),
            &FoundProof {
                sequence: 1,
                proof: Proof {
                    block,
                    branch: MerkleBranch {
                        position: 1,
                        siblings: vec![Sibling::Hash([1; 32]), Sibling::Duplicate],
                    },
                },
                found_at: at(14),
                is_read: true,
            },
        ),
        line::<MinedAt>(&(900_000, 9), &()),
        line::<Attention>(&7, &()),
        line::<Contested>(&(7, 9), &900_000),
        line::<Shallow>(&(900_000, 7, 9), &Shallowness::Uncounted),
        line::<UnprovenCoins>(&(OutPoint { txid: Txid::from_bytes([8; 32]), vout: 2 }, 9), &()),
        line::<Exposed>(&(OUTSIDE_BLOCKS, 9), &900),
    ]
}

/// Every changed byte makes rows of existing stores unreadable, or wrong.
#[test]
fn the_bytes_of_rows_stay_the_same() {
    let lines = one_of_each();
    assert_eq!(lines.len(), Table::ALL.len());
    for ((line, golden), table) in lines.iter().zip(GOLDEN.lines()).zip(Table::ALL) {
        assert_eq!(line, golden);
        let [number, name, key, row] = *golden.split(' ').collect::<Vec<_>>() else {
            panic!("{golden}")
        };
        assert_eq!((number, name), (&*(*table as u8).to_string(), table.name()));
        let [key, row] = [key, row].map(|digits| hex::decode(digits).unwrap());
        table.show(&key, &row).unwrap();
        for (key, row) in [(&[&key[..], &[0]].concat(), &row), (&key, &[&row[..], &[0]].concat())] {
            let is_text_of_bytes =
                matches!(table, Table::RawTransactions | Table::Ancestors | Table::Messages);
            assert!(
                is_text_of_bytes || table.show(key, row).is_err(),
                "{name}: bytes are left over"
            );
        }
    }
    assert_eq!(lines.join("\n") + "\n", GOLDEN);
}

fn key<K: RowKey>(key: &K) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode(&mut bytes);
    bytes
}

/// Checks that two keys are read as they were written, and compare as their bytes do.
fn check<K: RowKey>(keys: [K; 2]) {
    for one in &keys {
        let bytes = key(one);
        let mut rest = &bytes[..];
        assert_eq!(K::decode(&mut rest).as_ref(), Ok(one));
        assert!(rest.is_empty());
        if let Some((_, short)) = bytes.split_last() {
            assert!(K::decode(&mut &short[..short.len()]).is_err());
        }
    }
    let [one, other] = &keys;
    assert_eq!(key(one).cmp(&key(other)), one.cmp(other), "{one:?} and {other:?}");
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..3, any::<u64>(), Just(u64::MAX), 254_u64..258]
}

fn index() -> impl Strategy<Value = u32> {
    prop_oneof![0_u32..3, any::<u32>(), Just(u32::MAX)]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a\\x00\u{1}ä\u{10ffff}]{0,5}", ".{0,9}"]
}

proptest! {
    #[test]
    fn keys_are_in_order(
        numbers in prop::array::uniform8(number()),
        indexes in prop::array::uniform4(index()),
        texts in [text(), text()],
        flags in any::<[bool; 4]>(),
        bytes in prop::array::uniform2(prop_oneof![Just([0_u8; 32]), any::<[u8; 32]>()]),
        choices in [0_usize..5, 0..5],
    ) {
        let pair = |at: usize| [numbers[at], numbers[at + 1]];
        let at = |it: usize| Timestamp::from_micros(numbers[it]);
        let coin = |it: usize| ReceiptKey { maker: numbers[it], vout: indexes[it] };
        let path = |it: usize| KeyPath {
            account: indexes[it],
            chain: [Chain::Receive, Chain::Change, Chain::User][choices[it] % 3],
            index: indexes[it + 2],
        };
        let route = |it: usize| {
            [Route::Invoices, Route::Users, Route::Pay, Route::Withdrawals, Route::Refunds][choices[it]]
        };
        let trust = |it: usize| if flags[it] { Trust::Sure } else { Trust::Unsure };
        let task = |it: usize| {
            [
                Task::Following,
                Task::Offering(numbers[it]),
                Task::Spending(numbers[it]),
                Task::Paying(bytes[it]),
                Task::Moving,
            ][choices[it]]
        };
        let hook = |it: usize| WebhookId::from_number(numbers[it]);
        let both = [0, 1];
        check(pair(0));
        check([indexes[0], indexes[1]]);
        check(bytes);
        check(both.map(|it| (numbers[it], numbers[it + 2])));
        check(both.map(|it| (texts[it].clone(), numbers[it])));
        check(both.map(|it| (hook(it), flags[it], at(it + 2), numbers[it + 4])));
        check(both.map(|it| (at(it), route(it), texts[it].clone())));
        check(both.map(|it| (route(it), texts[it].clone())));
        check(both.map(path));
        check(both.map(coin));
        check(both.map(|it| (OutPoint { txid: Txid::from_bytes(bytes[it]), vout: indexes[it] }, numbers[it])));
        check(both.map(|it| (Txid::from_bytes(bytes[it]), numbers[it])));
        check(both.map(|it| (trust(it), numbers[it + 2], coin(it))));
        check(both.map(|it| (indexes[it + 2], coin(it))));
        check(both.map(|it| (numbers[it + 2], coin(it))));
        check(both.map(|it| (numbers[it], indexes[it], numbers[it + 2])));
        check(both.map(task));
        check(both.map(|it| ProcessId::from_bytes(bytes[it][..16].try_into().unwrap())));
    }
}

/// The longest keys that anybody can make fit into an index of every engine.
#[test]
fn the_longest_keys_have_at_most_1100_bytes() {
    let longest = "\u{10ffff}".repeat(MAX_REFERENCE_LEN);
    let zeros = "\0".repeat(MAX_REFERENCE_LEN);
    for reference in [longest, zeros] {
        assert!(key(&(reference, u64::MAX)).len() <= 1_100);
    }
    let idempotency = IdempotencyKey::new(&"~".repeat(255), b"{}").unwrap();
    drop(idempotency);
    assert!(key(&(Timestamp::MAX, Route::Refunds, "~".repeat(255))).len() <= 1_100);
}

#[test]
fn a_time_after_the_last_moment_is_damage() {
    let last = Row::encode(&Timestamp::MAX);
    assert_eq!(<Timestamp as Row>::decode(&last), Ok(Timestamp::MAX));
    for micros in [Timestamp::MAX.as_micros() + 1, u64::MAX] {
        let row = [&[0x1b][..], &micros.to_be_bytes()].concat();
        assert!(<Timestamp as Row>::decode(&row).is_err());
        assert!(Table::Marked.show(&[0; 8], &row).is_err());
    }
}

/// Rows of transactions and figures that older versions have written lack the newest members.
#[test]
fn rows_without_the_newest_members_are_read() {
    let figures = "8b0700050000000003000087190384000000000001";
    let figures = <Figures as Row>::decode(&hex::decode(figures).unwrap()).unwrap();
    assert_eq!((figures.last_invoice, figures.unproven_coins), (7, 0));
    let record = TransactionRecord {
        txid: Txid::from_bytes([8; 32]),
        purpose: Purpose::Found,
        state: TransactionState::Seen,
        shown: ShownAs::Seen,
        satoshis: 900,
        at: at(3),
        raw: RawBytes::Short,
        word: None,
    };
    let bytes = record.encode();
    assert_eq!((bytes[0], TransactionRecord::decode(&bytes)), (0x87, Ok(record)));
}
