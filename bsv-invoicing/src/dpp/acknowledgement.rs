use bsv_tx::Txid;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use super::dialect::{Dialect, HYBRID_MODE};
use super::json::{self, displayed};
use crate::model::outgoing::PeerChannel;

/// How much of a payee's text is kept, in characters.
pub const MAX_WORDS_LEN: usize = 1024;

/// The longest payment that a BIP270 refusal repeats, in bytes.
pub const MAX_REPEATED_LEN: usize = 64 << 10;

/// A payee's statement that it has accepted a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The payee's name for the payment. This wallet uses the invoice's id. Only go-dpp has a
    /// member for it. Reading cuts it after [`MAX_WORDS_LEN`] characters.
    pub reference: String,
    /// The transaction.
    pub txid: Txid,
    /// The payee's text for people. BRC-27 has no member for it. Reading cuts it after
    /// [`MAX_WORDS_LEN`] characters.
    pub memo: String,
    /// The channel where the payer finds the Merkle proof later. BIP270 has no member for it.
    /// Payers that speak go-dpp need it.
    pub peer_channel: Option<PeerChannel>,
}

/// Why a payee's answer to a payment is not an acknowledgement. The texts hold the payee's words,
/// shortened and without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnswerError {
    /// The payee refuses the payment.
    #[error("the payee refuses the payment: {0}")]
    Refused(String),
    /// The payee cannot say whether it accepts the payment. Asking again may help.
    #[error("the payee cannot answer now: {0}")]
    Unavailable(String),
    /// The answer cannot be understood, so it is not known whether the payee accepted the payment.
    #[error("the payee's answer cannot be understood: {0}")]
    Nonsense(String),
}

impl Acknowledgement {
    /// The acknowledgement as a payee writes it. `posted` is the payment's body. A BIP270
    /// acknowledgement repeats it.
    pub fn to_json(&self, dialect: Dialect, posted: &[u8]) -> Vec<u8> {
        let Self { reference, txid, memo, peer_channel } = self;
        match dialect {
            Dialect::GoDpp => {
                json::write(&GoDppAnswer { id: reference, tx_id: txid, memo, peer_channel })
            }
            Dialect::Brc => json::write(&BrcAnswer {
                mode_id: HYBRID_MODE,
                mode: BrcMode { transaction_ids: [Shown(txid)] },
                peer_channel: peer_channel.as_ref().map(|channel| BrcChannel {
                    host: format!("{}{}", channel.host, channel.path),
                    token: &channel.token,
                    channel_id: &channel.channel_id,
                }),
            }),
            Dialect::Bip270 => {
                json::write(&Bip270Answer { payment: json::raw(posted), memo, error: None })
            }
        }
    }

    /// The refusal of a BIP270 payment as a payee writes it. `memo` is the reason, `posted` is the
    /// payment's body. The refusal repeats the body only if it is not longer than
    /// [`MAX_REPEATED_LEN`]: a stranger can have any text refused. In the other dialects the HTTP
    /// status is the refusal.
    pub fn bip270_refusal(memo: &str, posted: &[u8]) -> Vec<u8> {
        let payment = match posted.len() {
            ..=MAX_REPEATED_LEN => json::raw(posted),
            _ => RawValue::NULL,
        };
        json::write(&Bip270Answer { payment, memo, error: Some(1) })
    }

    /// Reads a payee's answer to a payment with the transaction `txid`: the HTTP status and the
    /// body. An acknowledgement need not name the transaction. If it names one, it must be `txid`.
    /// A peer channel that cannot be understood is ignored, because the payment is accepted anyway.
    pub fn from_answer(
        dialect: Dialect,
        status: u16,
        body: &[u8],
        txid: &Txid,
    ) -> Result<Self, AnswerError> {
        match status {
            200..=299 => {}
            // The payee has not read what is too long for it.
            408 | 413 | 425 | 429 | 500.. => {
                return Err(AnswerError::Unavailable(refusal(status, body)));
            }
            400..=499 => return Err(AnswerError::Refused(refusal(status, body))),
            _ => return Err(AnswerError::Nonsense(refusal(status, body))),
        }
        let answer: Answer<'_> = json::read(body).map_err(AnswerError::Nonsense)?;
        if answer.is_error() {
            return Err(AnswerError::Refused(refusal(status, body)));
        }
        if let Some(other) = answer.named().find(|named| !json::names(named, txid)) {
            let other = json::shorten(other.to_owned());
            return Err(AnswerError::Nonsense(format!("it names transaction {other}")));
        }
        let is_right_kind = match dialect {
            Dialect::GoDpp => answer.tx_id.is_some() || answer.id.is_some(),
            Dialect::Brc => answer.mode.is_some() || answer.mode_id.is_some(),
            Dialect::Bip270 => answer.payment.is_some() || answer.memo.is_some(),
        };
        if !is_right_kind {
            return Err(AnswerError::Nonsense("it is not an acknowledgement".to_owned()));
        }
        let go_dpp = answer.peer_channel.and_then(PeerChannel::read);
        let brc = || answer.brc_peer_channel.and_then(PeerChannel::read).map(PeerChannel::split);
        Ok(Self {
            reference: words(answer.id),
            txid: *txid,
            memo: words(answer.memo),
            peer_channel: go_dpp.or_else(brc),
        })
    }
}

