use thiserror::Error;

use crate::encode::write_var_bytes;
use crate::hash::sha256d;
use crate::keys::PrivateKey;
use crate::script::{Script, ScriptBuilder};
use crate::transaction::{Transaction, TxOut};

/// The parts of a transaction that a signature covers. Every type carries the FORKID flag, which
/// Bitcoin SV has demanded since August 2017.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SighashType(u8);

impl SighashType {
    /// All inputs and all outputs.
    pub const ALL: Self = Self(0x41);
    /// All inputs and no output.
    pub const NONE: Self = Self(0x42);
    /// All inputs, and the output with the index of the signed input.
    pub const SINGLE: Self = Self(0x43);

    /// The same outputs, but only the signed input.
    pub const fn anyone_can_pay(self) -> Self {
        Self(self.0 | 0x80)
    }

    /// The byte after the signature in an unlocking script.
    pub const fn to_byte(self) -> u8 {
        self.0
    }

    /// The type with this byte. `None` for one without the FORKID flag, and for types of other rules.
    pub fn from_byte(byte: u8) -> Option<Self> {
        matches!(byte & 0x7f, 0x41..=0x43).then_some(Self(byte))
    }

    fn is_anyone_can_pay(self) -> bool {
        self.0 & 0x80 != 0
    }

    fn base(self) -> Self {
        Self(self.0 & 0x7f)
    }
}

/// The index is beyond the transaction's inputs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the transaction has {inputs} inputs, none with index {index}")]
pub struct SighashError {
    index: usize,
    inputs: usize,
}

/// The digests that signatures of one transaction cover, by the FORKID scheme (the layout of
/// BIP143). The parts that all inputs share are hashed once, so that the time to sign all inputs is
/// proportional to their number.
#[derive(Clone, Copy, Debug)]
pub struct SighashCache<'a> {
    transaction: &'a Transaction,
    /// The hash of all inputs' outpoints.
    hash_outpoints: [u8; 32],
    /// The hash of all inputs' sequence numbers.
    hash_sequences: [u8; 32],
    /// The hash of all outputs.
    hash_outputs: [u8; 32],
}

impl<'a> SighashCache<'a> {
    /// Hashes the parts that all inputs of `transaction` share. Unlocking scripts are not among
    /// these parts: they may be filled in before or after.
    pub fn new(transaction: &'a Transaction) -> Self {
        let Transaction { inputs, outputs, .. } = transaction;
        Self {
            transaction,
            hash_outpoints: hash(|out| {
                inputs.iter().for_each(|input| input.previous_output.encode(out));
            }),
            hash_sequences: hash(|out| {
                inputs.iter().for_each(|it| out.extend_from_slice(&it.sequence.to_le_bytes()));
            }),
            hash_outputs: hash(|out| outputs.iter().for_each(|output| output.encode(out))),
        }
    }

    /// The digest that a signature in input `index` covers. `spent` is the output that the input
    /// spends.
    pub fn sighash(
        &self,
        index: usize,
        spent: &TxOut,
        sighash_type: SighashType,
    ) -> Result<[u8; 32], SighashError> {
        const NOTHING: [u8; 32] = [0; 32];
        let Transaction { version, inputs, outputs, lock_time } = self.transaction;
        let input = inputs.get(index).ok_or(SighashError { index, inputs: inputs.len() })?;
        let (hash_outpoints, mut hash_sequences) = match sighash_type.is_anyone_can_pay() {
            true => (NOTHING, NOTHING),
            false => (self.hash_outpoints, self.hash_sequences),
        };
        let base = sighash_type.base();
        if base != SighashType::ALL {
            hash_sequences = NOTHING;
        }
        let hash_outputs = match base {
            SighashType::ALL => self.hash_outputs,
            SighashType::SINGLE => {
                outputs.get(index).map_or(NOTHING, |output| hash(|out| output.encode(out)))
            }
            _ => NOTHING,
        };

        let mut preimage = Vec::with_capacity(156 + 9 + spent.locking_script.as_bytes().len());
        preimage.extend_from_slice(&version.to_le_bytes());
        preimage.extend_from_slice(&hash_outpoints);
        preimage.extend_from_slice(&hash_sequences);
        input.previous_output.encode(&mut preimage);
        write_var_bytes(&mut preimage, spent.locking_script.as_bytes());
        preimage.extend_from_slice(&spent.satoshis.to_le_bytes());
        preimage.extend_from_slice(&input.sequence.to_le_bytes());
        preimage.extend_from_slice(&hash_outputs);
        preimage.extend_from_slice(&lock_time.to_le_bytes());
        preimage.extend_from_slice(&u32::from(sighash_type.to_byte()).to_le_bytes());
        Ok(sha256d(&preimage))
    }

