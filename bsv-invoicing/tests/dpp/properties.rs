use bsv_invoicing::Timestamp;
use bsv_invoicing::dpp::{
    Acknowledgement, ChannelMessage, Destination, Dialect, FeeRate, Fees, Merchant, MerkleProof,
    Payment, PeerChannel, ReceivedTerms, Terms,
};
use bsv_tx::{
    BlockHash, BlockHeader, MerkleBranch, Network, Script, Sibling, Transaction, TxOut, Txid,
};
use proptest::array::uniform32;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn dialect() -> impl Strategy<Value = Dialect> {
    select(&[Dialect::GoDpp, Dialect::Brc, Dialect::Bip270])
}

fn network() -> impl Strategy<Value = Network> {
    select(&[Network::Livenet, Network::Testnet, Network::Regtest])
}

fn words() -> impl Strategy<Value = String> {
    "\\PC{0,12}|[\"\\\\\u{0}-\u{1f}]{1,4}"
}

fn rate() -> impl Strategy<Value = FeeRate> {
    (0..=2_100_000_000_000_000u64, 1..=2_100_000_000_000_000u64)
        .prop_map(|(satoshis, bytes)| FeeRate { satoshis, bytes })
}

fn destination() -> impl Strategy<Value = Destination> {
    (1..=100_000_000_000_000u64, vec(any::<u8>(), 1..40), words()).prop_map(
        |(satoshis, script, description)| Destination {
            satoshis,
            script: Script::from_bytes(script),
            description,
        },
    )
}

fn terms() -> impl Strategy<Value = Terms> {
    // The times are whole seconds, because every dialect can write those.
    let time =
        (0..253_402_207_199u64).prop_map(|seconds| Timestamp::from_micros(seconds * 1_000_000));
    let merchant = [words(), words(), words(), words()]
        .prop_map(|[name, avatar, email, address]| Merchant { name, avatar, email, address });
    let fees = (rate(), rate()).prop_map(|(standard, data)| Fees { standard, data });
    let texts = [words(), words(), words()];
    let times = (time.clone(), option::of(time));
    (network(), vec(destination(), 1..20), times, texts, merchant, fees, any::<bool>()).prop_map(
        |(network, destinations, times, texts, merchant, fees, wants_ancestry)| {
            let (created_at, expires_at) = times;
            let [payment_url, memo, reference] = texts;
            Terms {
                network,
                destinations,
                created_at,
                expires_at,
                payment_url,
                memo,
                merchant,
                reference,
                fees: Some(fees),
                wants_ancestry,
            }
        },
    )
}

fn transaction() -> impl Strategy<Value = Transaction> {
    (any::<i32>(), vec((any::<u64>(), vec(any::<u8>(), 0..40)), 1..4), any::<u32>()).prop_map(
        |(version, outputs, lock_time)| {
            let output = |(satoshis, script): (u64, Vec<u8>)| TxOut {
                satoshis,
                locking_script: Script::from_bytes(script),
            };
            let outputs = outputs.into_iter().map(output).collect();
            Transaction { version, inputs: vec![], outputs, lock_time }
        },
    )
}

fn branch() -> impl Strategy<Value = MerkleBranch> {
    vec(uniform32(any::<u8>()), 0..40).prop_flat_map(|hashes| {
        let places = 1u64 << hashes.len();
        (0..places).prop_map(move |position| MerkleBranch {
            position,
            siblings: hashes.iter().copied().map(Sibling::Hash).collect(),
        })
    })
}

