use std::fmt;

use bsv_tx::{Bump, Txid};
use secrecy::SecretString;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

use crate::hex_digits;
use crate::service::{one_line, without};

/// The answer of a broadcaster about one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What it says became of the transaction.
    pub word: Word,
    /// The Merkle path that it gives, with the transaction as a marked leaf. If the path leads to the root
    /// of a header of the main chain, the transaction is mined, whatever the word is.
    pub path: Option<Bump>,
}

/// What a broadcaster says became of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// The network has it.
    Taken,
    /// It is on its way, or nobody knows. A transaction that is said to be mined without a path that
    /// holds is open, too.
    Open,
    /// The transaction breaks a rule. Another broadcaster may see that differently.
    Refused {
        /// The code (461 to 475), if it has one. 465 and 473 say that the fee is too low.
        code: Option<u16>,
        /// The words of the service, in one line of at most 200 bytes.
        reason: String,
    },
    /// The service did not take it and names no rule: it may be the trouble of the service.
    Rejected {
        /// The words of the service, in one line of at most 200 bytes.
        reason: String,
    },
    /// The service does not know the coins that it spends.
    InputsUnknown {
        /// The code: 460, or 462 if the coins may be spent.
        code: u16,
    },
    /// The service knows another transaction that spends one of its coins.
    Rival {
        /// Those that the service names, 16 at most.
        spenders: Vec<Txid>,
        /// Whether the service refuses the transaction. Otherwise it may have it, too.
        is_refused: bool,
    },
    /// It cannot be taken before its ancestors, before a block that the service does not have yet, or
    /// before its lock time.
    NotYet,
    /// The service has no record of it, which proves nothing.
    Unknown,
}

/// The members that both dialects use in all their answers about a transaction. Each member may be
/// absent or null.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Members {
    pub(super) txid: Option<String>,
    pub(super) tx_status: Option<String>,
    status: Option<u16>,
    merkle_path: Option<String>,
    competing_txs: Option<Spenders>,
    extra_info: Option<String>,
    reason: Option<String>,
    detail: Option<String>,
    title: Option<String>,
    error: Option<String>,
}

/// The transactions that an answer names as spenders of the same coins, as far as they are kept.
#[derive(Debug)]
struct Spenders(Vec<Txid>);

/// The most spenders that are kept of an answer.
const MOST_SPENDERS: usize = 16;
/// How the words of a refusal begin if only an ancestor was refused.
const PARENT_REJECTED: &str = "parent rejected";
/// What stands before the id of the transaction that has spent a coin.
const SPENT_BY: &str = "already spent by tx ";
const TXID_DIGITS: usize = 64;

impl Members {
    /// The answer, by the state that it names.
    pub(super) fn of_state(&self, state: &str, txid: &Txid) -> Answer {
        let word = match state {
            "SEEN_ON_NETWORK" | "SEEN_MULTIPLE_NODES" | "STUMP_PROCESSING" | "IMMUTABLE" => {
                Word::Taken
            }
            "DOUBLE_SPEND_ATTEMPTED" => self.rival(txid, false),
            "REJECTED" => self.of_code(self.status, txid),
            _ => Word::Open,
        };
        Answer { word, path: self.path(txid) }
    }

    /// Takes our secrets out of the words.
    pub(super) fn hide(&mut self, secrets: &[SecretString]) {
        let Self { extra_info, reason, detail, title, error, .. } = self;
        for words in [extra_info, reason, detail, title, error].into_iter().flatten() {
            *words = without(secrets, words);
        }
    }

    /// What a refusal means, by its code.
    pub(super) fn of_code(&self, code: Option<u16>, txid: &Txid) -> Word {
        let reason = self.reason();
        if reason.starts_with(PARENT_REJECTED) {
            return Word::NotYet;
        }
        match code {
            // The code says nothing by itself.
            Some(467) if self.own_words().is_none() => Word::Rejected { reason },
            Some(461 | 463..=465 | 467..=469 | 471..=475) => Word::Refused { code, reason },
            Some(code @ (460 | 462)) => Word::InputsUnknown { code },
            Some(466) => self.rival(txid, true),
            Some(476) => Word::NotYet,
            _ => Word::Rejected { reason },
        }
    }

