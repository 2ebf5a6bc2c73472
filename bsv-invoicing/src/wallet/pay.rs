//! Paying: somebody's payment URL, from the wallet's coins.

mod faucet;
mod payee;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bsv_network::{NodeError, TransactionPlace};
use bsv_tx::{KeyError, Script, Transaction, TxIn, TxOut, sign_p2pkh};
use reqwest::Url;
use tokio::sync::watch;

use self::payee::outcome_unclear;
use crate::dpp::{Acknowledgement, AnswerError, FeeRate, Payment, ReceivedTerms, TermsError};
use crate::error::Error;
use crate::model::coin::{Chain, Coin, KeyPath, Spending, encoded_len, fee};
use crate::model::fields::{FieldErrors, Members};
use crate::model::idempotency::IdempotencyKey;
use crate::model::payment::{NewOutgoing, OutgoingPayment, OutgoingState, Selection};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::follow::NO_INDEX;
use crate::wallet::receive::{away, unknown};
use crate::wallet::running::Place;
use crate::wallet::seed::WalletKeys;

pub use self::faucet::faucet;
pub(crate) use self::payee::Payee;

/// A payment that is being made.
#[derive(Clone, Debug)]
pub(crate) struct Paying {
    /// Whether somebody waits for it, or it is looked after in the background.
    is_asked_for: bool,
    end: watch::Receiver<()>,
}

/// Keeps others from making the same payment, and tells them when it is done.
struct PlaceToPay {
    _place: Place<String, Paying>,
    // Dropped last.
    _end: watch::Sender<()>,
}

/// The longest payment URL, in bytes.
const MAX_URL_LEN: usize = 2048;
/// For how long after its terms have expired a payment may still be accepted.
const GRACE: Duration = Duration::from_secs(60 * 60);
/// For how long terms hold that do not say so.
const DEFAULT_TERM: Duration = Duration::from_secs(60 * 60);

