use bsv_tx::{DecodeError, Reader, Script, Txid, sha256d, write_var_bytes, write_var_int};
use thiserror::Error;

use crate::output_script;

/// The second part of a coinbase transaction in the split of the stratum protocol: from the input's
/// sequence number to the lock time.
///
/// The split lies right after the extranonce. A coinbase2 that begins with more of the unlocking
/// script is malformed here, as in the older generator.
#[derive(Clone, Copy, Debug)]
pub struct Coinbase2<'a> {
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
    #[error("coinbase2 is malformed: {0}")]
    Malformed(#[from] DecodeError),
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

impl<'a> Coinbase2<'a> {
    /// Reads a coinbase2 that fills `bytes` to the last byte.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Coinbase2Error> {
        let coinbase2 = Self::read(bytes, |script| {
            if output_script::is_identity(script) {
                return Err(Coinbase2Error::AlreadyIdentified);
            }
            Ok(())
        })?;
        if coinbase2.output_count == 0 {
            return Err(Coinbase2Error::NoOutput);
        }
        Ok(coinbase2)
    }

    /// The coinbase2 with one more output, the last one, of zero satoshis and locked by `script`.
    /// All other bytes stay the same. The result is checked for that.
    pub fn with_output(&self, script: &Script) -> Result<Vec<u8>, Coinbase2Error> {
        let result = self.append_output(script.as_bytes());
        if !self.is_extended_to(&result, script.as_bytes())? {
            return Err(Coinbase2Error::Unfaithful);
        }
        Ok(result)
    }

    /// Whether `result` decodes to this coinbase2 and a last output of zero satoshis that is locked
    /// by `script`.
    fn is_extended_to(&self, result: &[u8], script: &[u8]) -> Result<bool, Coinbase2Error> {
        let mut last = None;
        let reread = Coinbase2::read(result, |script| {
            last = Some(script);
            Ok(())
        })?;
        Ok(reread.sequence == self.sequence
            && Some(reread.output_count) == self.output_count.checked_add(1)
            && reread.outputs.starts_with(self.outputs)
            && reread.outputs[self.outputs.len()..].starts_with(&[0; 8])
            && last == Some(script)
            && reread.lock_time == self.lock_time)
    }

    /// The id of the modified coinbase transaction of a block binding. The modified transaction
    /// ends like this coinbase2, has zeros for an unlocking script, and has `placeholder` in place
    /// of the identity script.
    pub(crate) fn modified_txid(&self, placeholder: &[u8]) -> Txid {
        let mut transaction = MODIFIED_START.to_vec();
        transaction.extend(self.append_output(placeholder));
        Txid::from_bytes(sha256d(&transaction))
    }

    fn read(
        bytes: &'a [u8],
        mut inspect: impl FnMut(&'a [u8]) -> Result<(), Coinbase2Error>,
    ) -> Result<Self, Coinbase2Error> {
        let mut reader = Reader::new(bytes);
        let sequence = reader.take(4)?;
        let output_count = reader.var_int()?;
        let outputs_start = bytes.len() - reader.remaining();
        for _ in 0..output_count {
            reader.take(8)?;
            inspect(reader.var_bytes()?)?;
        }
        let outputs = &bytes[outputs_start..bytes.len() - reader.remaining()];
        let lock_time = reader.take(4)?;
        reader.finish()?;
        Ok(Self { sequence, output_count, outputs, lock_time })
    }

    fn append_output(&self, script: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.outputs.len() + script.len() + 40);
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
            assert!(matches!(parse_error(&right[..len]), Coinbase2Error::Malformed(_)), "{len}");
        }
        let trailing = [right.as_slice(), &[0]].concat();
        let trailing_byte = Coinbase2Error::Malformed(DecodeError::TrailingBytes(1));
        assert_eq!(parse_error(&trailing), trailing_byte);
        assert_eq!(parse_error(&coinbase2("00", "")), Coinbase2Error::NoOutput);
        for (count, outputs) in
            [("02", &output), ("fd0100", &output), ("ffffffffffffffffff", &output)]
        {
            let error = parse_error(&coinbase2(count, outputs));
            assert!(matches!(error, Coinbase2Error::Malformed(_)), "{count}");
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
        assert_eq!(is_extended_to(max, "02", &right, zero), Ok(true));

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
            (max, "01", &output, zero),
        ] {
            let answer = is_extended_to(sequence, count, outputs, lock_time);
            assert_eq!(answer, Ok(false), "{sequence} {count} {outputs} {lock_time}");
        }
        let too_long = is_extended_to(max, "02", &right, "0000000000");
        assert_eq!(too_long, Err(Coinbase2Error::Malformed(DecodeError::TrailingBytes(1))));
    }
}
