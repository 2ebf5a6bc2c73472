use std::time::Duration;

use bsv_tx::{Bump, Txid};

use super::answer::{Answer, Word};
use super::client::BroadcasterError;

/// How a transaction stands with a set of broadcasters. None of this is proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As many broadcasters as the set wants say that the network has it, and none of those that
    /// were asked knows a rival.
    Taken,
    /// It may be on its way. Follow it.
    Open,
    /// Every broadcaster refuses it.
    Refused {
        /// The code of the refusal, if it has one.
        code: Option<u16>,
        /// The words of a service, in one line of at most 200 bytes.
        reason: String,
        /// Whether every broadcaster names a rule that the transaction breaks. Otherwise it may be
        /// the trouble of a service.
        is_verdict: bool,
    },
    /// No broadcaster has it, and one does not know the coins that it spends. Send it with all its
    /// unproven ancestors.
    InputsUnknown,
    /// A broadcaster knows another transaction that spends a coin of it, or of an ancestor, whatever
    /// others say. Of the two, only a Merkle path decides.
    Rival {
        /// Those that are named.
        spenders: Vec<Txid>,
        /// Whether every broadcaster refuses the transaction. Otherwise one may have it.
        is_refused: bool,
    },
}

/// What one broadcaster has said of a transaction, and how to go on with it.
#[derive(Debug, Default)]
pub(super) struct Talk {
    /// What it said last.
    pub(super) said: Option<Result<Word, BroadcasterError>>,
    /// What counts of it.
    pub(super) word: Option<Word>,
    pub(super) path: Option<Bump>,
    /// How often it was waited for.
    waits: u32,
    /// Whether it was given the transaction once more with all ancestors.
    is_repeated: bool,
    /// Whether it has nothing to say for the time being.
    has_failed: bool,
}

/// A question to a broadcaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is given the transaction after its ancestors.
    Send,
    /// It is asked what became of the transaction.
    Ask,
}

/// The first wait before a broadcaster is asked again. It doubles up to the longest one.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The shortest wait after which a broadcaster that knew no coins should know them.
const SHORTEST_REPEAT: Duration = Duration::from_secs(1);

impl Standing {
    /// What the words of all broadcasters mean together. `None` is one that has said nothing.
    pub(super) fn of(words: &[Option<Word>], seen_by: usize) -> Self {
        let told = || words.iter().flatten();
        let is_refused = !words.is_empty()
            && words.iter().all(|word| word.as_ref().is_some_and(Word::is_refusal));
        let is_rival = |word: &Word| matches!(word, Word::Rival { .. });
        if told().any(is_rival) {
            let mut spenders = Vec::new();
            for word in told() {
                word.add_spenders(&mut spenders);
            }
            return Self::Rival { spenders, is_refused };
        }
        let taken = told().filter(|word| **word == Word::Taken).count();
        let lacks_inputs = told().any(|word| matches!(word, Word::InputsUnknown { .. }));
        match taken {
            taken if taken >= seen_by && taken > 0 => Self::Taken,
            0 if lacks_inputs => Self::InputsUnknown,
            0 if is_refused => Self::refused(&told().collect::<Vec<_>>()),
            _ => Self::Open,
        }
    }

    /// A fee that is too low is named only if nothing else is wrong.
    fn refused(words: &[&Word]) -> Self {
        let is_verdict = words.iter().all(|word| matches!(word, Word::Refused { .. }));
        let rank = |word: &&&Word| match word {
            Word::Refused { code, .. } if !is_fee_too_low(*code) => 0,
            Word::Refused { .. } => 1,
            _ => 2,
        };
        let (code, reason) = match words.iter().min_by_key(rank) {
            Some(Word::Refused { code, reason }) => (*code, reason.clone()),
            Some(Word::Rejected { reason }) => (None, reason.clone()),
            _ => (None, String::new()),
        };
        Self::Refused { code, reason, is_verdict }
    }

    /// Whether the transaction would be taken if it paid a higher fee, as far as is known.
    pub fn is_fee_too_low(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if is_fee_too_low(*code))
    }
}

fn is_fee_too_low(code: Option<u16>) -> bool {
    matches!(code, Some(465 | 473))
}

impl Talk {
    /// A talk of one question.
    pub(super) fn of(said: Result<Answer, BroadcasterError>) -> Self {
        let (word, path) = match &said {
            Ok(Answer { word, path }) => (Some(word.clone()), path.clone()),
            Err(_) => (None, None),
        };
        Self { said: Some(said.map(|answer| answer.word)), word, path, ..Self::default() }
    }

