use std::iter;

use bsv_tx::{DecodeError, Reader, Script, Txid, sha256d, write_var_bytes, write_var_int};
use thiserror::Error;

use crate::output_script;

/// The second part of a coinbase transaction in the split of the stratum protocol: everything after
/// the extranonce, up to the lock time.
///
/// It begins with the input's sequence number, or with the rest of the unlocking script if a pool
/// puts its tag after the extranonce.
#[derive(Clone, Copy, Debug)]
pub struct Coinbase2<'a> {
    /// The rest of the unlocking script.
    script_end: &'a [u8],
    sequence: &'a [u8],
    output_count: u64,
    outputs: &'a [u8],
    lock_time: &'a [u8],
}

/// Why an identity output cannot be added to a coinbase2.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Coinbase2Error {
    /// The bytes are not the end of a coinbase transaction.
    #[error(
        "coinbase2 is malformed: it does not read as sequence number, outputs and lock time from any offset \
         up to 100"
    )]
    Malformed,
    /// The sequence number may begin in several places. These are the offsets of the first two.
    #[error(
        "coinbase2 is ambiguous: it reads as sequence number, outputs and lock time from offset {0} and from \
         offset {1}"
    )]
    Ambiguous(usize, usize),
    /// There is no output. An identity output must not be the only one, because some nodes fail on
    /// such a block.
    #[error("coinbase2 has no output")]
    NoOutput,
    /// There is already an identity output.
    #[error("coinbase2 already has an identity output")]
    AlreadyIdentified,
    /// The result does not decode to the input with one more output. This is a fault of this
    /// software.
    #[error("the new coinbase2 failed its check and was discarded")]
    Unfaithful,
}

/// The sequence number of an input that no lock time holds back.
const FINAL: [u8; 4] = [0xff; 4];
/// The longest rest of an unlocking script: a coinbase transaction's script has 100 bytes at most.
const MAX_SCRIPT_END: usize = 100;

impl<'a> Coinbase2<'a> {
    /// Reads a coinbase2 that fills `bytes` to the last byte.
    ///
    /// If the bytes do not begin with the sequence number, it begins at the one offset, of at most
    /// 100, from which the rest reads as sequence number, at least one output and lock time. Bytes
    /// that read from the first one are taken so, unless they also read from a later one: a tag may
    /// look like a sequence number and a count, and a wrong guess would cost the block. The sequence
    /// number `ffffffff`, which nearly all coinbase transactions have, leaves no doubt.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Coinbase2Error> {
        let coinbase2 = Self::find(bytes)?;
        if coinbase2.output_count == 0 {
            return Err(Coinbase2Error::NoOutput);
        }
        if coinbase2.scripts().any(output_script::is_identity) {
            return Err(Coinbase2Error::AlreadyIdentified);
        }
        Ok(coinbase2)
    }

    /// The coinbase2 with one more output, the last one, of zero satoshis and locked by `script`.
    /// All other bytes stay the same. The result is checked for that.
    pub fn with_output(&self, script: &Script) -> Result<Vec<u8>, Coinbase2Error> {
        let result = self.append_output(self.script_end, script.as_bytes());
        if !self.is_extended_to(&result, script.as_bytes()) {
            return Err(Coinbase2Error::Unfaithful);
        }
        Ok(result)
    }

    /// Whether `result` decodes to this coinbase2 and a last output of zero satoshis that is locked
    /// by `script`.
    fn is_extended_to(&self, result: &[u8], script: &[u8]) -> bool {
        let Ok(reread) = Coinbase2::read(result, self.script_end.len()) else { return false };
        reread.script_end == self.script_end
            && reread.sequence == self.sequence
            && Some(reread.output_count) == self.output_count.checked_add(1)
            && reread.outputs.starts_with(self.outputs)
            && reread.outputs[self.outputs.len()..].starts_with(&[0; 8])
            && reread.scripts().last() == Some(script)
            && reread.lock_time == self.lock_time
    }

    /// The id of the modified coinbase transaction of a block binding. The modified transaction
    /// ends like this coinbase2 from the sequence number on, has zeros for an unlocking script, and
    /// has `placeholder` in place of the identity script.
    pub(crate) fn modified_txid(&self, placeholder: &[u8]) -> Txid {
        Txid::from_bytes(sha256d(&self.append_output(&MODIFIED_START, placeholder)))
    }

    fn find(bytes: &'a [u8]) -> Result<Self, Coinbase2Error> {
        let at_start = Self::read(bytes, 0).ok();
        if let Some(coinbase2) = at_start.filter(|it| it.sequence == FINAL) {
            return Ok(coinbase2);
        }
        let later = (1..=MAX_SCRIPT_END).filter_map(|offset| Self::read(bytes, offset).ok());
        let later = later.filter(|reading| reading.output_count > 0);
        let mut readings = at_start.into_iter().chain(later);
        match (readings.next(), readings.next()) {
            (Some(reading), None) => Ok(reading),
            (Some(first), Some(second)) => {
                let offset = |reading: Self| reading.script_end.len();
                Err(Coinbase2Error::Ambiguous(offset(first), offset(second)))
            }
            (None, _) => Err(Coinbase2Error::Malformed),
        }
    }

    /// Reads `bytes`, whose sequence number begins at `offset`.
    fn read(bytes: &'a [u8], offset: usize) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let script_end = reader.take(offset)?;
        let sequence = reader.take(4)?;
        let output_count = reader.var_int()?;
        let outputs_start = bytes.len() - reader.remaining();
        for _ in 0..output_count {
            reader.take(8)?;
            reader.var_bytes()?;
        }
        let outputs = &bytes[outputs_start..bytes.len() - reader.remaining()];
        let lock_time = reader.take(4)?;
        reader.finish()?;
        Ok(Self { script_end, sequence, output_count, outputs, lock_time })
    }

    /// The locking scripts of the outputs.
    fn scripts(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut outputs = Reader::new(self.outputs);
        iter::from_fn(move || {
            outputs.take(8).ok()?;
            outputs.var_bytes().ok()
        })
    }

    /// `start`, followed by this coinbase2 from the sequence number on, with one more output.
    fn append_output(&self, start: &[u8], script: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(start.len() + self.outputs.len() + script.len() + 40);
        out.extend_from_slice(start);
        out.extend_from_slice(self.sequence);
        write_var_int(&mut out, self.output_count + 1);
        out.extend_from_slice(self.outputs);
        out.extend_from_slice(&[0; 8]);
        write_var_bytes(&mut out, script);
        out.extend_from_slice(self.lock_time);
        out
    }
}

