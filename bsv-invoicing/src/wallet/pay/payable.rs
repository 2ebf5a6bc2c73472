//! Checks that our own node accepts the outputs that a payee asks for, and that each has a sense.
//! Otherwise the node would never show the payment, and its coins would stay reserved.

use bsv_network::Policy;
use bsv_tx::{Script, TxOut};

use crate::error::Error;
use crate::model::coin::encoded_len;

/// `OP_FALSE OP_RETURN`, with which a script that only carries data begins.
const FALSE_RETURN: [u8; 2] = [0x00, 0x6a];

/// The room for the inputs of a transaction with many coins, in bytes.
const ROOM_FOR_INPUTS: u64 = 100_000;

pub(super) fn check_payable_outputs(outputs: &[TxOut], policy: &Policy) -> Result<(), Error> {
    let bytes = encoded_len(outputs);
    let most = policy.max_transaction_size.saturating_sub(ROOM_FOR_INPUTS);
    if bytes > most {
        let reason = format!("its outputs have {bytes} bytes, and our node accepts {most}");
        return Err(Error::UnpayableTerms(reason));
    }
    for (index, TxOut { satoshis, locking_script }) in outputs.iter().enumerate() {
        let script = locking_script.as_bytes();
        let reason = if is_p2sh(locking_script) {
            "pays to a script hash (P2SH), which nodes have not accepted since 2020".to_owned()
        } else if is_data(locking_script) && script.len() as u64 > policy.max_data_size {
            let (len, most) = (script.len(), policy.max_data_size);
            format!("carries {len} bytes of data, and our node accepts {most}")
        } else if *satoshis == 0 && !script.starts_with(&FALSE_RETURN) {
            "asks for 0 satoshis, which only data (OP_FALSE OP_RETURN) may".to_owned()
        } else {
            continue;
        };
        return Err(Error::UnpayableTerms(format!("output {index} of the terms {reason}")));
    }
    Ok(())
}

/// `OP_HASH160 <20 bytes> OP_EQUAL`, which the rules since Genesis (February 2020) forbid.
pub(in crate::wallet) fn is_p2sh(script: &Script) -> bool {
    let script = script.as_bytes();
    script.len() == 23 && script.starts_with(&[0xa9, 20]) && script.ends_with(&[0x87])
}

/// `OP_RETURN`, or `OP_FALSE OP_RETURN`.
pub(in crate::wallet) fn is_data(script: &Script) -> bool {
    let script = script.as_bytes();
    script.starts_with(&FALSE_RETURN[1..]) || script.starts_with(&FALSE_RETURN)
}

#[cfg(test)]
mod tests {
    use bsv_network::ConsolidationPolicy;

    use super::*;

    const POLICY: Policy = Policy {
        mining_fee_rate: 1,
        max_transaction_size: 10_000_000,
        max_data_size: 100,
        consolidation: ConsolidationPolicy {
            min_factor: 20,
            max_script_size: 150,
            min_confirmations: 6,
        },
    };

    fn check(script: &str) -> Result<(), String> {
        check_amount(1, script)
    }

    fn check_amount(satoshis: u64, script: &str) -> Result<(), String> {
        let locking_script = Script::from_hex(script).unwrap();
        check_payable_outputs(&[TxOut { satoshis, locking_script }], &POLICY)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn outputs_that_a_node_would_refuse_are_not_payable() {
        let hash = "00".repeat(20);
        check(&format!("76a914{hash}88ac")).unwrap();
        check(&format!("006a{}", "00".repeat(98))).unwrap();
        check(&format!("a914{hash}8787")).unwrap();
        assert!(check(&format!("a914{hash}87")).unwrap_err().contains("P2SH"));
        assert!(check(&format!("006a{}", "00".repeat(99))).unwrap_err().contains("101 bytes"));
        assert!(check(&format!("6a{}", "00".repeat(100))).unwrap_err().contains("101 bytes"));
        let large = "51".repeat(10_000_000);
        assert!(check(&large).unwrap_err().contains("10000013 bytes"), "too large");
    }

    #[test]
    fn only_data_is_paid_nothing() {
        for data in ["006a", "006a0461626364"] {
            check_amount(0, data).unwrap();
        }
        for other in ["6a", "00", "51", "0051", &format!("76a914{}88ac", "00".repeat(20))] {
            let refused = check_amount(0, other).unwrap_err();
            assert!(refused.contains("output 0 of the terms asks for 0 satoshis"), "{refused}");
            check(other).unwrap();
        }
    }
}