    /// Takes the answer to a question. Answers the next question, and how long it has to wait.
    pub(super) fn hear(
        &mut self,
        step: Step,
        said: Result<Answer, BroadcasterError>,
    ) -> Option<(Step, Duration)> {
        self.has_failed = said.is_err();
        self.said = Some(said.as_ref().map(|answer| answer.word.clone()).map_err(Clone::clone));
        let Answer { word, path } = match said {
            Ok(answer) => answer,
            Err(BroadcasterError::Unauthorized(_)) => return None,
            Err(BroadcasterError::Busy { retry_after: Some(pause), .. }) => {
                return Some((step, self.next_wait().max(pause)));
            }
            Err(_) => return Some((step, self.next_wait())),
        };
        let is_proof_claimed = path.is_some();
        self.path = path.or(self.path.take());
        match &word {
            Word::InputsUnknown { .. } if !self.is_repeated => {
                self.is_repeated = true;
                return Some((Step::Send, self.next_wait().max(SHORTEST_REPEAT)));
            }
            // It has all ancestors, and had time. So somebody else has spent the coins.
            Word::InputsUnknown { code: 462 } => {
                self.word = Some(Word::Rival { spenders: Vec::new(), is_refused: true });
                return None;
            }
            _ => {}
        }
        let word = self.word.insert(word);
        match word {
            // The caller knows whether the path holds.
            Word::Open if is_proof_claimed => None,
            Word::Open => Some((Step::Ask, self.next_wait())),
            Word::NotYet => Some((Step::Send, self.next_wait())),
            Word::Unknown => Some((Step::Send, Duration::ZERO)),
            Word::Taken
            | Word::Refused { .. }
            | Word::Rejected { .. }
            | Word::InputsUnknown { .. }
            | Word::Rival { .. } => None,
        }
    }

    /// Whether another broadcaster should be asked although this one was asked. `is_slow` says that it
    /// had much time.
    pub(super) fn wants_another(&self, is_slow: bool) -> bool {
        let is_against = self.word.as_ref().is_some_and(Word::is_against);
        self.word != Some(Word::Taken)
            && (self.has_failed || is_against || self.path.is_some() || is_slow)
    }

    fn next_wait(&mut self) -> Duration {
        let wait = FIRST_WAIT.saturating_mul(1 << self.waits.min(8));
        self.waits += 1;
        wait.min(LONGEST_WAIT)
    }
}

impl Word {
    /// Whether the broadcaster does not have the transaction, and will not take it.
    fn is_refusal(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::Rejected { .. } | Self::InputsUnknown { .. } => true,
            Self::Rival { is_refused, .. } => *is_refused,
            Self::Taken | Self::Open | Self::NotYet | Self::Unknown => false,
        }
    }

    /// Whether it speaks against the transaction.
    fn is_against(&self) -> bool {
        self.is_refusal() || matches!(self, Self::Rival { .. })
    }

    fn add_spenders(&self, all: &mut Vec<Txid>) {
        let Self::Rival { spenders, .. } = self else { return };
        for spender in spenders {
            if !all.contains(spender) {
                all.push(*spender);
            }
        }
    }

    /// What a broadcaster says of a transaction, by what it says of its unproven ancestors, too.
    pub(super) fn after(self, ancestors: &[Self]) -> Self {
        let is_rival = |word: &Self| matches!(word, Self::Rival { .. });
        if ancestors.iter().any(is_rival) {
            let mut spenders = Vec::new();
            for word in ancestors.iter().chain([&self]) {
                word.add_spenders(&mut spenders);
            }
            return Self::Rival { spenders, is_refused: self.is_refusal() };
        }
        let refusal = ancestors.iter().find_map(|word| match word {
            Self::Refused { reason, .. } | Self::Rejected { reason } => Some(reason.clone()),
            _ => None,
        });
        match (self, refusal) {
            // The coins are not known because the service has refused what makes them.
            (Self::InputsUnknown { .. }, Some(reason)) => Self::Rejected { reason },
            (word, _) => word,
        }
    }
}

#[cfg(test)]
mod tests {
    use bsv_tx::MerkleTree;

    use super::*;

    fn txid(byte: u8) -> Txid {
        Txid::from_bytes([byte; 32])
    }

    fn refused(code: u16) -> Word {
        Word::Refused { code: Some(code), reason: format!("reason {code}") }
    }

    fn rejected() -> Word {
        Word::Rejected { reason: "trouble".to_owned() }
    }

    fn rival(spenders: &[u8], is_refused: bool) -> Word {
        Word::Rival { spenders: spenders.iter().copied().map(txid).collect(), is_refused }
    }

    fn unknown_inputs(code: u16) -> Word {
        Word::InputsUnknown { code }
    }

    const TAKEN: Option<Word> = Some(Word::Taken);
    const OPEN: Option<Word> = Some(Word::Open);

