//! Signing. It happens between two commands, and never inside one.

use bsv_tx::{KeyError, Script, SighashCache, Transaction, TxIn, TxOut};

use crate::model::coin::{Change, Coin, Selection};
use crate::wallet::Wallet;
use crate::wallet::seed::WalletKeys;

impl Wallet {
    /// Signs a transaction that spends the chosen coins to these outputs, with the change as the
    /// last output. The script of the change is watched from now on.
    pub(in crate::wallet) fn sign(
        &self,
        outputs: &[TxOut],
        selection: &Selection,
    ) -> Result<Transaction, KeyError> {
        let transaction = sign(&self.keys, outputs, selection)?;
        let scripts = transaction.outputs[outputs.len()..].iter().map(|it| &it.locking_script);
        let hashes = scripts.filter_map(Script::public_key_hash);
        self.watching.filter.add(hashes.map(<[u8; 20]>::as_slice));
        Ok(transaction)
    }
}

fn sign(
    keys: &WalletKeys,
    outputs: &[TxOut],
    selection: &Selection,
) -> Result<Transaction, KeyError> {
    let mut outputs = outputs.to_vec();
    if let Some(Change { satoshis, key }) = selection.change {
        let locking_script = Script::p2pkh(&keys.coin_hash(key)?);
        outputs.push(TxOut { satoshis, locking_script });
    }
    let input = |coin: &Coin| TxIn {
        previous_output: coin.outpoint,
        unlocking_script: Script::from_bytes([]),
        sequence: u32::MAX,
    };
    let inputs = selection.coins.iter().map(input).collect();
    let mut transaction = Transaction { version: 1, inputs, outputs, lock_time: 0 };
    let cache = SighashCache::new(&transaction);
    let mut scripts = Vec::with_capacity(selection.coins.len());
    for (index, coin) in selection.coins.iter().enumerate() {
        let key = keys.coin(coin.key)?;
        let locking_script = Script::p2pkh(&key.public_key().hash());
        let spent = TxOut { satoshis: coin.satoshis, locking_script };
        let script = cache.sign_p2pkh(index, &spent, &key);
        scripts.push(script.expect("there is an input for each coin"));
    }
    for (input, script) in transaction.inputs.iter_mut().zip(scripts) {
        input.unlocking_script = script;
    }
    Ok(transaction)
}