    /// The unlocking script with which `key` spends the P2PKH output `spent` in input `index`. The
    /// signature covers all inputs and outputs.
    pub fn sign_p2pkh(
        &self,
        index: usize,
        spent: &TxOut,
        key: &PrivateKey,
    ) -> Result<Script, SighashError> {
        let digest = self.sighash(index, spent, SighashType::ALL)?;
        let mut signature = key.sign(&digest).to_der();
        signature.push(SighashType::ALL.to_byte());
        Ok(ScriptBuilder::new().push(&signature).push(&key.public_key().to_bytes()).into_script())
    }
}

fn hash(encode: impl FnOnce(&mut Vec<u8>)) -> [u8; 32] {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    sha256d(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Txid;
    use crate::transaction::{OutPoint, TxIn};

    const INPUTS: u32 = 500;

    fn transaction(inputs: u32) -> Transaction {
        let input = |n: u32| TxIn {
            previous_output: OutPoint { txid: Txid::from_bytes([n as u8; 32]), vout: n },
            unlocking_script: Script::default(),
            sequence: u32::MAX - n,
        };
        let output =
            |n: u32| TxOut { satoshis: n.into(), locking_script: Script::p2pkh(&[n as u8; 20]) };
        Transaction {
            version: 2,
            inputs: (0..inputs).map(input).collect(),
            outputs: (0..3).map(output).collect(),
            lock_time: 7,
        }
    }

    /// Hashes the layout of BIP143 for one input, without cached parts.
    fn hashed_anew(transaction: &Transaction, index: usize, spent: &TxOut) -> [u8; 32] {
        let Transaction { version, inputs, outputs, lock_time } = transaction;
        let concat = |parts: Vec<Vec<u8>>| sha256d(&parts.concat()).to_vec();
        let encoded = |encode: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            encode(&mut bytes);
            bytes
        };
        let outpoint = |input: &TxIn| encoded(&|out| input.previous_output.encode(out));
        let sequence = |input: &TxIn| input.sequence.to_le_bytes().to_vec();
        let output = |output: &TxOut| encoded(&|out| output.encode(out));
        let parts = [
            version.to_le_bytes().to_vec(),
            concat(inputs.iter().map(outpoint).collect()),
            concat(inputs.iter().map(sequence).collect()),
            outpoint(&inputs[index]),
            encoded(&|out| write_var_bytes(out, spent.locking_script.as_bytes())),
            spent.satoshis.to_le_bytes().to_vec(),
            sequence(&inputs[index]),
            concat(outputs.iter().map(output).collect()),
            lock_time.to_le_bytes().to_vec(),
            vec![0x41, 0, 0, 0],
        ];
        sha256d(&parts.concat())
    }

    #[test]
    fn many_inputs_are_signed_as_each_would_be_alone() {
        let key = PrivateKey::from_bytes(&[7; 32]).unwrap();
        let mut transaction = transaction(INPUTS);
        let spent = |index: usize| TxOut {
            satoshis: 1000 + index as u64,
            locking_script: Script::p2pkh(&key.public_key().hash()),
        };
        let cache = SighashCache::new(&transaction);
        let sign = |index| cache.sign_p2pkh(index, &spent(index), &key).unwrap();
        let scripts: Vec<_> = (0..INPUTS as usize).map(sign).collect();
        for (input, script) in transaction.inputs.iter_mut().zip(scripts) {
            input.unlocking_script = script;
        }
        for (index, input) in transaction.inputs.iter().enumerate() {
            let digest = hashed_anew(&transaction, index, &spent(index));
            let signature = [&key.sign(&digest).to_der()[..], &[0x41]].concat();
            let script = ScriptBuilder::new().push(&signature).push(&key.public_key().to_bytes());
            assert_eq!(input.unlocking_script, script.into_script(), "{index}");
        }
    }

    #[test]
    fn anyone_can_pay_is_asked_for_once_or_twice() {
        let once = SighashType::SINGLE.anyone_can_pay();
        assert_eq!(once.to_byte(), 0xc3);
        assert_eq!(once.anyone_can_pay(), once);
    }

    #[test]
    fn an_input_beyond_the_last_is_an_error() {
        let transaction = transaction(2);
        let cache = SighashCache::new(&transaction);
        let spent = &transaction.outputs[0];
        assert!(cache.sighash(1, spent, SighashType::SINGLE).is_ok());
        let error = cache.sighash(2, spent, SighashType::ALL).unwrap_err();
        assert_eq!(error.to_string(), "the transaction has 2 inputs, none with index 2");
    }
}