    #[test]
    fn what_is_said_together_means_what_the_contract_says() {
        use Standing::{InputsUnknown, Open, Taken};

        let verdict = |code: u16, is_verdict| Standing::Refused {
            code: Some(code),
            reason: format!("reason {code}"),
            is_verdict,
        };
        let trouble =
            || Standing::Refused { code: None, reason: "trouble".to_owned(), is_verdict: false };
        let contested = |spenders: &[u8], is_refused| Standing::Rival {
            spenders: spenders.iter().copied().map(txid).collect(),
            is_refused,
        };
        for (seen_by, words, expected) in [
            (1, vec![], Open),
            (1, vec![None], Open),
            (1, vec![TAKEN], Taken),
            (1, vec![OPEN, TAKEN], Taken),
            (2, vec![TAKEN, TAKEN], Taken),
            (2, vec![TAKEN, OPEN], Open),
            (2, vec![TAKEN, None, TAKEN], Taken),
            // Silence, and words that say nothing.
            (1, vec![OPEN, None], Open),
            (1, vec![Some(Word::NotYet), Some(Word::Unknown)], Open),
            // A verdict needs all.
            (1, vec![Some(refused(461))], verdict(461, true)),
            (1, vec![Some(refused(461)), None], Open),
            (1, vec![Some(refused(461)), OPEN], Open),
            (1, vec![Some(refused(461)), Some(Word::Unknown)], Open),
            (1, vec![Some(refused(461)), Some(Word::NotYet)], Open),
            (1, vec![Some(refused(461)), TAKEN], Taken),
            (2, vec![Some(refused(461)), TAKEN], Open),
            (1, vec![Some(refused(463)), Some(refused(461))], verdict(463, true)),
            // A higher fee helps only if nothing else is wrong.
            (1, vec![Some(refused(465)), Some(refused(465))], verdict(465, true)),
            (1, vec![Some(refused(473)), Some(refused(465))], verdict(473, true)),
            (1, vec![Some(refused(465)), Some(refused(461))], verdict(461, true)),
            (1, vec![Some(rejected()), Some(refused(465))], verdict(465, false)),
            // A refusal without a code.
            (1, vec![Some(rejected())], trouble()),
            (1, vec![Some(rejected()), Some(rejected())], trouble()),
            (1, vec![Some(rejected()), None], Open),
            (1, vec![Some(rejected()), TAKEN], Taken),
            // Inputs.
            (1, vec![Some(unknown_inputs(460))], InputsUnknown),
            (1, vec![Some(unknown_inputs(462)), OPEN], InputsUnknown),
            (1, vec![Some(unknown_inputs(460)), Some(refused(461))], InputsUnknown),
            (1, vec![Some(unknown_inputs(462)), TAKEN], Taken),
            (2, vec![Some(unknown_inputs(462)), TAKEN], Open),
            // A rival, whatever others say.
            (1, vec![Some(rival(&[2], true))], contested(&[2], true)),
            (1, vec![Some(rival(&[2], false))], contested(&[2], false)),
            (1, vec![Some(rival(&[2], true)), TAKEN], contested(&[2], false)),
            (2, vec![TAKEN, TAKEN, Some(rival(&[], true))], contested(&[], false)),
            (1, vec![Some(rival(&[2], true)), None], contested(&[2], false)),
            (1, vec![Some(rival(&[2], true)), OPEN], contested(&[2], false)),
            (1, vec![Some(rival(&[2], true)), Some(refused(461))], contested(&[2], true)),
            (
                1,
                vec![Some(rival(&[2, 3], true)), Some(rival(&[3, 4], true))],
                contested(&[2, 3, 4], true),
            ),
            (1, vec![Some(rival(&[2], true)), Some(rival(&[2], false))], contested(&[2], false)),
            (1, vec![Some(rival(&[2], true)), Some(unknown_inputs(462))], contested(&[2], true)),
        ] {
            assert_eq!(Standing::of(&words, seen_by), expected, "{seen_by} of {words:?}");
        }
    }

    #[test]
    fn a_fee_that_is_too_low_is_told_apart() {
        for (code, expected) in
            [(Some(465), true), (Some(473), true), (Some(461), false), (None, false)]
        {
            let word = Word::Refused { code, reason: String::new() };
            assert_eq!(Standing::of(&[Some(word)], 1).is_fee_too_low(), expected, "{code:?}");
        }
        assert!(!Standing::Taken.is_fee_too_low());
    }