impl PeerChannel {
    fn read(raw: &RawValue) -> Option<Self> {
        let channel: Self = json::read_text(raw.get()).ok()?;
        let members = [&channel.host, &channel.path, &channel.channel_id, &channel.token];
        members.iter().all(|member| member.len() <= MAX_WORDS_LEN).then_some(channel)
    }

    /// BRC-27 has no member for the path: it follows the host.
    fn split(mut self) -> Self {
        if let Some(end) = self.host.find('/') {
            self.path.insert_str(0, &self.host[end..]);
            self.host.truncate(end);
        }
        self
    }
}

fn words(text: Option<String>) -> String {
    let mut text = text.unwrap_or_default();
    if let Some((end, _)) = text.char_indices().nth(MAX_WORDS_LEN) {
        text.truncate(end);
    }
    text
}

/// Why a payee refuses: its own words, or else the HTTP status.
pub(crate) fn refusal(status: u16, body: &[u8]) -> String {
    let said: Option<Words> = json::read(body).ok();
    let words = said.and_then(|words| {
        let words = [words.memo, words.detail, words.message, words.title];
        words.into_iter().flatten().find(|word| !word.trim().is_empty())
    });
    match words {
        Some(words) => json::shorten(words),
        None => format!("HTTP status {status}"),
    }
}

#[derive(Deserialize)]
struct Words {
    memo: Option<String>,
    detail: Option<String>,
    message: Option<String>,
    title: Option<String>,
}

/// An answer in any dialect.
#[derive(Deserialize)]
struct Answer<'a> {
    id: Option<String>,
    tx_id: Option<String>,
    #[serde(rename = "modeId")]
    mode_id: Option<String>,
    mode: Option<AnswerMode>,
    #[serde(borrow)]
    payment: Option<&'a RawValue>,
    memo: Option<String>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    peer_channel: Option<&'a RawValue>,
    #[serde(rename = "peerChannel", borrow)]
    brc_peer_channel: Option<&'a RawValue>,
}

/// The text of BRC-54 and its example use different names for the list.
#[derive(Deserialize)]
struct AnswerMode {
    #[serde(rename = "transactionIds")]
    transaction_ids: Option<Vec<String>>,
    transactions: Option<Vec<String>>,
}

impl Answer<'_> {
    fn is_error(&self) -> bool {
        self.error.is_some_and(|error| !matches!(error.get(), "0" | "false" | "\"\""))
    }

    /// The transactions that the answer names.
    fn named(&self) -> impl Iterator<Item = &str> {
        let modes = self.mode.iter();
        let listed = modes.flat_map(|mode| [&mode.transaction_ids, &mode.transactions]);
        let named = listed.flatten().flatten().chain(&self.tx_id);
        named.map(String::as_str).filter(|named| !named.is_empty())
    }
}

#[derive(Serialize)]
struct GoDppAnswer<'a> {
    id: &'a str,
    #[serde(serialize_with = "displayed")]
    tx_id: &'a Txid,
    memo: &'a str,
    peer_channel: &'a Option<PeerChannel>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BrcAnswer<'a> {
    mode_id: &'a str,
    mode: BrcMode<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_channel: Option<BrcChannel<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BrcMode<'a> {
    transaction_ids: [Shown<'a>; 1],
}

#[derive(Serialize)]
struct Shown<'a>(#[serde(serialize_with = "displayed")] &'a Txid);

#[derive(Serialize)]
struct BrcChannel<'a> {
    host: String,
    token: &'a str,
    channel_id: &'a str,
}

#[derive(Serialize)]
struct Bip270Answer<'a> {
    payment: &'a RawValue,
    memo: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<u8>,
}