/// Version 1, one input that spends nothing, and an unlocking script of eight zeros.
const MODIFIED_START: [u8; 50] = {
    let mut start = [0; 50];
    start[0] = 1;
    start[4] = 1;
    let mut place = 37;
    while place < 41 {
        start[place] = 0xff;
        place += 1;
    }
    start[41] = 8;
    start
};

#[cfg(test)]
mod tests {
    use super::*;

    const P2PKH: &str = "1976a9145deb9155942e7d38febc15de8870222fd24d080e88ac";

    fn coinbase2(count: &str, outputs: &str) -> Vec<u8> {
        hex::decode(format!("ffffffff{count}{outputs}00000000")).unwrap()
    }

    fn parse_error(bytes: &[u8]) -> Coinbase2Error {
        Coinbase2::parse(bytes).unwrap_err()
    }

    #[test]
    fn the_output_count_grows_in_its_shortest_form() {
        let output = "0100000000000000".to_owned() + "0151";
        for (count, before, after) in [
            (1, "01", "02"),
            (252, "fc", "fdfd00"),
            (253, "fdfd00", "fdfe00"),
            (65535, "fdffff", "fe00000100"),
        ] {
            let bytes = coinbase2(before, &output.repeat(count));
            let script = Script::from_hex("006a").unwrap();
            let result = Coinbase2::parse(&bytes).unwrap().with_output(&script).unwrap();
            let expected =
                coinbase2(after, &(output.repeat(count) + "0000000000000000" + "02006a"));
            assert_eq!(result, expected);
        }
    }

    #[test]
    fn what_cannot_or_must_not_carry_an_identity_is_refused() {
        let output = format!("00f2052a01000000{P2PKH}");
        let right = coinbase2("01", &output);
        assert!(Coinbase2::parse(&right).is_ok());
        for len in 0..right.len() {
            assert_eq!(parse_error(&right[..len]), Coinbase2Error::Malformed, "{len}");
        }
        let trailing = [right.as_slice(), &[0]].concat();
        assert_eq!(parse_error(&trailing), Coinbase2Error::Malformed);
        assert_eq!(parse_error(&coinbase2("00", "")), Coinbase2Error::NoOutput);
        for (count, outputs) in
            [("02", &output), ("fd0100", &output), ("ffffffffffffffffff", &output)]
        {
            let error = parse_error(&coinbase2(count, outputs));
            assert_eq!(error, Coinbase2Error::Malformed, "{count}");
        }
        for identity in ["07006a04ac1eed88", "09006a04601dface0100"] {
            let outputs = format!("{output}0000000000000000{identity}");
            let error = parse_error(&coinbase2("02", &outputs));
            assert_eq!(error, Coinbase2Error::AlreadyIdentified);
        }
    }