    #[test]
    fn ancestors_decide_with_it() {
        use Word::{Open, Taken};

        for (ancestors, word, expected) in [
            (vec![], Taken, Taken),
            (vec![Taken, Open, refused(465), Word::NotYet], Taken, Taken),
            (vec![rival(&[2], false)], Taken, rival(&[2], false)),
            (vec![rival(&[2], true)], Open, rival(&[2], false)),
            (vec![Taken, rival(&[2], true)], unknown_inputs(462), rival(&[2], true)),
            (vec![rival(&[2], true)], rival(&[3], true), rival(&[2, 3], true)),
            (
                vec![refused(465)],
                unknown_inputs(462),
                Word::Rejected { reason: "reason 465".into() },
            ),
            (vec![Taken], unknown_inputs(462), unknown_inputs(462)),
            (vec![unknown_inputs(462)], unknown_inputs(462), unknown_inputs(462)),
        ] {
            assert_eq!(word.clone().after(&ancestors), expected, "{ancestors:?}, {word:?}");
        }
    }

    fn hear(talk: &mut Talk, step: Step, word: Word) -> Option<(Step, Duration)> {
        talk.hear(step, Ok(Answer { word, path: None }))
    }

    #[test]
    fn each_answer_leads_to_the_next_question() {
        use Step::{Ask, Send};

        let busy = |pause: Option<u64>| BroadcasterError::Busy {
            status: 503,
            retry_after: pause.map(Duration::from_secs),
        };
        let ok = |word| Ok(Answer { word, path: None });
        let branch = MerkleTree::of(&[txid(1), txid(2)]).branch(0).unwrap();
        let path = Bump::of(7, &[(txid(1), branch)]).ok();
        let (first, now) = (Some(FIRST_WAIT), Some(Duration::ZERO));
        let repeat = Some(SHORTEST_REPEAT);
        for (step, said, next, wait, wants_another) in [
            (Send, ok(Word::Taken), None, None, false),
            (Send, ok(Word::Open), Some(Ask), first, false),
            (Ask, ok(Word::Open), Some(Ask), first, false),
            (Send, ok(Word::NotYet), Some(Send), first, false),
            (Ask, ok(Word::Unknown), Some(Send), now, false),
            (Send, ok(unknown_inputs(460)), Some(Send), repeat, false),
            (Ask, ok(unknown_inputs(462)), Some(Send), repeat, false),
            (Send, ok(refused(461)), None, None, true),
            (Ask, ok(rejected()), None, None, true),
            (Send, ok(rival(&[], true)), None, None, true),
            (Ask, ok(rival(&[], false)), None, None, true),
            (Send, Err(BroadcasterError::Unauthorized(401)), None, None, true),
            (Send, Err(busy(None)), Some(Send), first, true),
            (Ask, Err(busy(Some(7))), Some(Ask), Some(Duration::from_secs(7)), true),
            (Ask, Err(busy(Some(0))), Some(Ask), first, true),
            (Send, Err(BroadcasterError::Unreachable(String::new())), Some(Send), first, true),
            (Ask, Err(BroadcasterError::Nonsense(String::new())), Some(Ask), first, true),
            (Ask, Ok(Answer { word: Word::Open, path }), None, None, true),
        ] {
            let mut talk = Talk::default();
            let told = talk.hear(step, said.clone());
            assert_eq!(told, next.zip(wait), "{said:?}");
            assert_eq!(talk.wants_another(false), wants_another, "{said:?}");
        }
    }

    #[test]
    fn waits_double() {
        let mut talk = Talk::default();
        let waits = (0..6).map(|_| hear(&mut talk, Step::Ask, Word::Open).unwrap().1.as_millis());
        assert_eq!(waits.collect::<Vec<_>>(), [250, 500, 1_000, 2_000, 2_000, 2_000]);
    }

    #[test]
    fn inputs_that_stay_unknown_with_all_ancestors_have_a_rival() {
        for (code, expected) in [(462, rival(&[], true)), (460, unknown_inputs(460))] {
            let mut talk = Talk::default();
            assert!(hear(&mut talk, Step::Send, unknown_inputs(code)).is_some());
            // Until then it has said nothing.
            assert_eq!(talk.word, None);
            assert_eq!(hear(&mut talk, Step::Send, unknown_inputs(code)), None);
            assert_eq!(talk.word, Some(expected));
            assert!(talk.wants_another(false));
        }
    }

    #[test]
    fn a_slow_broadcaster_wants_another_until_it_has_the_transaction() {
        let mut talk = Talk::default();
        assert!(!talk.wants_another(false) && talk.wants_another(true));
        hear(&mut talk, Step::Send, Word::Open);
        assert!(!talk.wants_another(false) && talk.wants_another(true));
        hear(&mut talk, Step::Ask, Word::Taken);
        assert!(!talk.wants_another(true));
    }

    #[test]
    fn trouble_does_not_take_a_word_back() {
        let mut talk = Talk::default();
        hear(&mut talk, Step::Send, Word::Open);
        let _ = talk.hear(Step::Ask, Err(BroadcasterError::Unauthorized(401)));
        assert_eq!(talk.word, Some(Word::Open));
        assert_eq!(talk.said, Some(Err(BroadcasterError::Unauthorized(401))));
    }
}