    /// What a refusal of Arcade without a code means, if it is about the transaction.
    pub(super) fn without_code(&self, txid: &Txid) -> Option<Word> {
        match self.error.as_deref()? {
            "failed to parse transaction" | "empty transaction" => {
                Some(Word::Refused { code: None, reason: self.reason() })
            }
            "transaction failed validation" => Some(self.of_code(None, txid)),
            _ => None,
        }
    }

    /// The code of a refusal in the body, if it is one of this kind.
    pub(super) fn code(&self) -> Option<u16> {
        self.status.filter(|code| (460..=476).contains(code))
    }

    /// A rival. The transaction itself is none, whatever the service names.
    fn rival(&self, txid: &Txid, is_refused: bool) -> Word {
        let told = self.extra_info.as_deref().and_then(|info| info.split_once(SPENT_BY));
        let told = told.and_then(|(_, rest)| rest.get(..TXID_DIGITS)?.parse().ok());
        let named = self.competing_txs.iter().flat_map(|Spenders(named)| named.iter().copied());
        let spenders = told.into_iter().chain(named).filter(|spender| spender != txid);
        Word::Rival { spenders: spenders.take(MOST_SPENDERS).collect(), is_refused }
    }

    fn path(&self, txid: &Txid) -> Option<Bump> {
        let bytes = hex_bytes(self.merkle_path.as_deref()?)?;
        let bump = Bump::from_bytes(&bytes).ok()?;
        // A path that was made for its sibling is about the sibling.
        let is_about_it = bump.txids().any(|marked| marked == *txid);
        is_about_it.then_some(bump)
    }

    /// The most telling words of a refusal.
    fn reason(&self) -> String {
        one_line(self.words().unwrap_or("it gives no reason"))
    }

    fn words(&self) -> Option<&str> {
        let always_same = [&self.detail, &self.title, &self.error].into_iter().flatten();
        let always_same = always_same.map(String::as_str).find(|words| !words.is_empty());
        self.own_words().or(always_same)
    }

    /// The words about this transaction. The other members say the same with each refusal of a kind.
    fn own_words(&self) -> Option<&str> {
        let members = [&self.extra_info, &self.reason].into_iter().flatten();
        members.map(String::as_str).find(|words| !words.is_empty())
    }
}

impl<'de> Deserialize<'de> for Spenders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = Spenders;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of transaction ids")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Spenders, A::Error> {
                let mut spenders = Vec::new();
                while spenders.len() < MOST_SPENDERS {
                    let Some(text) = list.next_element::<String>()? else { break };
                    spenders.extend(text.parse::<Txid>());
                }
                // The list may be as long as the answer.
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Spenders(spenders))
            }
        }

        deserializer.deserialize_seq(Reading)
    }
}

fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    hex_digits::decode(text.as_bytes(), &mut bytes).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use bsv_tx::MerkleTree;
    use serde_json::json;

    use super::*;

    fn txid(byte: u8) -> Txid {
        Txid::from_bytes([byte; 32])
    }

    fn answer(body: serde_json::Value) -> Answer {
        let members: Members = serde_json::from_value(body).unwrap();
        members.of_state(members.tx_status.as_deref().unwrap(), &txid(1))
    }

    fn rival(spenders: &[Txid], is_refused: bool) -> Word {
        Word::Rival { spenders: spenders.to_vec(), is_refused }
    }

    #[test]
    fn each_state_means_what_the_contract_says() {
        for (states, expected) in [
            (
                &["SEEN_ON_NETWORK", "SEEN_MULTIPLE_NODES", "STUMP_PROCESSING", "IMMUTABLE"][..],
                Word::Taken,
            ),
            (
                &[
                    "UNKNOWN",
                    "QUEUED",
                    "RECEIVED",
                    "STORED",
                    "ANNOUNCED_TO_NETWORK",
                    "REQUESTED_BY_NETWORK",
                    "SENT_TO_NETWORK",
                    "ACCEPTED_BY_NETWORK",
                    "PENDING_RETRY",
                    "SEEN_IN_ORPHAN_MEMPOOL",
                    "MINED_IN_STALE_BLOCK",
                    "MINED",
                    "a state of tomorrow",
                ],
                Word::Open,
            ),
            (&["DOUBLE_SPEND_ATTEMPTED"], rival(&[], false)),
            (&["REJECTED"], Word::Rejected { reason: "it gives no reason".to_owned() }),
        ] {
            for state in states {
                // The other members are as both dialects write them.
                let body = json!({
                    "txStatus": state, "blockHash": "", "blockHeight": 0, "competingTxs": null,
                    "extraInfo": "", "merklePath": "", "status": 200,
                    "nextRetryAt": "0001-01-01T00:00:00Z",
                });
                assert_eq!(answer(body), Answer { word: expected.clone(), path: None }, "{state}");
            }
        }
    }

    #[test]
    fn each_code_means_what_the_contract_says() {
        for code in 455..=480_u16 {
            let title = "Generic error";
            let body = json!({ "txStatus": "REJECTED", "status": code, "title": title });
            let word = answer(body).word;
            let is_expected = match code {
                461 | 463..=465 | 468 | 469 | 471..=475 => {
                    matches!(word, Word::Refused { code: Some(told), .. } if told == code)
                }
                460 | 462 => word == Word::InputsUnknown { code },
                466 => word == rival(&[], true),
                476 => word == Word::NotYet,
                // 467 counts only with a reason.
                _ => matches!(word, Word::Rejected { .. }),
            };
            assert!(is_expected, "{code}: {word:?}");
        }
    }

    #[test]
    fn an_ancestor_that_is_refused_is_no_verdict() {
        let body =
            json!({ "txStatus": "REJECTED", "status": 461, "extraInfo": "parent rejected: x" });
        assert_eq!(answer(body).word, Word::NotYet);
    }

    #[test]
    fn spenders_are_read_from_both_places() {
        let line = format!("UTXO_SPENT (70): 9:0 utxo already spent by tx {}[0]", txid(3));
        let body = json!({
            "txStatus": "REJECTED", "status": 466, "extraInfo": line,
            "competingTxs": [txid(2).to_string(), "nonsense"],
        });
        assert_eq!(answer(body).word, rival(&[txid(3), txid(2)], true));
        let itself =
            json!({ "txStatus": "REJECTED", "status": 466, "competingTxs": [txid(1).to_string()] });
        assert_eq!(answer(itself).word, rival(&[], true));
        let cut =
            json!({ "txStatus": "REJECTED", "status": 466, "extraInfo": "already spent by tx ä" });
        assert_eq!(answer(cut).word, rival(&[], true));
    }

    #[test]
    fn only_the_first_spenders_are_read() {
        let named =
            |count: u8| (2..count + 2).map(|byte| txid(byte).to_string()).collect::<Vec<_>>();
        for count in [15, 16, 17, 200] {
            let body = json!({ "txStatus": "REJECTED", "competingTxs": named(count) });
            let members: Members = serde_json::from_value(body).unwrap();
            let Some(Spenders(spenders)) = members.competing_txs else { panic!("{count}") };
            let expected: Vec<_> = (2..count.min(16) + 2).map(txid).collect();
            assert_eq!(spenders, expected);
        }
    }

    #[test]
    fn a_path_counts_only_for_the_transaction_that_it_was_made_for() {
        let branches = MerkleTree::of(&[txid(1), txid(2)]);
        for (position, of, is_kept) in [(0, txid(1), true), (1, txid(2), false)] {
            // The path of either one names the other one as its sibling.
            let bump = Bump::of(7, &[(of, branches.branch(position).unwrap())]).unwrap();
            let path = hex::encode(bump.to_bytes());
            let Answer { word, path } = answer(json!({ "txStatus": "MINED", "merklePath": path }));
            assert_eq!((word, path.is_some()), (Word::Open, is_kept));
        }
        for path in ["", "zz", "fe"] {
            assert_eq!(answer(json!({ "txStatus": "MINED", "merklePath": path })).path, None);
        }
    }
}
