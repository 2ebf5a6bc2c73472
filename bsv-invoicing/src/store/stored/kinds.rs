//! The format of each kind of row. Times are microseconds since 1970.

use bsv_tx::{BlockHash, MerkleBranch, Txid};
use redb::TableDefinition;

use super::{Stored, StoredKind, events, webhooks};
use crate::ledger::figures::Figures;
use crate::ledger::idempotency::{Answered, Route};
use crate::ledger::rows::{
    AccountStart, Accounts, AllFigures, Ancestors, CatchUp, Claims, Counted, Damaged, Deliveries,
    DeliveriesByTime, EventLog, Events, Expiries, FollowedBlock, FollowedTip, FollowedTransactions,
    IdempotencyAges, IdempotentAnswers, Immature, InFlight, Incoming, Invoices,
    InvoicesByReference, LastRefunds, Marked, Messages, MinedAt, NewlyWatched, Outgoing,
    OutgoingByUrl, Owner, Paid, PostingUrls, Processes, Proofs, RawTransactions, Receipts,
    ReceivedFor, Refunds, Reorganisations, Rescan, RescanFrom, Reservations, Rules, Spendable,
    Spends, TransactionNumbers, Transactions, Unassigned, Unlisted, Users, WatchBacklog, Watched,
    WebhookChanges, Webhooks, Wishes, Withdrawals,
};
use crate::model::coin::{Chain, KeyPath, Trust};
use crate::model::event::LogName;
use crate::model::holdings::Holdings;
use crate::model::invoice::Invoice;
use crate::model::invoice_id::InvoiceId;
use crate::model::outgoing::{OutgoingPurpose, OutgoingRecord, PeerChannel};
use crate::model::process::{Claimed, ProcessId, Task};
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::settlement::{Counting, LatePayments, PaymentRules, Received};
use crate::model::time::Timestamp;
use crate::model::transaction::{
    BlockPlace, FollowedUntil, FoundProof, Proof, Purpose, RawBytes, ShownAs, TransactionRecord,
    TransactionState,
};
use crate::model::user::UserDraft;
use crate::model::webhook::WebhookId;
use crate::model::withdrawal::WithdrawalRecord;

/// Implements [`StoredKind`] for a kind: the table, and the conversions of its keys and rows.
macro_rules! stored_kind {
    (
        $kind:ident in $name:literal: $stored_key:ty => $stored_row:ty;
        key $key:ident: $to_key:expr, $read_key:expr;
        row $row:ident: $to_row:expr, |$of_key:ident, $read:ident| $read_row:expr;
    ) => {
        impl StoredKind for $kind {
            type StoredKey = $stored_key;
            type StoredRow = $stored_row;

            const TABLE: TableDefinition<'static, $stored_key, $stored_row> =
                TableDefinition::new($name);

            fn store_key($key: &Self::Key) -> Stored<'_, Self::StoredKey> {
                $to_key
            }

            fn read_key($key: Stored<'_, Self::StoredKey>) -> Result<Self::Key, Damaged> {
                $read_key
            }

            fn store_row<T>(
                $row: &Self::Row,
                write: impl FnOnce(Stored<'_, Self::StoredRow>) -> T,
            ) -> T {
                write($to_row)
            }

            fn read_row(
                $of_key: &Self::Key,
                $read: Stored<'_, Self::StoredRow>,
            ) -> Result<Self::Row, Damaged> {
                $read_row
            }
        }
    };
}

// Id, satoshis, times of creation, expiry, payment and deletion, reference, description.
stored_kind! {
    Invoices in "invoices": u64 => (
        [u8; 12], u64, u64, u64, Option<u64>, Option<u64>,
        Option<&'static str>, Option<&'static str>,
    );
    key key: *key, Ok(key);
    row row: (
        *row.id.as_bytes(), row.satoshis, row.created_at.as_micros(), row.expires_at.as_micros(),
        row.payment_received_at.map(Timestamp::as_micros),
        row.deleted_at.map(Timestamp::as_micros),
        row.reference.as_deref(), row.description.as_deref(),
    ), |key, row| invoice(*key, row);
}

