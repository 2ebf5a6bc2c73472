use thiserror::Error;

use crate::encode::write_var_bytes;
use crate::hash::sha256d;
use crate::keys::PrivateKey;
use crate::script::{Script, ScriptBuilder};
use crate::transaction::{Transaction, TxOut};

/// Which parts of a transaction a signature covers. Every type carries the FORKID flag, as Bitcoin
/// SV has demanded since August 2017.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SighashType(u8);

impl SighashType {
    /// All inputs and all outputs.
    pub const ALL: Self = Self(0x41);
    /// All inputs and no output.
    pub const NONE: Self = Self(0x42);
    /// All inputs and the output of the same index.
    pub const SINGLE: Self = Self(0x43);

    /// The same outputs, but of the inputs only the one that is signed.
    pub const fn anyone_can_pay(self) -> Self {
        Self(self.0 | 0x80)
    }

    /// The byte that follows the signature in an unlocking script.
    pub const fn to_byte(self) -> u8 {
        self.0
    }

    fn is_anyone_can_pay(self) -> bool {
        self.0 & 0x80 != 0
    }

    fn base(self) -> Self {
        Self(self.0 & 0x7f)
    }
}

/// An input index beyond the transaction's inputs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the transaction has {inputs} inputs, none with index {index}")]
pub struct SighashError {
    index: usize,
    inputs: usize,
}

/// The digest that a signature in input `index` covers, by the FORKID scheme (the layout of
/// BIP143): the output that the input spends is `spent`.
pub fn sighash(
    transaction: &Transaction,
    index: usize,
    spent: &TxOut,
    sighash_type: SighashType,
) -> Result<[u8; 32], SighashError> {
    let Transaction { version, inputs, outputs, lock_time } = transaction;
    let input = inputs.get(index).ok_or(SighashError { index, inputs: inputs.len() })?;
    let anyone_can_pay = sighash_type.is_anyone_can_pay();
    let all_outputs = sighash_type.base() == SighashType::ALL;

    let mut preimage = Vec::with_capacity(156 + 9 + spent.locking_script.as_bytes().len());
    preimage.extend_from_slice(&version.to_le_bytes());
    preimage.extend_from_slice(&hash_unless(anyone_can_pay, |out| {
        inputs.iter().for_each(|input| input.previous_output.encode(out));
    }));
    preimage.extend_from_slice(&hash_unless(anyone_can_pay || !all_outputs, |out| {
        inputs.iter().for_each(|input| out.extend_from_slice(&input.sequence.to_le_bytes()));
    }));
    input.previous_output.encode(&mut preimage);
    write_var_bytes(&mut preimage, spent.locking_script.as_bytes());
    preimage.extend_from_slice(&spent.satoshis.to_le_bytes());
    preimage.extend_from_slice(&input.sequence.to_le_bytes());
    let signed_outputs = match sighash_type.base() {
        SighashType::ALL => outputs.as_slice(),
        SighashType::SINGLE => outputs.get(index).map(std::slice::from_ref).unwrap_or_default(),
        _ => &[],
    };
    preimage.extend_from_slice(&hash_unless(signed_outputs.is_empty() && !all_outputs, |out| {
        signed_outputs.iter().for_each(|output| output.encode(out));
    }));
    preimage.extend_from_slice(&lock_time.to_le_bytes());
    preimage.extend_from_slice(&u32::from(sighash_type.to_byte()).to_le_bytes());
    Ok(sha256d(&preimage))
}

fn hash_unless(left_out: bool, encode: impl FnOnce(&mut Vec<u8>)) -> [u8; 32] {
    if left_out {
        return [0; 32];
    }
    let mut bytes = Vec::new();
    encode(&mut bytes);
    sha256d(&bytes)
}

/// The unlocking script with which `key` spends the P2PKH output `spent` in input `index`. It
/// signs all inputs and outputs as they stand, so it comes last.
pub fn sign_p2pkh(
    transaction: &Transaction,
    index: usize,
    spent: &TxOut,
    key: &PrivateKey,
) -> Result<Script, SighashError> {
    let digest = sighash(transaction, index, spent, SighashType::ALL)?;
    let mut signature = key.sign(&digest).to_der();
    signature.push(SighashType::ALL.to_byte());
    Ok(ScriptBuilder::new().push(&signature).push(&key.public_key().to_bytes()).into_script())
}