    #[test]
    fn only_the_same_coinbase2_with_one_more_output_of_nothing_counts_as_extended() {
        let output = format!("00f2052a01000000{P2PKH}");
        let bytes = coinbase2("01", &output);
        let before = Coinbase2::parse(&bytes).unwrap();
        let is_extended_to = |sequence: &str, count: &str, outputs: &str, lock_time: &str| {
            let result = format!("{sequence}{count}{outputs}{lock_time}");
            before.is_extended_to(&hex::decode(result).unwrap(), &[0x00, 0x6a])
        };
        let (max, zero) = ("ffffffff", "00000000");
        let identity = "0000000000000000".to_owned() + "02006a";
        let right = format!("{output}{identity}");
        assert!(is_extended_to(max, "02", &right, zero));

        let other_value = format!("00f2052a02000000{P2PKH}{identity}");
        let two_more = format!("{output}{identity}{identity}");
        let with_value = format!("{output}010000000000000002006a");
        let other_script = format!("{output}000000000000000002016a");
        for (sequence, count, outputs, lock_time) in [
            ("feffffff", "02", &right, zero),
            (max, "03", &two_more, zero),
            (max, "02", &other_value, zero),
            (max, "02", &with_value, zero),
            (max, "02", &other_script, zero),
            (max, "02", &right, "01000000"),
            (max, "02", &right, "0000000000"),
            (max, "01", &output, zero),
        ] {
            let answer = is_extended_to(sequence, count, outputs, lock_time);
            assert!(!answer, "{sequence} {count} {outputs} {lock_time}");
        }
    }

    #[test]
    fn the_rest_of_the_script_stays_and_does_not_enter_the_binding() {
        let output = format!("00f2052a01000000{P2PKH}");
        let bare = coinbase2("01", &output);
        let bare = Coinbase2::parse(&bare).unwrap();
        let script = Script::from_hex("006a").unwrap();
        for len in [1, 6, 99, 100] {
            let tag = &b"/a pool/".repeat(13)[..len];
            let bytes = [tag, &coinbase2("01", &output)].concat();
            let tagged = Coinbase2::parse(&bytes).unwrap();
            let expected = [tag, &bare.with_output(&script).unwrap()].concat();
            assert_eq!(tagged.with_output(&script).unwrap(), expected);
            assert_eq!(tagged.modified_txid(&[0x6a]), bare.modified_txid(&[0x6a]));
            assert_eq!(parse_error(&expected[..expected.len() - 1]), Coinbase2Error::Malformed);
        }
        let too_long = [&b"/a pool/".repeat(13)[..101], &coinbase2("01", &output)].concat();
        assert_eq!(parse_error(&too_long), Coinbase2Error::Malformed);
    }

    #[test]
    fn the_sequence_number_is_found_in_one_place_only() {
        let output = format!("00f2052a01000000{P2PKH}");
        // The outputs of the first reading are the script of the second one's.
        let inner = coinbase2("01", &output);
        let script = format!("{}{}", "00".repeat(3), hex::encode(&inner[..inner.len() - 4]));
        let outer = format!("0000000000000000{:02x}{script}", script.len() / 2);
        let nested = coinbase2("01", &outer);
        // From its first byte on, a coinbase2 is read as it stands.
        assert!(Coinbase2::parse(&nested).is_ok());
        let ambiguous = [b"tag", nested.as_slice()].concat();
        let second = 3 + 4 + 1 + 8 + 1 + 3;
        assert_eq!(parse_error(&ambiguous), Coinbase2Error::Ambiguous(3, second));

        // A tag of 8 bytes that looks like a sequence number and a count of one output, whose script
        // would have the length 0x21.
        let tagged = format!(
            "4142000701000000ffffffff0121e6a112000000001976a914{}88ac00000000",
            "5d".repeat(20)
        );
        let tagged = hex::decode(tagged).unwrap();
        assert!(Coinbase2::read(&tagged, 0).is_ok());
        assert_eq!(parse_error(&tagged), Coinbase2Error::Ambiguous(0, 8));

        let none = [b"tag", coinbase2("00", "").as_slice()].concat();
        assert_eq!(parse_error(&none), Coinbase2Error::Malformed);
        let identity = format!("{output}000000000000000007006a04ac1eed88");
        let identified = [b"tag", coinbase2("02", &identity).as_slice()].concat();
        assert_eq!(parse_error(&identified), Coinbase2Error::AlreadyIdentified);
        // An output that no reading has is none.
        let cut = &identified[3..identified.len() - 1];
        assert_eq!(parse_error(cut), Coinbase2Error::Malformed);
    }
}