proptest! {
    #[test]
    fn terms_survive_the_round_trip(terms in terms(), dialect in dialect()) {
        let json = terms.to_json(dialect);
        let read = ReceivedTerms::from_json(&json, terms.network).unwrap();
        prop_assert_eq!(read.dialect(), dialect);
        let mut expected = terms;
        if dialect == Dialect::Bip270 {
            expected.merchant = Merchant::default();
            // BIP270 keeps one rate, rounded, and drops one that is too high.
            let rates = read.terms.fees.map(|fees| (fees.standard, fees.data));
            prop_assert!(rates.is_none_or(|(standard, data)| standard == data));
            expected.fees = read.terms.fees;
            expected.wants_ancestry = false;
        }
        prop_assert_eq!(read.terms, expected);
    }

    #[test]
    fn payments_survive_the_round_trip(
        terms in terms(),
        dialect in dialect(),
        transaction in transaction(),
        memo in words(),
    ) {
        let json = terms.to_json(dialect);
        let received = ReceivedTerms::from_json(&json, terms.network).unwrap();
        let read = Payment::from_json(&received.payment(&transaction, None, &memo)).unwrap();
        let expected = Payment {
            dialect,
            transaction: transaction.to_bytes(),
            memo,
            refund_to: None,
            reference: (dialect != Dialect::Brc).then_some(terms.reference),
        };
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn acknowledgements_survive_the_round_trip(
        texts in [words(), words(), words(), words(), words(), words()],
        txid in uniform32(any::<u8>()),
        has_channel in any::<bool>(),
    ) {
        let [reference, memo, host, path, channel_id, token] = texts;
        let peer_channel = has_channel.then_some(PeerChannel { host, path, channel_id, token });
        let txid = Txid::from_bytes(txid);
        let acknowledgement = Acknowledgement { reference, txid, memo, peer_channel };
        let json = acknowledgement.to_json(Dialect::GoDpp, b"");
        let read = Acknowledgement::from_answer(Dialect::GoDpp, 201, &json, &txid);
        prop_assert_eq!(read, Ok(acknowledgement));
        let other = Txid::from_bytes([0; 32]);
        prop_assert!(Acknowledgement::from_answer(Dialect::GoDpp, 201, &json, &other).is_err());
    }

    #[test]
    fn proofs_survive_the_round_trip(
        txid in uniform32(any::<u8>()),
        block in uniform32(any::<u8>()),
        block_height in any::<u32>(),
        branch in branch(),
        numbers in any::<[u32; 3]>(),
        has_header in any::<bool>(),
        sequence in any::<u64>(),
    ) {
        let txid = Txid::from_bytes(txid);
        let header = has_header.then_some(BlockHeader {
            version: 1,
            previous_block: BlockHash::from_bytes(block),
            merkle_root: branch.root(&txid).unwrap(),
            time: numbers[0],
            bits: numbers[1],
            nonce: numbers[2],
        });
        let block_hash = header.map_or(BlockHash::from_bytes(block), |header| header.block_hash());
        let proof = MerkleProof { txid, block_hash, block_height, header, branch };
        let message = ChannelMessage {
            sequence,
            received: Timestamp::from_micros(sequence),
            content_type: "application/json".to_owned(),
            payload: proof.to_envelope(),
        };
        let list = ChannelMessage::list_to_json(std::slice::from_ref(&message));
        let read = ChannelMessage::list_from_json(&list).unwrap();
        prop_assert_eq!(MerkleProof::from_envelope(&read[0].payload), Ok(proof));
        prop_assert_eq!(read, [message]);
    }

    #[test]
    fn changed_messages_are_read_without_a_panic(
        terms in terms(),
        dialect in dialect(),
        transaction in transaction(),
        changes in vec((any::<Index>(), any::<u8>()), 1..4),
        cut in option::of(any::<Index>()),
    ) {
        let txid = transaction.txid();
        let json = terms.to_json(dialect);
        let received = ReceivedTerms::from_json(&json, terms.network).unwrap();
        let payment = received.payment(&transaction, None, "");
        let branch = MerkleBranch { position: 0, siblings: vec![Sibling::Duplicate] };
        let block_hash = BlockHash::from_bytes([0; 32]);
        let proof = MerkleProof { txid, block_hash, block_height: 1, header: None, branch };
        let acknowledgement =
            Acknowledgement { reference: String::new(), txid, memo: String::new(), peer_channel: None };
        for mut message in [
            json,
            payment.clone(),
            acknowledgement.to_json(dialect, &payment),
            proof.to_envelope(),
        ] {
            for (place, byte) in &changes {
                let place = place.index(message.len());
                message[place] = *byte;
            }
            if let Some(cut) = cut {
                message.truncate(cut.index(message.len()));
            }
            let _ = ReceivedTerms::from_json(&message, terms.network);
            let _ = Payment::from_json(&message);
            let _ = Acknowledgement::from_answer(dialect, 201, &message, &txid);
            let _ = Acknowledgement::from_answer(dialect, 422, &message, &txid);
            let _ = MerkleProof::from_envelope(&message);
            let _ = ChannelMessage::list_from_json(&message);
        }
    }
}
