use bsv_store::StoreError;
use bsv_tx::{KeyError, Transaction};

use super::records::{OutgoingRecord, TransactionRecord, url_hash};
use super::{AFTERCARE, FOR_EVER, MAX_CHANGE, MoneyTables};
use crate::dpp::PeerChannel;
use crate::model::coin::{Chain, Spending, encoded_len};
use crate::model::idempotency::IdempotencyKey;
use crate::model::invoice::InvoiceState;
use crate::model::payment::{
    Begun, BlockPlace, NewIncoming, NewOutgoing, OutgoingPayment, OutgoingState, Proof, Purpose,
    Recovered, Selection, TransactionState, UsedNumbers,
};
use crate::model::time::Timestamp;
use crate::store::WalletStoreError;
use crate::store::redb::tables::{
    INVOICE_PAID, INVOICE_PAYMENT_DISPLACED, OpenTables, Outcome, PAYMENT_CANCELLED,
    PAYMENT_DISPLACED, PAYMENT_REFUSED, PAYMENT_SETTLED, PAYMENT_STARTED, Route, invoice_row,
};

impl OpenTables<'_> {
    /// Notes a payment that is going to be broadcast.
    pub(in crate::store::redb) fn begin_payment(&mut self, new: NewIncoming) -> Outcome<Begun> {
        let NewIncoming { invoice: number, transaction, vout, refund_to, now } = new;
        let invoice = match self.invoice(number)? {
            Ok(Some(invoice)) if invoice.deleted_at.is_none() => invoice,
            Ok(_) => return Ok(Err(WalletStoreError::UnknownInvoice(number))),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let at = self.next_event_at(now);
        let txid = transaction.txid();
        let before = self.money.payment_with(number, &txid)?;
        match before.as_ref().map(|record| (record.state, record.incoming())) {
            Some((TransactionState::Settled, payment)) => return Ok(Ok(Begun::Before(payment))),
            Some((TransactionState::InFlight, payment)) => {
                return Ok(Ok(Begun::InFlight(payment)));
            }
            _ => {}
        }
        if invoice.in_flight {
            return Ok(Err(WalletStoreError::InFlight(number)));
        }
        match invoice.state(at) {
            InvoiceState::Pending => {}
            InvoiceState::Paid => return Ok(Err(WalletStoreError::Paid(number))),
            InvoiceState::Expired => return Ok(Err(WalletStoreError::Expired(number))),
        }
        let purpose = Purpose::Incoming(number);
        let record = match before {
            Some(displaced) => self.money.begin_again(displaced, at)?,
            None => self.insert_transaction(&transaction, purpose, invoice.satoshis, at)?,
        };
        let index = u32::try_from(number).expect("keys are derived for the numbers of invoices");
        let money = &mut self.money;
        money.incoming.insert((number, record.number), ())?;
        money.in_flight.insert(number, record.number)?;
        if let Some(refund_to) = &refund_to {
            money.refunds.insert(number, refund_to.as_str())?;
        }
        let coin = (invoice.satoshis, Chain::Receive as u8, index, None);
        money.coins.insert((record.number, vout), coin)?;
        Ok(Ok(Begun::InFlight(record.incoming())))
    }

    /// Notes that the network refuses a payment that is in flight: the invoice can be paid again.
    pub(in crate::store::redb) fn refuse_payment(&mut self, number: u64) -> Outcome<()> {
        let money = &mut self.money;
        if money.transactions.get(number)?.is_none() {
            return Ok(Err(WalletStoreError::UnknownTransaction(number)));
        }
        let record = money.transaction(number)?;
        let (TransactionState::InFlight, Purpose::Incoming(invoice)) =
            (record.state, record.purpose)
        else {
            return Ok(Err(WalletStoreError::NotInFlight(number)));
        };
        if money.was_displaced(number)? {
            money.set_state(number, TransactionState::Displaced)?;
        } else {
            for key in money.made_by(number)? {
                money.coins.remove(key)?;
            }
            money.transactions.remove(number)?;
            money.raw.remove(number)?;
            money.followed.remove(number)?;
            money.incoming.remove((invoice, number))?;
        }
        money.in_flight.remove(invoice)?;
        money.refunds.remove(invoice)?;
        self.make_payable(invoice)?;
        Ok(Ok(()))
    }

    /// Has an invoice that nothing pays looked at when it expires: it may have been before.
    fn make_payable(&mut self, number: u64) -> Result<(), StoreError> {
        let invoice = self.invoice(number)?.map_err(StoreError::damaged)?;
        if let Some(invoice) = invoice.filter(|invoice| invoice.deleted_at.is_none()) {
            self.expiries.insert((invoice.expires_at.as_micros(), number), ())?;
        }
        Ok(())
    }

    /// The payment that a request stands for, if there is one that was not in vain: the one that was
    /// made first with its key, or the last one to its URL, which its key stands for from now on.
    pub(in crate::store::redb) fn payment_before(
        &mut self,
        url: &str,
        idempotency: Option<&IdempotencyKey>,
        now: Timestamp,
    ) -> Outcome<Option<OutgoingPayment>> {
        if let Some((number, is_same_request)) = self.remembered(Route::Pay, idempotency, now)?
            && let Some(payment) = self.money.lasting_payment(number)?
        {
            return Ok(match is_same_request {
                true => Ok(Some(payment)),
                false => Err(WalletStoreError::KeyReused),
            });
        }
        let money = &mut self.money;
        let last = money.outgoing_by_url.get(url_hash(url))?.map(|row| row.value());
        let Some(number) = last else { return Ok(Ok(None)) };
        let payment = money.lasting_payment(number)?;
        if payment.is_some() {
            self.remember(Route::Pay, idempotency.cloned(), number, now)?;
        }
        Ok(Ok(payment))
    }

    /// Chooses coins for a payment, and reserves them for the transaction that `build` makes of them,
    /// with the message to the payee.
    pub(in crate::store::redb) fn reserve_coins(
        &mut self,
        new: &NewOutgoing,
        build: impl FnOnce(&Selection) -> Result<(Transaction, Vec<u8>), KeyError>,
    ) -> Outcome<OutgoingPayment> {
        match self.payment_before(&new.url, new.idempotency.as_ref(), new.now)? {
            Ok(Some(payment)) => return Ok(Ok(payment)),
            Ok(None) => {}
            Err(refusal) => return Ok(Err(refusal)),
        }
        let at = self.next_event_at(new.now);
        let money = &mut self.money;
        let satoshis = new.outputs.iter().map(|output| output.satoshis).sum();
        let output_bytes = encoded_len(&new.outputs);
        let spending = Spending { satoshis, output_bytes, fee_rate: new.fee_rate };
        let first = money.coin_to_repeat(&new.url)?;
        let (keys, total) = match money.choose(&spending, first)? {
            Ok(chosen) => chosen,
            Err(spendable) => {
                let needed = spending.needed(1);
                return Ok(Err(WalletStoreError::InsufficientFunds { needed, spendable }));
            }
        };
        let coins = money.coins(&keys)?;
        let change = spending.change(keys.len(), total);
        let change = match self.change_key(change) {
            Ok(change) => change,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let selection = Selection { coins, change };
        let (transaction, message) = match build(&selection) {
            Ok(built) => built,
            Err(error) => return Ok(Err(error.into())),
        };
        if change.is_some() {
            self.figures.last_change += 1;
        }
        self.figures.last_payment += 1;
        let number = self.figures.last_payment;
        let record =
            self.insert_transaction(&transaction, Purpose::Outgoing(number), satoshis, at)?;
        let change_vout = transaction.outputs.len() - 1;
        let money = &mut self.money;
        money.insert_change(record.number, change_vout, change)?;
        money.reserve(record.number, &keys)?;
        let payment = OutgoingRecord {
            number,
            transaction: record.number,
            cancellation: None,
            url: new.url.clone(),
            satoshis,
            fee: total - satoshis - change.map_or(0, |(satoshis, _)| satoshis),
            state: OutgoingState::Open,
            created_at: at,
            expires_at: new.expires_at,
            memo: String::new(),
            channel: None,
        };
        money.put_outgoing(&payment)?;
        money.messages.insert(number, message.as_slice())?;
        money.outgoing_by_url.insert(url_hash(&new.url), number)?;
        self.append_event(at, PAYMENT_STARTED, number)?;
        self.remember(Route::Pay, new.idempotency.clone(), number, new.now)?;
        Ok(Ok(payment.into_payment(&record)))
    }

    fn change_key(&self, change: Option<u64>) -> Result<Option<(u64, u32)>, WalletStoreError> {
        let Some(satoshis) = change else { return Ok(None) };
        let index = self.figures.last_change;
        let index = u32::try_from(index).ok().filter(|index| u64::from(*index) < MAX_CHANGE);
        Ok(Some((satoshis, index.ok_or(WalletStoreError::Full(MAX_CHANGE))?)))
    }

    /// Notes that the payee has accepted a payment, or that the network knows it.
    pub(in crate::store::redb) fn settle_outgoing(
        &mut self,
        number: u64,
        answer: Option<(String, Option<PeerChannel>)>,
        now: Timestamp,
    ) -> Outcome<OutgoingPayment> {
        let money = &mut self.money;
        let Some(mut record) = money.outgoing(number)? else {
            return Ok(Err(WalletStoreError::UnknownPayment(number)));
        };
        if let Some((memo, channel)) = answer {
            record.memo = memo;
            record.channel = channel;
            money.put_outgoing(&record)?;
        }
        let transaction = record.transaction;
        self.settle(transaction, now)?;
        let money = &mut self.money;
        let record = money.outgoing(number)?.expect("it was just there");
        Ok(Ok(money.payment(record)?))
    }

    /// Notes that the payee refuses a payment, which the network does not know either.
    pub(in crate::store::redb) fn refuse_outgoing(
        &mut self,
        number: u64,
        reason: &str,
        now: Timestamp,
    ) -> Outcome<OutgoingPayment> {
        let at = self.next_event_at(now);
        let money = &mut self.money;
        let Some(mut record) = money.outgoing(number)? else {
            return Ok(Err(WalletStoreError::UnknownPayment(number)));
        };
        if record.state != OutgoingState::Open {
            return Ok(Ok(money.payment(record)?));
        }
        record.state = OutgoingState::Refused;
        record.memo = reason.to_owned();
        money.put_outgoing(&record)?;
        money.drop_transaction(record.transaction, at)?;
        money.messages.remove(number)?;
        let payment = money.payment(record)?;
        self.append_event(at, PAYMENT_REFUSED, number)?;
        Ok(Ok(payment))
    }

    /// Notes the transaction that `build` makes of one of the coins of an open payment: it takes the
    /// coin back. Answers the number of that transaction.
    pub(in crate::store::redb) fn begin_cancellation(
        &mut self,
        number: u64,
        spending: &Spending,
        now: Timestamp,
        build: impl FnOnce(&Selection) -> Result<Transaction, KeyError>,
    ) -> Outcome<u64> {
        let at = self.next_event_at(now);
        let money = &mut self.money;
        let Some(mut record) = money.outgoing(number)? else {
            return Ok(Err(WalletStoreError::UnknownPayment(number)));
        };
        match (record.state, record.cancellation) {
            (OutgoingState::Cancelling, Some(cancellation)) => return Ok(Ok(cancellation)),
            (OutgoingState::Open, _) => {}
            (state, _) => return Ok(Err(WalletStoreError::NotOpen(number, state))),
        }
        let keys = money.spent_by(record.transaction)?;
        let mut coins = money.coins(&keys)?;
        let dearest = (0..coins.len()).max_by_key(|index| coins[*index].satoshis);
        let index = dearest.ok_or_else(|| StoreError::damaged("a payment without coins"))?;
        let (key, coin) = (keys[index], coins.swap_remove(index));
        let left = spending.change(1, coin.satoshis).unwrap_or(1);
        let change = match self.change_key(Some(left)) {
            Ok(change) => change,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let transaction = match build(&Selection { coins: vec![coin], change }) {
            Ok(transaction) => transaction,
            Err(error) => return Ok(Err(error.into())),
        };
        self.figures.last_change += 1;
        let cancellation =
            self.insert_transaction(&transaction, Purpose::Cancellation(number), left, at)?;
        let money = &mut self.money;
        money.insert_change(cancellation.number, 0, change)?;
        // Until one of the two wins, the coin stays reserved for the payment.
        money.spent.insert((cancellation.number, key.0, key.1), ())?;
        record.state = OutgoingState::Cancelling;
        record.cancellation = Some(cancellation.number);
        money.put_outgoing(&record)?;
        Ok(Ok(cancellation.number))
    }

    /// Runs a change of the transaction of this number, if there is one.
    pub(in crate::store::redb) fn of_transaction(
        &mut self,
        number: u64,
        change: impl FnOnce(&mut Self) -> Result<(), StoreError>,
    ) -> Outcome<()> {
        if self.money.transactions.get(number)?.is_none() {
            return Ok(Err(WalletStoreError::UnknownTransaction(number)));
        }
        change(self).map(Ok)
    }

    /// Notes that the network has taken a transaction of the wallet, whatever was known of it before:
    /// invoices are paid by it, coins come and go, and what contradicts it gives way.
    pub(in crate::store::redb) fn settle(
        &mut self,
        number: u64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let at = self.next_event_at(now);
        let record = self.money.transaction(number)?;
        if record.state == TransactionState::Settled {
            return Ok(());
        }
        if let Purpose::Cancellation(payment) = record.purpose {
            // Before the payment gives way, which is displaced otherwise.
            self.set_outgoing_state(payment, OutgoingState::Cancelled)?;
        }
        for key in self.money.spent_by(number)? {
            if let Some(other) = self.money.coin_row(key)?.3.filter(|other| *other != number) {
                self.give_way(other, at)?;
            }
            let money = &mut self.money;
            money.set_spendable(key, false)?;
            money.set_spender(key, Some(number))?;
            if money.is_settled(key.0)? {
                let (satoshis, ..) = money.coin_row(key)?;
                self.lower_balance(satoshis)?;
            }
        }
        let money = &mut self.money;
        money.set_state(number, TransactionState::Settled)?;
        if money.followed.get(number)?.is_none_or(|until| until.value() != FOR_EVER) {
            money.followed.insert(number, FOR_EVER)?;
        }
        for key in money.made_by(number)? {
            let money = &mut self.money;
            let (satoshis, _, _, spender) = money.coin_row(key)?;
            money.set_spendable(key, spender.is_none())?;
            let is_spent = spender.map(|spender| money.is_settled(spender)).transpose()?;
            if is_spent != Some(true) {
                self.raise_balance(satoshis)?;
            }
        }
        match record.purpose {
            Purpose::Incoming(invoice) => self.note_paid(invoice, &record, at),
            Purpose::Outgoing(payment) => {
                self.set_outgoing_state(payment, OutgoingState::Settled)?;
                self.give_up_cancellation(payment, at)?;
                self.append_event(at, PAYMENT_SETTLED, payment)
            }
            Purpose::Cancellation(payment) => self.append_event(at, PAYMENT_CANCELLED, payment),
            Purpose::Recovered => Ok(()),
        }
    }

    fn note_paid(
        &mut self,
        number: u64,
        record: &TransactionRecord,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let missing = || StoreError::damaged("a paid invoice is missing");
        let money = &mut self.money;
        if money.in_flight(number)? == Some(record.number) {
            money.in_flight.remove(number)?;
        }
        let invoice = self.invoice(number)?.map_err(StoreError::damaged)?;
        let mut invoice = invoice.ok_or_else(missing)?;
        if invoice.payment_received_at.is_some() || invoice.deleted_at.is_some() {
            // Another transaction has paid it since this one was displaced.
            return Ok(());
        }
        invoice.payment_received_at = Some(at);
        self.invoices.insert(number, invoice_row(&invoice))?;
        self.append_event(at, INVOICE_PAID, number)
    }

    fn set_outgoing_state(&mut self, number: u64, state: OutgoingState) -> Result<(), StoreError> {
        let money = &mut self.money;
        let missing = || StoreError::damaged("a payment is missing");
        let mut record = money.outgoing(number)?.ok_or_else(missing)?;
        record.state = state;
        money.put_outgoing(&record)?;
        if !state.is_open() {
            money.messages.remove(number)?;
        }
        Ok(())
    }

    /// The coin that was to be taken back is spent.
    fn give_up_cancellation(&mut self, payment: u64, at: Timestamp) -> Result<(), StoreError> {
        let money = &mut self.money;
        let cancellation = money.outgoing(payment)?.and_then(|record| record.cancellation);
        if let Some(number) = cancellation
            && money.transaction(number)?.state == TransactionState::InFlight
        {
            money.drop_transaction(number, at)?;
        }
        Ok(())
    }

    /// Notes that another transaction has taken the place of one of the wallet: what it did is undone,
    /// after what the wallet's later transactions did with its coins.
    pub(in crate::store::redb) fn displace(
        &mut self,
        number: u64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.give_way(number, self.next_event_at(now))
    }

    fn give_way(&mut self, number: u64, at: Timestamp) -> Result<(), StoreError> {
        // Each is undone after all that spend its coins.
        let mut path = vec![number];
        while let Some(&number) = path.last() {
            let money = &mut self.money;
            let mut spender = None;
            for key in money.made_by(number)? {
                spender = spender.or(money.coin_row(key)?.3);
            }
            match spender {
                Some(spender) => path.push(spender),
                None => {
                    self.undo(number, at)?;
                    path.pop();
                }
            }
        }
        Ok(())
    }

    /// Undoes what a transaction did whose coins nothing spends.
    fn undo(&mut self, number: u64, at: Timestamp) -> Result<(), StoreError> {
        let money = &mut self.money;
        let mut record = money.transaction(number)?;
        let was_settled = record.state == TransactionState::Settled;
        if !was_settled && record.state != TransactionState::InFlight {
            return Ok(());
        }
        for key in money.made_by(number)? {
            let money = &mut self.money;
            money.set_spendable(key, false)?;
            let (satoshis, ..) = money.coin_row(key)?;
            if was_settled {
                self.lower_balance(satoshis)?;
            }
        }
        let money = &mut self.money;
        for key in money.spent_by(number)? {
            let money = &mut self.money;
            let (satoshis, _, _, spender) = money.coin_row(key)?;
            if was_settled && spender == Some(number) && money.is_settled(key.0)? {
                self.raise_balance(satoshis)?;
            }
        }
        let money = &mut self.money;
        money.release(number)?;
        if let Some(place) = record.block.take() {
            money.mined.remove((place.height, number))?;
        }
        record.state = TransactionState::Displaced;
        money.put_transaction(&record)?;
        money.followed.insert(number, at.after(AFTERCARE).as_micros())?;
        match record.purpose {
            Purpose::Incoming(invoice) => {
                if money.in_flight(invoice)? == Some(number) {
                    money.in_flight.remove(invoice)?;
                }
                match money.is_paid(invoice)? {
                    true => Ok(()),
                    false => self.note_unpaid(invoice, at),
                }
            }
            Purpose::Outgoing(payment) => {
                let state = money.outgoing(payment)?.map(|record| record.state);
                if state == Some(OutgoingState::Cancelled) {
                    return Ok(());
                }
                self.set_outgoing_state(payment, OutgoingState::Displaced)?;
                self.give_up_cancellation(payment, at)?;
                self.append_event(at, PAYMENT_DISPLACED, payment)
            }
            // What takes its place says what becomes of the payment.
            Purpose::Cancellation(_) | Purpose::Recovered => Ok(()),
        }
    }

    fn note_unpaid(&mut self, number: u64, at: Timestamp) -> Result<(), StoreError> {
        let missing = || StoreError::damaged("a paid invoice is missing");
        self.money.refunds.remove(number)?;
        let invoice = self.invoice(number)?.map_err(StoreError::damaged)?;
        let mut invoice = invoice.ok_or_else(missing)?;
        invoice.payment_received_at = None;
        self.invoices.insert(number, invoice_row(&invoice))?;
        self.make_payable(number)?;
        self.append_event(at, INVOICE_PAYMENT_DISPLACED, number)
    }

    /// Notes that a transaction is in a block of the main chain.
    pub(in crate::store::redb) fn prove(
        &mut self,
        number: u64,
        proof: &Proof,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.settle(number, now)?;
        let at = self.next_event_at(now);
        let money = &mut self.money;
        let mut record = money.transaction(number)?;
        let Proof { block, branch } = proof;
        if record.block == Some(*block) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        branch.encode(&mut bytes);
        let last = money.proofs.range((number, 0)..=(number, u32::MAX))?.next_back();
        let last = last.transpose()?.map_or(0, |(key, _)| key.value().1);
        let row = (block.height, *block.hash.as_bytes(), at.as_micros(), false, bytes.as_slice());
        money.proofs.insert((number, last + 1), row)?;
        if let Some(old) = record.block.replace(*block) {
            money.mined.remove((old.height, number))?;
        }
        money.put_transaction(&record)?;
        money.mined.insert((block.height, number), ())?;
        money.followed.remove(number)?;
        Ok(())
    }

    /// Notes that a block is no longer in the main chain: what it held has to be proved again.
    pub(in crate::store::redb) fn forget_block(
        &mut self,
        block: &BlockPlace,
    ) -> Result<(), StoreError> {
        let money = &mut self.money;
        let height = block.height;
        let rows = money.mined.range((height, 0)..=(height, u64::MAX))?;
        let numbers = rows.map(|row| Ok(row?.0.value().1));
        let numbers = numbers.collect::<Result<Vec<_>, StoreError>>()?;
        for number in numbers {
            let mut record = money.transaction(number)?;
            if record.block == Some(*block) {
                record.block = None;
                money.put_transaction(&record)?;
                money.mined.remove((height, number))?;
                money.followed.insert(number, FOR_EVER)?;
            }
        }
        Ok(())
    }

    /// Looks after a transaction no longer whose time is over, or for another while if it could still be
    /// mined.
    pub(in crate::store::redb) fn unfollow(&mut self, number: u64) -> Result<(), StoreError> {
        let money = &mut self.money;
        let until = money.followed.get(number)?.map(|until| until.value());
        let Some(until) = until.filter(|until| *until != FOR_EVER) else { return Ok(()) };
        if money.is_void(number)? {
            money.followed.remove(number)?;
        } else {
            let until = Timestamp::from_micros(until).after(AFTERCARE);
            money.followed.insert(number, until.as_micros())?;
        }
        Ok(())
    }

    /// Notes whether the payer has read a proof. Answers whether there is such a proof.
    pub(in crate::store::redb) fn mark_read(
        &mut self,
        number: u64,
        sequence: u32,
        is_read: bool,
    ) -> Result<bool, StoreError> {
        let proofs = &mut self.money.proofs;
        let Some((height, hash, at, branch)) = proofs.get((number, sequence))?.map(|row| {
            let (height, hash, at, _, branch) = row.value();
            (height, hash, at, branch.to_owned())
        }) else {
            return Ok(false);
        };
        proofs.insert((number, sequence), (height, hash, at, is_read, branch.as_slice()))?;
        Ok(true)
    }

    /// Takes over transactions that were found in the chain, in the order of their numbers.
    pub(in crate::store::redb) fn recover(
        &mut self,
        found: &[Recovered],
    ) -> Result<(), StoreError> {
        for Recovered { number, transaction, proof, coins, spends, at } in found {
            if *number != self.figures.last_transaction + 1 {
                return Err(StoreError::damaged("transactions are recovered out of their order"));
            }
            let amount = |vout: u32| transaction.outputs.get(vout as usize).map(|it| it.satoshis);
            let amounts = coins.iter().map(|(vout, _)| amount(*vout));
            let amounts: Option<Vec<_>> = amounts.collect();
            let amounts = amounts.ok_or_else(|| StoreError::damaged("a coin without an output"))?;
            let satoshis = amounts.iter().sum();
            let record = self.insert_transaction(transaction, Purpose::Recovered, satoshis, *at)?;
            let money = &mut self.money;
            for ((vout, key), satoshis) in coins.iter().zip(amounts) {
                let coin = (satoshis, key.chain as u8, key.index, None);
                money.coins.insert((record.number, *vout), coin)?;
            }
            for (maker, vout) in spends {
                money.spent.insert((record.number, *maker, *vout), ())?;
            }
            match proof {
                Some(proof) => self.prove(record.number, proof, *at)?,
                None => self.settle(record.number, *at)?,
            }
        }
        Ok(())
    }

    /// Notes which numbers of keys are not to be given out.
    pub(in crate::store::redb) fn pass_over(&mut self, used: UsedNumbers) {
        let figures = &mut self.figures;
        figures.last_invoice = figures.last_invoice.max(used.invoices.into());
        figures.last_user = figures.last_user.max(used.users.into());
        figures.last_change = figures.last_change.max(used.change.into());
    }

    fn insert_transaction(
        &mut self,
        transaction: &Transaction,
        purpose: Purpose,
        satoshis: u64,
        at: Timestamp,
    ) -> Result<TransactionRecord, StoreError> {
        self.figures.last_transaction += 1;
        let record = TransactionRecord {
            number: self.figures.last_transaction,
            txid: transaction.txid(),
            purpose,
            state: TransactionState::InFlight,
            satoshis,
            at,
            block: None,
        };
        let money = &mut self.money;
        money.put_transaction(&record)?;
        money.raw.insert(record.number, transaction.to_bytes().as_slice())?;
        money.followed.insert(record.number, FOR_EVER)?;
        Ok(record)
    }

    fn raise_balance(&mut self, satoshis: u64) -> Result<(), StoreError> {
        let sum = self.figures.balance.checked_add(satoshis);
        self.figures.balance =
            sum.ok_or_else(|| StoreError::damaged("the balance is too large"))?;
        Ok(())
    }

    fn lower_balance(&mut self, satoshis: u64) -> Result<(), StoreError> {
        let rest = self.figures.balance.checked_sub(satoshis);
        self.figures.balance =
            rest.ok_or_else(|| StoreError::damaged("the balance is too small"))?;
        Ok(())
    }
}

impl MoneyTables<'_> {
    fn insert_change(
        &mut self,
        number: u64,
        vout: usize,
        change: Option<(u64, u32)>,
    ) -> Result<(), StoreError> {
        let Some((satoshis, index)) = change else { return Ok(()) };
        let vout = u32::try_from(vout).expect("a payment has few outputs");
        self.coins.insert((number, vout), (satoshis, Chain::Change as u8, index, None))?;
        Ok(())
    }

    /// Puts a transaction in flight once more that was displaced. It is not looked after for ever, by
    /// which it can be told that it was displaced.
    fn begin_again(
        &mut self,
        mut record: TransactionRecord,
        at: Timestamp,
    ) -> Result<TransactionRecord, StoreError> {
        record.state = TransactionState::InFlight;
        self.put_transaction(&record)?;
        self.followed.insert(record.number, at.after(AFTERCARE).as_micros())?;
        Ok(record)
    }

    fn was_displaced(&self, in_flight: u64) -> Result<bool, StoreError> {
        Ok(self.followed.get(in_flight)?.is_some_and(|until| until.value() != FOR_EVER))
    }

    /// Gives up a transaction that the network does not know; that is looked after for a while longer.
    fn drop_transaction(&mut self, number: u64, at: Timestamp) -> Result<(), StoreError> {
        self.release(number)?;
        self.set_state(number, TransactionState::Dropped)?;
        self.followed.insert(number, at.after(AFTERCARE).as_micros())?;
        Ok(())
    }
}