impl<S: WalletStore> Wallet<S> {
    /// Pays to a payment URL. A URL that was paid is answered the same again; while the outcome is
    /// open, the same transaction is sent again; after a refusal, a new one is made.
    ///
    /// What is begun goes on if the caller stops waiting.
    pub async fn pay(
        self: &Arc<Self>,
        url: &str,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<OutgoingPayment, Error> {
        let url = payment_url(url)?;
        let place = self.place_to_pay(url.as_str()).await?;
        let wallet = Arc::clone(self);
        let paid = tokio::spawn(async move {
            let _place = place;
            wallet.pay_alone(&url, idempotency).await
        });
        paid.await.unwrap_or_else(|_| Err(Error::OutcomeUnknown("it broke off".to_owned())))
    }

    async fn pay_alone(
        &self,
        url: &Url,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<OutgoingPayment, Error> {
        let before = self.store.outgoing_to(url.as_str(), idempotency.clone(), self.now()).await?;
        if let Some(payment) = before {
            return self.go_on(payment).await;
        }
        // Without a node nobody could tell what becomes of a payment.
        let floor = self.node()?.least_fee_rate().await.map_err(away)?;
        self.fee_floor.store(floor, Ordering::Relaxed);
        let terms = self.payee.terms(url, self.settings.network).await?;
        let new = self.payment_of(url, &terms, idempotency)?;
        let keys = Arc::clone(&self.keys);
        let build = move |selection: &Selection| {
            let transaction = sign(&keys, &terms_outputs(&terms), selection)?;
            let message = terms.payment(&transaction, "");
            Ok((transaction, message))
        };
        let payment = self.store.reserve_coins(new, build).await?;
        self.go_on(payment).await
    }

    /// Goes on with a payment that has begun.
    async fn go_on(&self, payment: OutgoingPayment) -> Result<OutgoingPayment, Error> {
        match payment.state {
            OutgoingState::Settled => Ok(payment),
            OutgoingState::Open => self.post(payment.number).await,
            state => Err(Error::NotOpen(payment.number, state)),
        }
    }

    /// Keeps others from making a payment to this URL. What goes on there in the background is waited
    /// for.
    async fn place_to_pay(&self, url: &str) -> Result<PlaceToPay, Error> {
        loop {
            match self.begin_paying(url, true) {
                Ok(place) => return Ok(place),
                Err(Paying { is_asked_for: true, .. }) => return Err(Error::PaymentRunning),
                Err(Paying { mut end, .. }) => drop(end.changed().await),
            }
        }
    }

    fn begin_paying(&self, url: &str, is_asked_for: bool) -> Result<PlaceToPay, Paying> {
        let (sender, end) = watch::channel(());
        let place = self.paying.begin(url.to_owned(), Paying { is_asked_for, end })?;
        Ok(PlaceToPay { _place: place, _end: sender })
    }

    /// The payment that terms ask for, if the wallet may make it.
    fn payment_of(
        &self,
        url: &Url,
        received: &ReceivedTerms,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<NewOutgoing, Error> {
        let terms = &received.terms;
        let now = self.now();
        let expires_at = terms.expires_at.unwrap_or_else(|| now.after(DEFAULT_TERM));
        if expires_at <= now {
            return Err(Error::PayeeRefuses(format!("the payment terms expired at {expires_at}")));
        }
        let limit = self.settings.max_fee_rate;
        // A payee that quotes nothing may want what we do.
        let quoted = terms.fees.map_or(self.settings.fee_rate.min(limit), |fees| {
            per_kilobyte(fees.standard).max(per_kilobyte(fees.data))
        });
        let fee_rate = quoted.max(self.fee_floor.load(Ordering::Relaxed));
        if fee_rate > limit {
            return Err(Error::FeeTooHigh { asked: fee_rate, limit });
        }
        let outputs = terms_outputs(received);
        // By large outputs, a payee can make a payment of little dear.
        let asked = terms.satoshis().max(fee(fee_rate, encoded_len(&outputs)));
        let limit = self.settings.pay_limit;
        if asked > limit {
            return Err(Error::OverLimit { asked, limit });
        }
        Ok(NewOutgoing { url: url.to_string(), outputs, fee_rate, expires_at, now, idempotency })
    }

    /// Posts an open payment to its payee, and notes the outcome.
    async fn post(&self, number: u64) -> Result<OutgoingPayment, Error> {
        let (payment, message) = self.outgoing_with_message(number).await?;
        let url = payment_url(&payment.url)?;
        let dialect = Payment::from_json(&message)
            .map_err(|error| Error::PayeeNonsense(error.to_string()))?
            .dialect;
        let (status, answer) = self.payee.post(&url, dialect, message).await?;
        match Acknowledgement::from_answer(dialect, status, &answer, &payment.txid) {
            Ok(Acknowledgement { memo, peer_channel, .. }) => {
                let answer = Some((memo, peer_channel));
                let payment = self.store.settle_outgoing(number, answer, self.now()).await?;
                self.pass_on(number).await;
                Ok(payment)
            }
            Err(AnswerError::Refused(reason)) => self.refused(&payment, &reason).await,
            Err(error @ AnswerError::Unavailable(_)) => {
                Err(Error::OutcomeUnknown(error.to_string()))
            }
            Err(AnswerError::Nonsense(reason)) => Err(outcome_unclear(&reason)),
        }
    }

    /// The payee has refused a payment. That is believed unless the network knows the transaction.
    async fn refused(
        &self,
        payment: &OutgoingPayment,
        reason: &str,
    ) -> Result<OutgoingPayment, Error> {
        let number = payment.number;
        let now = self.now();
        let node = self.node()?;
        match node.transaction_place(&payment.txid).await.map_err(unknown)? {
            TransactionPlace::Nowhere
                if !node.has_transaction_index().await.map_err(unknown)? =>
            {
                Err(Error::OutcomeUnknown(NO_INDEX.to_owned()))
            }
            TransactionPlace::Nowhere => {
                self.store.refuse_outgoing(number, reason.to_owned(), now).await?;
                Err(Error::PayeeRefuses(format!("the payee refuses the payment: {reason}")))
            }
            TransactionPlace::Mempool | TransactionPlace::Block(_) => {
                Ok(self.store.settle_outgoing(number, None, now).await?)
            }
        }
    }

    /// Gives the node a transaction that the payee has accepted, and may have kept for itself. If that
    /// fails, it is tried again when transactions are followed.
    async fn pass_on(&self, payment: u64) {
        let sent = async {
            let transaction = self.store.outgoing_transaction(payment).await?;
            self.node()?.send_transaction(&transaction).await.map_err(away)?;
            Ok::<_, Error>(())
        };
        if let Err(error) = sent.await {
            tracing::warn!("payment {payment} could not be passed on to the network: {error}");
        }
    }

    /// Sees what becomes of an open payment whose transaction the network does not know.
    pub(crate) async fn resume(&self, number: u64) -> Result<(), Error> {
        let url = self.outgoing_payment(number).await?.url;
        let Ok(_place) = self.begin_paying(&url, false) else { return Ok(()) };
        let payment = self.outgoing_payment(number).await?;
        match payment.state {
            OutgoingState::Open if payment.expires_at.after(GRACE) <= self.expiry_time() => {
                self.cancel_alone(number).await.map(drop)
            }
            OutgoingState::Open => self.post(number).await.map(drop),
            OutgoingState::Cancelling => self.cancel_alone(number).await.map(drop),
            _ => Ok(()),
        }
    }

    /// Cancels an open payment: one of its coins is spent otherwise. Answers the payment, cancelled, or
    /// settled if the network knew it already.
    pub async fn cancel_payment(&self, number: u64) -> Result<OutgoingPayment, Error> {
        let url = self.outgoing_payment(number).await?.url;
        let _place = self.place_to_pay(&url).await?;
        let payment = self.outgoing_payment(number).await?;
        match payment.state.is_open() {
            true => self.cancel_alone(number).await,
            false => Err(Error::NotOpen(number, payment.state)),
        }
    }

    async fn cancel_alone(&self, number: u64) -> Result<OutgoingPayment, Error> {
        let node = self.node()?;
        let payment = self.outgoing_payment(number).await?;
        if node.transaction_place(&payment.txid).await.map_err(away)? != TransactionPlace::Nowhere {
            return Ok(self.store.settle_outgoing(number, None, self.now()).await?);
        }
        let rate = self.settings.fee_rate.max(node.least_fee_rate().await.map_err(away)?);
        let spending = Spending { satoshis: 0, output_bytes: 0, fee_rate: rate };
        let keys = Arc::clone(&self.keys);
        let build = move |selection: &Selection| sign(&keys, &[], selection);
        let now = self.now();
        let cancellation = self.store.begin_cancellation(number, spending, now, build).await?;
        let transaction = self.transaction(cancellation).await?;
        match node.send_transaction(&transaction).await {
            Ok(_) => self.store.settle(cancellation, self.now()).await?,
            Err(NodeError::Rejected { message, .. }) => {
                let place = node.transaction_place(&payment.txid).await.map_err(unknown)?;
                if place == TransactionPlace::Nowhere {
                    return Err(Error::RefusedByNetwork(message));
                }
                self.store.settle_outgoing(number, None, self.now()).await?;
            }
            Err(error) => return Err(unknown(error)),
        }
        self.outgoing_payment(number).await
    }

    /// A payment by the wallet.
    pub async fn outgoing_payment(&self, number: u64) -> Result<OutgoingPayment, Error> {
        Ok(self.outgoing_with_message(number).await?.0)
    }

    /// Up to `limit` payments by the wallet before the one of this number, the newest first.
    pub async fn outgoing_payments(
        &self,
        before: u64,
        limit: usize,
    ) -> Result<Vec<OutgoingPayment>, Error> {
        Ok(self.store.outgoing_before(before, limit).await?)
    }

    async fn outgoing_with_message(
        &self,
        number: u64,
    ) -> Result<(OutgoingPayment, Vec<u8>), Error> {
        self.store.outgoing(number).await?.ok_or(Error::UnknownPayment(number))
    }
}

/// A request to pay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayDraft {
    /// The payment URL.
    pub pay_to_url: String,
}

impl PayDraft {
    /// Reads the body of `POST /api/v1/pay`. Members that the specification does not have are ignored.
    pub fn from_json(body: &[u8]) -> Result<Self, Error> {
        let mut members = Members::parse(body)?;
        let url = members.text(PAY_TO_URL);
        let mut errors = members.into_errors();
        if url.is_none() && !errors.has(PAY_TO_URL) {
            errors.add(PAY_TO_URL, "is required");
        }
        errors.into_result()?;
        let draft = Self { pay_to_url: url.unwrap_or_default() };
        payment_url(&draft.pay_to_url)?;
        Ok(draft)
    }
}

const PAY_TO_URL: &str = "payToURL";

/// Reads a URL that can be paid to.
fn payment_url(text: &str) -> Result<Url, Error> {
    if text.len() > MAX_URL_LEN {
        return Err(bad_url(format!("must have at most {MAX_URL_LEN} bytes")));
    }
    let mut url = Url::parse(text).map_err(|error| {
        bad_url(format!("must be a URL such as https://shop.example/api/v1/payment/id: {error}"))
    })?;
    // Payees never see it.
    url.set_fragment(None);
    let problem = if !matches!(url.scheme(), "http" | "https") {
        "must begin with http:// or https://"
    } else if !url.username().is_empty() || url.password().is_some() {
        "must not hold a user name or a password"
    } else if reference(&url).is_empty() {
        "must end with the id of what is paid"
    } else {
        return Ok(url);
    };
    Err(bad_url(problem.to_owned()))
}

fn bad_url(reason: String) -> Error {
    let mut errors = FieldErrors::default();
    errors.add(PAY_TO_URL, reason);
    Error::Invalid(errors)
}

/// The last segment of a payment URL: what the payee knows the payment by.
fn reference(url: &Url) -> &str {
    url.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default()
}

impl OutgoingPayment {
    /// The payment as the wallet specification writes the result of `POST /api/v1/pay`.
    pub fn to_json(&self) -> String {
        let url = Url::parse(&self.url).ok();
        let scheme = url.as_ref().map_or("https", Url::scheme);
        let empty = PeerChannelJson { host: String::new(), path: "", id: "", token: "" };
        let result = PaymentResultJson {
            id: url.as_ref().map(reference).unwrap_or_default(),
            tx_id: self.txid.to_string(),
            memo: &self.memo,
            peer_channel: self.channel.as_ref().map_or(empty, |channel| PeerChannelJson {
                host: format!("{scheme}://{}", channel.host),
                path: &channel.path,
                id: &channel.channel_id,
                token: &channel.token,
            }),
        };
        serde_json::to_string(&result).expect("texts always serialise")
    }
}

#[derive(serde::Serialize)]
struct PaymentResultJson<'a> {
    id: &'a str,
    tx_id: String,
    memo: &'a str,
    peer_channel: PeerChannelJson<'a>,
}

#[derive(serde::Serialize)]
struct PeerChannelJson<'a> {
    host: String,
    path: &'a str,
    id: &'a str,
    token: &'a str,
}

