use crate::hash::hash160;
use crate::keys::PublicKey;
use crate::script::{Instruction, Script};
use crate::sighash::{SighashCache, SighashType};
use crate::transaction::{Transaction, TxOut};

/// Whether the input with this index unlocks the output that it spends: it holds the public key that
/// the output names, and a signature by that key, which also commits to the amount of the output.
///
/// `None` if that cannot be told here: the output is no P2PKH output, or the input has another form
/// than a signature and a compressed key. `cache` is that of the transaction.
pub fn unlocks_p2pkh(
    cache: &SighashCache<'_>,
    transaction: &Transaction,
    index: usize,
    spent: &TxOut,
) -> Option<bool> {
    let hash = spent.locking_script.public_key_hash()?;
    let (signature, key) = signature_and_key(&transaction.inputs.get(index)?.unlocking_script)?;
    let (sighash_type, signature) = signature.split_last()?;
    let sighash_type = SighashType::from_byte(*sighash_type)?;
    let key: &[u8; 33] = key.try_into().ok()?;
    if hash160(key) != *hash {
        return Some(false);
    }
    let Ok(key) = PublicKey::from_bytes(key) else { return Some(false) };
    let digest = cache.sighash(index, spent, sighash_type).ok()?;
    Some(key.verify_lax(&digest, signature))
}

fn signature_and_key(script: &Script) -> Option<(&[u8], &[u8])> {
    let mut pushes = script.instructions();
    match (pushes.next()?, pushes.next()?, pushes.next()) {
        (Ok(Instruction::Push(signature)), Ok(Instruction::Push(key)), None) => {
            Some((signature, key))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Txid;
    use crate::keys::PrivateKey;
    use crate::script::ScriptBuilder;
    use crate::transaction::{OutPoint, TxIn};

    fn key(byte: u8) -> PrivateKey {
        PrivateKey::from_bytes(&[byte; 32]).unwrap()
    }

    fn paying(satoshis: u64, byte: u8) -> TxOut {
        TxOut { satoshis, locking_script: Script::p2pkh(&key(byte).public_key().hash()) }
    }

    fn signed(spent: &TxOut, by: u8, sighash_type: SighashType) -> Transaction {
        let input = TxIn {
            previous_output: OutPoint { txid: Txid::from_bytes([1; 32]), vout: 0 },
            unlocking_script: Script::default(),
            sequence: u32::MAX,
        };
        let outputs = vec![paying(900, 9)];
        let mut transaction =
            Transaction { version: 1, inputs: vec![input], outputs, lock_time: 0 };
        let digest = SighashCache::new(&transaction).sighash(0, spent, sighash_type).unwrap();
        let signature = [key(by).sign(&digest).to_der(), vec![sighash_type.to_byte()]].concat();
        let unlocking =
            ScriptBuilder::new().push(&signature).push(&key(by).public_key().to_bytes());
        transaction.inputs[0].unlocking_script = unlocking.into_script();
        transaction
    }

    fn unlocks(transaction: &Transaction, spent: &TxOut) -> Option<bool> {
        unlocks_p2pkh(&SighashCache::new(transaction), transaction, 0, spent)
    }

    #[test]
    fn a_signature_holds_for_its_key_amount_and_transaction_only() {
        let spent = paying(1_000, 1);
        for sighash_type in [SighashType::ALL, SighashType::NONE, SighashType::SINGLE] {
            for sighash_type in [sighash_type, sighash_type.anyone_can_pay()] {
                let transaction = signed(&spent, 1, sighash_type);
                assert_eq!(unlocks(&transaction, &spent), Some(true), "{sighash_type:?}");
                assert_eq!(unlocks(&transaction, &paying(1_001, 1)), Some(false));
            }
        }
        assert_eq!(unlocks(&signed(&spent, 2, SighashType::ALL), &spent), Some(false));
        let mut changed = signed(&spent, 1, SighashType::ALL);
        changed.outputs[0].satoshis += 1;
        assert_eq!(unlocks(&changed, &spent), Some(false));
    }

    #[test]
    fn other_forms_are_not_judged() {
        let spent = paying(1_000, 1);
        let other = TxOut { satoshis: 1_000, locking_script: Script::from_bytes([0x51]) };
        let transaction = signed(&spent, 1, SighashType::ALL);
        assert_eq!(unlocks(&transaction, &other), None);
        for script in ["", "51", "0101", "01410101010101", "ff"] {
            let mut transaction = transaction.clone();
            transaction.inputs[0].unlocking_script = Script::from_hex(script).unwrap();
            assert_eq!(unlocks(&transaction, &spent), None, "{script}");
        }
    }
}