stored_kind! {
    InvoicesByReference in "invoices by reference": (&'static str, u64) => ();
    key key: (key.0.as_str(), key.1), Ok((key.0.to_owned(), key.1));
    row _row: (), |_key, _row| Ok(());
}

// Name, email, avatar, address, phone number.
stored_kind! {
    Users in "users": u64 =>
        (&'static str, &'static str, &'static str, &'static str, &'static str);
    key key: *key, Ok(key);
    row row: (
        row.name.as_str(), row.email.as_str(), row.avatar.as_str(), row.address.as_str(),
        row.phone_number.as_str(),
    ), |_key, row| {
        let (name, email, avatar, address, phone_number) = row;
        Ok(UserDraft {
            name: name.to_owned(),
            email: email.to_owned(),
            avatar: avatar.to_owned(),
            address: address.to_owned(),
            phone_number: phone_number.to_owned(),
        })
    };
}

stored_kind! {
    Events in "told events": u64 => events::EventRowStored;
    key key: *key, Ok(key);
    row row: events::stored(row), |_key, row| events::read(row);
}

stored_kind! {
    EventLog in "event log": () => [u8; 4];
    key _key: (), { let () = _key; Ok(()) };
    row row: row.to_bytes(), |_key, row| Ok(LogName::from_bytes(row));
}

stored_kind! {
    Webhooks in "webhooks": u64 => webhooks::WebhookStored;
    key key: key.to_number(), Ok(WebhookId::from_number(key));
    row row: webhooks::stored(row), |_key, row| webhooks::read(row);
}

stored_kind! {
    WebhookChanges in "webhook changes": () => u64;
    key _key: (), { let () = _key; Ok(()) };
    row row: *row, |_key, row| Ok(row);
}

stored_kind! {
    Deliveries in "deliveries": (u64, u64) => webhooks::DeliveryStored;
    key key: (key.0.to_number(), key.1), Ok((WebhookId::from_number(key.0), key.1));
    row row: webhooks::stored_delivery(row), |_key, row| webhooks::read_delivery(row);
}

stored_kind! {
    DeliveriesByTime in "deliveries by time": (u64, bool, u64, u64) => ();
    key key: (key.0.to_number(), key.1, key.2.as_micros(), key.3),
        Ok((WebhookId::from_number(key.0), key.1, Timestamp::from_micros(key.2), key.3));
    row _row: (), |_key, _row| Ok(());
}

stored_kind! {
    Expiries in "expiries": (u64, u64) => ();
    key key: (key.0.as_micros(), key.1), Ok((Timestamp::from_micros(key.0), key.1));
    row _row: (), |_key, _row| Ok(());
}

// Route and key to the hash of the request, the number of what it created, and the time.
stored_kind! {
    IdempotentAnswers in "idempotency": (u8, &'static str) => ([u8; 32], u64, u64);
    key key: (key.0 as u8, key.1.as_str()), Ok((route(key.0)?, key.1.to_owned()));
    row row: (row.request_hash, row.number, row.at.as_micros()), |_key, row| {
        let (request_hash, number, at) = row;
        Ok(Answered { request_hash, number, at: Timestamp::from_micros(at) })
    };
}

stored_kind! {
    IdempotencyAges in "idempotency_ages": (u64, u8, &'static str) => ();
    key key: (key.0.as_micros(), key.1 as u8, key.2.as_str()),
        Ok((Timestamp::from_micros(key.0), route(key.1)?, key.2.to_owned()));
    row _row: (), |_key, _row| Ok(());
}

// The members of `Figures` in their order. The holdings come last.
stored_kind! {
    AllFigures in "kept figures": () => [u64; 17];
    key _key: (), { let () = _key; Ok(()) };
    row row: [
        row.last_invoice, row.last_user, row.last_event, row.last_event_at, row.last_transaction,
        row.last_payment, row.last_change, row.account, row.last_invoice_before,
        row.last_user_before, row.holdings.confirmed, row.holdings.unconfirmed,
        row.holdings.waiting, row.holdings.reserved, row.holdings.contested,
        row.holdings.immature, row.holdings.coins,
    ], |_key, row| {
        let [
            last_invoice, last_user, last_event, last_event_at, last_transaction, last_payment,
            last_change, account, last_invoice_before, last_user_before, confirmed, unconfirmed,
            waiting, reserved, contested, immature, coins,
        ] = row;
        let holdings =
            Holdings { confirmed, unconfirmed, waiting, reserved, contested, immature, coins };
        Ok(Figures {
            last_invoice, last_user, last_event, last_event_at, last_transaction, last_payment,
            last_change, account, last_invoice_before, last_user_before, holdings,
        })
    };
}

stored_kind! {
    Owner in "wallet": &'static str => &'static [u8];
    key _key: "fingerprint", { let _: &str = _key; Ok(()) };
    row row: row.as_slice(), |_key, row| row.try_into().map_err(|_| {
        Damaged("a wallet's fingerprint of a wrong length".to_owned())
    });
}

// Height and hash.
stored_kind! {
    FollowedTip in "followed tip": () => (u32, [u8; 32]);
    key _key: (), { let () = _key; Ok(()) };
    row row: (row.height, *row.hash.as_bytes()), |_key, row| {
        Ok(FollowedBlock { height: row.0, hash: BlockHash::from_bytes(row.1) })
    };
}

stored_kind! {
    Reorganisations in "reorganisations": () => u64;
    key _key: (), { let () = _key; Ok(()) };
    row row: *row, |_key, row| Ok(row);
}

stored_kind! {
    CatchUp in "catch up": () => Option<u32>;
    key _key: (), { let () = _key; Ok(()) };
    row row: *row, |_key, row| Ok(row);
}

stored_kind! {
    Accounts in "accounts": u32 => (u64, u64);
    key key: *key, Ok(key);
    row row: (row.last_invoice_before, row.last_user_before), |_key, row| {
        Ok(AccountStart { last_invoice_before: row.0, last_user_before: row.1 })
    };
}

// The tolerance for underpaid invoices, whether late payments are accepted, and the limit above
// which only payments in blocks count.
stored_kind! {
    Rules in "rules": () => (u64, bool, Option<u64>);
    key _key: (), { let () = _key; Ok(()) };
    row row: (
        row.underpaid_tolerance, row.late == LatePayments::Accept, row.zero_conf_limit,
    ), |_key, row| {
        let (underpaid_tolerance, accepts_late, zero_conf_limit) = row;
        let late = if accepts_late { LatePayments::Accept } else { LatePayments::Hold };
        Ok(PaymentRules { underpaid_tolerance, late, zero_conf_limit })
    };
}

// Account, chain and index of the key.
stored_kind! {
    Watched in "watched": [u8; 20] => (u32, u8, u32);
    key key: *key, Ok(key);
    row row: stored_path(row), |_key, row| path(row);
}

stored_kind! {
    WatchBacklog in "watch backlog": (u32, u8, u32) => u32;
    key key: stored_path(key), path(key);
    row row: *row, |_key, row| Ok(row);
}

// Whether the number is a height (true) or a time (false), and the number.
stored_kind! {
    Rescan in "rescan": () => (bool, u64);
    key _key: (), { let () = _key; Ok(()) };
    row row: match row {
        RescanFrom::Height(height) => (true, u64::from(*height)),
        RescanFrom::Time(time) => (false, time.as_micros()),
    }, |_key, row| match row {
        (false, time) => Ok(RescanFrom::Time(Timestamp::from_micros(time))),
        (true, height) => u32::try_from(height)
            .map(RescanFrom::Height)
            .map_err(|_| Damaged("a height beyond all blocks".to_owned())),
    };
}

stored_kind! {
    TransactionNumbers in "transaction numbers": ([u8; 32], u64) => ();
    key key: (*key.0.as_bytes(), key.1), Ok((Txid::from_bytes(key.0), key.1));
    row _row: (), |_key, _row| Ok(());
}

// Received in time: what was never in a block, what was in one, and what is in one. The same of what
// was received late. How many payments these are, how many are contested, how many have wishes for
// refunds, and how often the wish changes.
stored_kind! {
    ReceivedFor in "received for invoices": u64 => [u64; 10];
    key key: *key, Ok(key);
    row row: {
        let Received { in_time, late, payments, contested, wishes, changes } = *row;
        [
            in_time.unconfirmed, in_time.unmined, in_time.mined, late.unconfirmed, late.unmined,
            late.mined, payments, contested, wishes, changes,
        ]
    }, |_key, row| {
        let [unconfirmed, unmined, mined, late @ .., payments, contested, wishes, changes] = row;
        let in_time = Counting { unconfirmed, unmined, mined };
        let [unconfirmed, unmined, mined] = late;
        let late = Counting { unconfirmed, unmined, mined };
        Ok(Received { in_time, late, payments, contested, wishes, changes })
    };
}

stored_kind! {
    Counted in "counted payments": (u64, u32, u64) => ();
    key key: *key, Ok(key);
    row _row: (), |_key, _row| Ok(());
}

stored_kind! {
    Wishes in "wishes": (u64, u64) => ();
    key key: *key, Ok(key);
    row _row: (), |_key, _row| Ok(());
}

stored_kind! {
    Marked in "marked": u64 => u64;
    key key: *key, Ok(key);
    row row: row.as_micros(), |_key, row| Ok(Timestamp::from_micros(row));
}

// Txid, purpose, number of the invoice or payment, state, satoshis, time of arrival, and height and
// hash of the block.
stored_kind! {
    Transactions in "transactions": u64 =>
        ([u8; 32], u8, u64, u8, u64, u64, Option<(u32, [u8; 32])>);
    key key: *key, Ok(key);
    row row: transaction_row(row), |_key, row| transaction(row);
}

stored_kind! {
    RawTransactions in "raw transactions": u64 => &'static [u8];
    key key: *key, Ok(key);
    row row: row.as_slice(), |_key, row| Ok(row.to_vec());
}

stored_kind! {
    Ancestors in "ancestors": u64 => &'static [u8];
    key key: *key, Ok(key);
    row row: row.as_slice(), |_key, row| Ok(row.to_vec());
}

// Satoshis; account, chain and index of the key; the number of the spending transaction.
stored_kind! {
    Receipts in "receipts": (u64, u32) => (u64, u32, u8, u32, Option<u64>);
    key key: (key.maker, key.vout), Ok(ReceiptKey { maker: key.0, vout: key.1 });
    row row: (
        row.satoshis, row.key.account, row.key.chain as u8, row.key.index, row.spender,
    ), |_key, row| {
        let (satoshis, account, chain, index, spender) = row;
        Ok(Receipt { satoshis, key: path((account, chain, index))?, spender })
    };
}

// Trust, satoshis, and the receipt.
stored_kind! {
    Spendable in "spendable by amount": (u8, u64, u64, u32) => ();
    key key: (key.0 as u8, key.1, key.2.maker, key.2.vout),
        Ok((trust(key.0)?, key.1, ReceiptKey { maker: key.2, vout: key.3 }));
    row _row: (), |_key, _row| Ok(());
}

stored_kind! {
    Immature in "immature": (u32, u64, u32) => ();
    key key: (key.0, key.1.maker, key.1.vout),
        Ok((key.0, ReceiptKey { maker: key.1, vout: key.2 }));
    row _row: (), |_key, _row| Ok(());
}

stored_kind! {
    Unassigned in "unassigned": (u64, u32) => ();
    key key: (key.maker, key.vout), Ok(ReceiptKey { maker: key.0, vout: key.1 });
    row _row: (), |_key, _row| Ok(());
}

stored_kind! {
    Unlisted in "unlisted": u64 => (u64, u32);
    key key: *key, Ok(key);
    row row: (row.maker, row.vout), |_key, row| Ok(ReceiptKey { maker: row.0, vout: row.1 });
}

stored_kind! {
    Spends in "spent": (u64, u64, u32) => ();
    key key: (key.0, key.1.maker, key.1.vout),
        Ok((key.0, ReceiptKey { maker: key.1, vout: key.2 }));
    row _row: (), |_key, _row| Ok(());
}

// The first output that pays the invoice, and the sum.
stored_kind! {
    Incoming in "incoming payments": (u64, u64) => (u32, u64);
    key key: *key, Ok(key);
    row row: (row.first, row.satoshis), |_key, row| Ok(Paid { first: row.0, satoshis: row.1 });
}

stored_kind! {
    InFlight in "in flight": u64 => u64;
    key key: *key, Ok(key);
    row row: *row, |_key, row| Ok(row);
}

stored_kind! {
    Refunds in "refunds of transactions": u64 => &'static str;
    key key: *key, Ok(key);
    row row: row.as_str(), |_key, row| Ok(row.to_owned());
}

// Transaction, its cancellation, the previous payment for the same purpose, purpose (kind, number,
// text), satoshis, fee, times of beginning and expiry, memo, and the channel: host, path, id,
// token.
stored_kind! {
    Outgoing in "outgoing by purpose": u64 => (
        u64, Option<u64>, Option<u64>, (u8, u64, &'static str), u64, u64, u64, Option<u64>,
        &'static str, Option<(&'static str, &'static str, &'static str, &'static str)>,
    );
    key key: *key, Ok(key);
    row row: (
        row.transaction, row.cancellation, row.previous, purpose_row(&row.purpose), row.satoshis,
        row.fee, row.created_at.as_micros(), row.expires_at.map(Timestamp::as_micros),
        row.memo.as_str(),
        row.channel.as_ref().map(|it| {
            (it.host.as_str(), it.path.as_str(), it.channel_id.as_str(), it.token.as_str())
        }),
    ), |_key, row| {
        let (
            transaction, cancellation, previous, purpose, satoshis, fee, created_at, expires_at,
            memo, channel,
        ) = row;
        Ok(OutgoingRecord {
            transaction,
            cancellation,
            previous,
            purpose: purpose_of(purpose)?,
            satoshis,
            fee,
            created_at: Timestamp::from_micros(created_at),
            expires_at: expires_at.map(Timestamp::from_micros),
            memo: memo.to_owned(),
            channel: channel.map(|(host, path, id, token)| PeerChannel {
                host: host.to_owned(),
                path: path.to_owned(),
                channel_id: id.to_owned(),
                token: token.to_owned(),
            }),
        })
    };
}

stored_kind! {
    Messages in "messages": u64 => &'static [u8];
    key key: *key, Ok(key);
    row row: row.as_slice(), |_key, row| Ok(row.to_vec());
}

stored_kind! {
    PostingUrls in "posting urls": u64 => &'static str;
    key key: *key, Ok(key);
    row row: row.as_str(), |_key, row| Ok(row.to_owned());
}

stored_kind! {
    OutgoingByUrl in "outgoing by url": [u8; 32] => u64;
    key key: *key, Ok(key);
    row row: *row, |_key, row| Ok(row);
}

stored_kind! {
    LastRefunds in "last refunds": u64 => u64;
    key key: *key, Ok(key);
    row row: *row, |_key, row| Ok(row);
}

// Recipient, reference, number of the first payment, number of payments, and time of creation.
stored_kind! {
    Withdrawals in "withdrawals": u64 => (&'static str, Option<&'static str>, u64, u64, u64);
    key key: *key, Ok(key);
    row row: (
        row.to.as_str(), row.reference.as_deref(), row.first_payment, row.payments,
        row.created_at.as_micros(),
    ), |_key, row| {
        let (to, reference, first_payment, payments, created_at) = row;
        Ok(WithdrawalRecord {
            to: to.to_owned(),
            reference: reference.map(str::to_owned),
            first_payment,
            payments,
            created_at: Timestamp::from_micros(created_at),
        })
    };
}

stored_kind! {
    Reservations in "reservations": u64 => Vec<(u64, u32)>;
    key key: *key, Ok(key);
    row row: row.iter().map(|key| (key.maker, key.vout)).collect(), |_key, row| {
        Ok(row.into_iter().map(|(maker, vout)| ReceiptKey { maker, vout }).collect())
    };
}

stored_kind! {
    NewlyWatched in "newly watched": u64 => [u8; 20];
    key key: *key, Ok(key);
    row row: *row, |_key, row| Ok(row);
}

stored_kind! {
    Processes in "processes": [u8; 16] => ();
    key key: key.to_bytes(), Ok(ProcessId::from_bytes(key));
    row _row: (), |_key, _row| Ok(());
}

stored_kind! {
    Claims in "claims": (u8, [u8; 32]) => ([u8; 16], u64);
    key key: key.to_parts(), Task::from_parts(key.0, key.1).ok_or_else(|| {
        Damaged("a claim of an unknown task".to_owned())
    });
    row row: (row.holder.to_bytes(), row.number), |_key, row| {
        Ok(Claimed { holder: ProcessId::from_bytes(row.0), number: row.1 })
    };
}

/// Stands for a transaction that is followed until it is mined.
const UNTIL_MINED: u64 = u64::MAX;

stored_kind! {
    FollowedTransactions in "followed": u64 => u64;
    key key: *key, Ok(key);
    row row: match row {
        FollowedUntil::Mined => UNTIL_MINED,
        FollowedUntil::Time(until) => until.as_micros(),
    }, |_key, row| Ok(match row {
        UNTIL_MINED => FollowedUntil::Mined,
        until => FollowedUntil::Time(Timestamp::from_micros(until)),
    });
}

// Height and hash of the block, when the proof was found, whether the payer has read it, and the
// Merkle branch.
stored_kind! {
    Proofs in "proofs": (u64, u32) => (u32, [u8; 32], u64, bool, &'static [u8]);
    key key: *key, Ok(key);
    row row: (
        row.proof.block.height, *row.proof.block.hash.as_bytes(), row.found_at.as_micros(),
        row.is_read, encoded(&row.proof.branch).as_slice(),
    ), |key, row| {
        let (height, hash, found_at, is_read, branch) = row;
        let branch = MerkleBranch::from_bytes(branch)
            .map_err(|error| Damaged(format!("a Merkle branch: {error}")))?;
        let block = BlockPlace { hash: BlockHash::from_bytes(hash), height };
        let found_at = Timestamp::from_micros(found_at);
        Ok(FoundProof { sequence: key.1, proof: Proof { block, branch }, found_at, is_read })
    };
}

stored_kind! {
    MinedAt in "mined at": (u32, u64) => ();
    key key: *key, Ok(key);
    row _row: (), |_key, _row| Ok(());
}

fn encoded(branch: &MerkleBranch) -> Vec<u8> {
    let mut bytes = Vec::new();
    branch.encode(&mut bytes);
    bytes
}

fn invoice(
    number: u64,
    row: Stored<'_, <Invoices as StoredKind>::StoredRow>,
) -> Result<Invoice, Damaged> {
    let (id, satoshis, created_at, expires_at, paid_at, deleted_at, reference, description) = row;
    Ok(Invoice {
        number,
        id: InvoiceId::from_bytes(&id)
            .map_err(|_| Damaged("an invoice id that is not one".to_owned()))?,
        satoshis,
        description: description.map(str::to_owned),
        reference: reference.map(str::to_owned),
        created_at: Timestamp::from_micros(created_at),
        expires_at: Timestamp::from_micros(expires_at),
        payment_received_at: paid_at.map(Timestamp::from_micros),
        refund_to: None,
        refunded_at: None,
        in_flight: false,
        deleted_at: deleted_at.map(Timestamp::from_micros),
    })
}

fn route(number: u8) -> Result<Route, Damaged> {
    Route::of_number(number).ok_or_else(|| Damaged("a key of an unknown route".to_owned()))
}

fn stored_path(path: &KeyPath) -> (u32, u8, u32) {
    (path.account, path.chain as u8, path.index)
}

fn path((account, chain, index): (u32, u8, u32)) -> Result<KeyPath, Damaged> {
    Ok(KeyPath { account, chain: chain_of(chain)?, index })
}

fn trust(trust: u8) -> Result<Trust, Damaged> {
    [Trust::Sure, Trust::Unsure]
        .into_iter()
        .find(|known| *known as u8 == trust)
        .ok_or_else(|| Damaged("a coin of an unknown trust".to_owned()))
}

fn purpose_row(purpose: &OutgoingPurpose) -> (u8, u64, &str) {
    match purpose {
        OutgoingPurpose::Url(url) => (1, 0, url),
        OutgoingPurpose::Withdrawal(number) => (2, *number, ""),
        OutgoingPurpose::Refund { invoice, to } => (3, *invoice, to),
        OutgoingPurpose::Consolidation => (4, 0, ""),
    }
}

fn purpose_of((kind, number, text): (u8, u64, &str)) -> Result<OutgoingPurpose, Damaged> {
    match kind {
        1 => Ok(OutgoingPurpose::Url(text.to_owned())),
        2 => Ok(OutgoingPurpose::Withdrawal(number)),
        3 => Ok(OutgoingPurpose::Refund { invoice: number, to: text.to_owned() }),
        4 => Ok(OutgoingPurpose::Consolidation),
        _ => Err(Damaged("a payment of an unknown purpose".to_owned())),
    }
}

fn chain_of(chain: u8) -> Result<Chain, Damaged> {
    [Chain::Receive, Chain::Change, Chain::User]
        .into_iter()
        .find(|known| *known as u8 == chain)
        .ok_or_else(|| Damaged("a coin of an unknown chain".to_owned()))
}

/// The bits in the number of a state that say the most that the network has shown of the
/// transaction, and their lowest bit.
const SHOWN_BITS: u8 = 0xc0;
const LOWEST_SHOWN_BIT: u32 = 6;
/// The bits that say whether the bytes of the transaction are kept, and their lowest bit.
const RAW_BITS: u8 = 0x30;
const LOWEST_RAW_BIT: u32 = 4;
/// The bit that says that it was in the mempool or in a block.
pub(in crate::store) const WAS_SEEN: u8 = 0x80;

type TransactionRow = <Transactions as StoredKind>::StoredRow;

fn transaction_row(record: &TransactionRecord) -> Stored<'static, TransactionRow> {
    let (purpose, subject) = match record.purpose {
        Purpose::Incoming(invoice) => (1, invoice),
        Purpose::Outgoing(payment) => (2, payment),
        Purpose::Cancellation(payment) => (3, payment),
        Purpose::Found => (4, 0),
        Purpose::Coinbase => (5, 0),
    };
    let state = match record.state {
        TransactionState::Offered => 1,
        TransactionState::Seen | TransactionState::Mined(_) => 2,
        TransactionState::Displaced => 3,
        TransactionState::Refused => 4,
        TransactionState::Unseen => 5,
        TransactionState::Waiting => 6,
        TransactionState::Contested { told: false } => 7,
        TransactionState::Contested { told: true } => 8,
        TransactionState::Invalid => 9,
        TransactionState::Cancelled => 10,
    };
    let state = state | ((record.shown as u8) << LOWEST_SHOWN_BIT);
    let state = state | ((record.raw as u8) << LOWEST_RAW_BIT);
    let block = record.state.block().map(|place| (place.height, *place.hash.as_bytes()));
    let at = record.at.as_micros();
    (*record.txid.as_bytes(), purpose, subject, state, record.satoshis, at, block)
}

fn transaction(row: Stored<'_, TransactionRow>) -> Result<TransactionRecord, Damaged> {
    let (txid, purpose, subject, state, satoshis, at, block) = row;
    let block =
        block.map(|(height, hash)| BlockPlace { hash: BlockHash::from_bytes(hash), height });
    let damaged = |what: &str| Damaged(format!("a transaction {what}"));
    let raw = match (state & RAW_BITS) >> LOWEST_RAW_BIT {
        0 => RawBytes::Short,
        1 => RawBytes::Long,
        2 => RawBytes::Dropped,
        _ => return Err(damaged("whose bytes are kept in an unknown way")),
    };
    let state = state & !RAW_BITS;
    let shown = match (state & SHOWN_BITS) >> LOWEST_SHOWN_BIT {
        // Schema 12 set the bit of a seen transaction for a waiting one, too.
        _ if state & !SHOWN_BITS == 6 => ShownAs::Waiting,
        0 => ShownAs::Nothing,
        1 => ShownAs::Waiting,
        2 => ShownAs::Seen,
        _ => ShownAs::Mined,
    };
    let state = match (state & !SHOWN_BITS, block) {
        (1, None) => TransactionState::Offered,
        (2, None) => TransactionState::Seen,
        (2, Some(block)) => TransactionState::Mined(block),
        (3, None) => TransactionState::Displaced,
        (4, None) => TransactionState::Refused,
        (5, None) => TransactionState::Unseen,
        (6, None) => TransactionState::Waiting,
        (7, None) => TransactionState::Contested { told: false },
        (8, None) => TransactionState::Contested { told: true },
        (9, None) => TransactionState::Invalid,
        (10, None) => TransactionState::Cancelled,
        (_, None) => return Err(damaged("in an unknown state")),
        (_, Some(_)) => return Err(damaged("whose state and block disagree")),
    };
    Ok(TransactionRecord {
        txid: Txid::from_bytes(txid),
        purpose: match purpose {
            1 => Purpose::Incoming(subject),
            2 => Purpose::Outgoing(subject),
            3 => Purpose::Cancellation(subject),
            4 => Purpose::Found,
            5 => Purpose::Coinbase,
            _ => return Err(damaged("of an unknown purpose")),
        },
        state,
        shown,
        satoshis,
        at: Timestamp::from_micros(at),
        raw,
    }
    .in_state(state))
}