fn terms_outputs(received: &ReceivedTerms) -> Vec<TxOut> {
    let destinations = received.terms.destinations.iter();
    destinations
        .map(|destination| TxOut {
            satoshis: destination.satoshis,
            locking_script: destination.script.clone(),
        })
        .collect()
}

/// A fee rate in satoshis per 1000 bytes, rounded up.
fn per_kilobyte(rate: FeeRate) -> u64 {
    let satoshis = u128::from(rate.satoshis) * 1000;
    u64::try_from(satoshis.div_ceil(u128::from(rate.bytes.max(1)))).unwrap_or(u64::MAX)
}

/// The transaction that makes these outputs of the chosen coins, and the change after them.
fn sign(
    keys: &WalletKeys,
    outputs: &[TxOut],
    selection: &Selection,
) -> Result<Transaction, KeyError> {
    let mut outputs = outputs.to_vec();
    if let Some((satoshis, index)) = selection.change {
        let path = KeyPath { chain: Chain::Change, index };
        let locking_script = Script::p2pkh(&keys.coin(path)?.public_key().hash());
        outputs.push(TxOut { satoshis, locking_script });
    }
    let input = |coin: &Coin| TxIn {
        previous_output: coin.outpoint,
        unlocking_script: Script::from_bytes([]),
        sequence: u32::MAX,
    };
    let inputs = selection.coins.iter().map(input).collect();
    let mut transaction = Transaction { version: 1, inputs, outputs, lock_time: 0 };
    let mut scripts = Vec::with_capacity(selection.coins.len());
    for (index, coin) in selection.coins.iter().enumerate() {
        let key = keys.coin(coin.key)?;
        let locking_script = Script::p2pkh(&key.public_key().hash());
        let spent = TxOut { satoshis: coin.satoshis, locking_script };
        let script = sign_p2pkh(&transaction, index, &spent, &key);
        scripts.push(script.expect("there is an input for each coin"));
    }
    for (input, script) in transaction.inputs.iter_mut().zip(scripts) {
        input.unlocking_script = script;
    }
    Ok(transaction)
}

impl From<TermsError> for Error {
    fn from(error: TermsError) -> Self {
        match error {
            TermsError::Malformed(_) => Self::PayeeNonsense(error.to_string()),
            error => Self::PayeeRefuses(error.to_string()),
        }
    }
}
