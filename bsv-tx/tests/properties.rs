//! Properties of every value, tested with random ones.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use bsv_tx::{
    Address, Ancestry, Beef, BeefVersion, BlockHash, BlockHeader, Bump, ExtendedPrivateKey,
    ExtendedTransaction, FormedTransaction, Instruction, MerkleBranch, MerkleRoot, MerkleTree,
    Network, OutPoint, PrivateKey, Reader, Script, ScriptBuilder, Sibling, Tip, Transaction,
    TransactionForm, TxIn, TxOut, Txid, sha256d, write_var_bytes, write_var_int,
};
use proptest::array::uniform32;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

const BASE58: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

const XPRV: &str = "xprv9s21ZrQH143K4HFZ5CVtZb6tgRX2BdxgVTmGQGHAWEZU5aCi58AfSPafCEiFC6tH6VhGwRHZGsuydUq7vpvnaa2MxhAFDThvBdsfosg9BXz";

fn script() -> impl Strategy<Value = Script> {
    prop_oneof![
        8 => vec(any::<u8>(), 0..40),
        1 => vec(any::<u8>(), 0xfa..0x102),
    ]
    .prop_map(Script::from_bytes)
}

fn outpoint() -> impl Strategy<Value = OutPoint> {
    (uniform32(any::<u8>()), any::<u32>())
        .prop_map(|(txid, vout)| OutPoint { txid: Txid::from_bytes(txid), vout })
}

fn input() -> impl Strategy<Value = TxIn> {
    (outpoint(), script(), any::<u32>()).prop_map(
        |(previous_output, unlocking_script, sequence)| TxIn {
            previous_output,
            unlocking_script,
            sequence,
        },
    )
}

fn output() -> impl Strategy<Value = TxOut> {
    (any::<u64>(), script())
        .prop_map(|(satoshis, locking_script)| TxOut { satoshis, locking_script })
}

fn transaction() -> impl Strategy<Value = Transaction> {
    (any::<i32>(), vec(input(), 0..5), vec(output(), 0..5), any::<u32>()).prop_map(
        |(version, inputs, outputs, lock_time)| Transaction { version, inputs, outputs, lock_time },
    )
}

fn header() -> impl Strategy<Value = BlockHeader> {
    let hashes = (uniform32(any::<u8>()), uniform32(any::<u8>()));
    (any::<i32>(), hashes, any::<[u32; 3]>()).prop_map(
        |(version, (previous_block, merkle_root), [time, bits, nonce])| BlockHeader {
            version,
            previous_block: BlockHash::from_bytes(previous_block),
            merkle_root: MerkleRoot::from_bytes(merkle_root),
            time,
            bits,
            nonce,
        },
    )
}

/// Any bytes, and nearly valid transactions, which get far into the decoder.
fn nearly_a_transaction() -> impl Strategy<Value = Vec<u8>> {
    let changed = (transaction(), vec((any::<Index>(), any::<u8>()), 0..4)).prop_map(
        |(transaction, changes)| {
            let mut bytes = transaction.to_bytes();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            bytes
        },
    );
    prop_oneof![vec(any::<u8>(), 0..300), changed]
}

/// The transactions of a block, some of which are chosen.
fn block() -> impl Strategy<Value = (Vec<Txid>, Vec<usize>)> {
    let leaves = vec(uniform32(any::<u8>()).prop_map(Txid::from_bytes), 1..100);
    (leaves, vec(any::<Index>(), 1..8)).prop_map(|(leaves, chosen)| {
        let mut chosen: Vec<_> = chosen.iter().map(|place| place.index(leaves.len())).collect();
        chosen.sort_unstable();
        chosen.dedup();
        (leaves, chosen)
    })
}

fn extended() -> impl Strategy<Value = ExtendedTransaction> {
    (transaction(), vec(output(), 5)).prop_map(|(transaction, mut previous_outputs)| {
        previous_outputs.truncate(transaction.inputs.len());
        ExtendedTransaction::new(transaction, previous_outputs).unwrap()
    })
}

/// A BEEF about the last of some transactions, each of which spends outputs of earlier ones, and
/// the root of the block that holds the first ones.
fn beef() -> impl Strategy<Value = (Beef, MerkleRoot)> {
    let spends = vec(vec(any::<Index>(), 1..4), 1..12);
    (1..5_usize, spends, select(&[BeefVersion::V1, BeefVersion::V2]), any::<bool>()).prop_map(
        |(mined, spends, version, is_atomic)| {
            let mut transactions: Vec<_> = (0..mined as u8)
                .map(|number| spend(&[Txid::from_bytes([number; 32])], 0))
                .collect();
            for (vout, parents) in spends.iter().enumerate() {
                let parent = |place: &Index| transactions[place.index(transactions.len())].txid();
                let parents: Vec<_> = parents.iter().map(parent).collect();
                // Each spends outputs that no other spends.
                transactions.push(spend(&parents, 4 * vout as u32));
            }
            let txids: Vec<_> = transactions[..mined].iter().map(Transaction::txid).collect();
            let tree = MerkleTree::of(&txids);
            let bump = |(place, txid)| Bump::of(7, &[(txid, tree.branch(place).unwrap())]).unwrap();
            let bumps = txids.iter().copied().enumerate().map(bump).collect();
            let subject = transactions.pop().unwrap();
            let ancestry = Ancestry { transactions, bumps, held: Vec::new() };
            let beef = Beef::new(version, subject, ancestry).unwrap();
            let beef = if is_atomic { beef.into_atomic().unwrap() } else { beef };
            (beef, tree.root().unwrap())
        },
    )
}

/// A transaction that spends an output of each of these, starting with `vout`, and has many outputs
/// without value.
fn spend(parents: &[Txid], vout: u32) -> Transaction {
    let input = |(vout, txid): (u32, &Txid)| TxIn {
        previous_output: OutPoint { txid: *txid, vout },
        unlocking_script: Script::default(),
        sequence: u32::MAX,
    };
    let output = TxOut { satoshis: 0, locking_script: Script::default() };
    Transaction {
        version: 1,
        inputs: (vout..).zip(parents).map(input).collect(),
        outputs: vec![output; 50],
        lock_time: 0,
    }
}

proptest! {
    #[test]
    fn transactions_survive_the_round_trip(transaction in transaction()) {
        let bytes = transaction.to_bytes();
        prop_assert_eq!(Transaction::from_bytes(&bytes), Ok(transaction.clone()));
        prop_assert_eq!(Transaction::from_hex(&transaction.to_hex()), Ok(transaction));
    }

    #[test]
    fn no_part_of_a_transaction_is_one_and_nothing_may_follow(
        transaction in transaction(),
        cut in any::<Index>(),
        extension in vec(any::<u8>(), 1..50),
    ) {
        let bytes = transaction.to_bytes();
        prop_assert!(Transaction::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        prop_assert!(Transaction::from_bytes(&[bytes, extension].concat()).is_err());
    }

    #[test]
    fn what_decodes_encodes_to_the_same_bytes(bytes in nearly_a_transaction()) {
        if let Ok(transaction) = Transaction::from_bytes(&bytes) {
            prop_assert_eq!(transaction.to_bytes(), bytes);
        }
    }

    #[test]
    fn outputs_survive_the_round_trip(output in output(), rest in vec(any::<u8>(), 0..4)) {
        let mut bytes = Vec::new();
        output.encode(&mut bytes);
        for len in 0..bytes.len() {
            prop_assert!(TxOut::read(&mut Reader::new(&bytes[..len])).is_err());
        }
        bytes.extend_from_slice(&rest);
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(TxOut::read(&mut reader), Ok(output));
        prop_assert_eq!(reader.remaining(), rest.len());
    }

    #[test]
    fn headers_are_80_bytes_of_any_content(
        header in header(),
        bytes in vec(any::<u8>(), BlockHeader::LEN),
        other_len in 0..200usize,
    ) {
        prop_assert_eq!(BlockHeader::from_bytes(&header.to_bytes()), Ok(header));
        let decoded = BlockHeader::from_bytes(&bytes).unwrap();
        prop_assert_eq!(decoded.to_bytes(), bytes);
        // Regardless of the bits.
        decoded.has_proof_of_work();
        prop_assume!(other_len != BlockHeader::LEN);
        prop_assert!(BlockHeader::from_bytes(&vec![0; other_len]).is_err());
    }

    #[test]
    fn outpoints_survive_the_round_trip(outpoint in outpoint(), extension in "[ -~]{1,4}") {
        let text = outpoint.to_string();
        prop_assert_eq!(text.parse(), Ok(outpoint));
        for len in 0..=65 {
            prop_assert!(text[..len].parse::<OutPoint>().is_err());
        }
        prop_assume!(!extension.bytes().all(|byte| byte.is_ascii_digit()));
        for longer in [text.clone() + &extension, extension + &text] {
            prop_assert!(longer.parse::<OutPoint>().is_err(), "{}", longer);
        }
    }

    #[test]
    fn the_output_index_is_written_in_one_way_only(txid in uniform32(any::<u8>()), index in "[+0-9]{1,11}") {
        let text = format!("{}:{index}", Txid::from_bytes(txid));
        if let Ok(outpoint) = text.parse::<OutPoint>() {
            prop_assert_eq!(outpoint.to_string(), text);
        }
    }

    #[test]
    fn var_ints_and_var_bytes_survive_the_round_trip(
        value in any::<u64>(),
        shift in 0..64u32,
        data in vec(any::<u8>(), 0..300),
    ) {
        let value = value >> shift;
        let mut bytes = Vec::new();
        write_var_int(&mut bytes, value);
        write_var_bytes(&mut bytes, &data);
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(reader.var_int(), Ok(value));
        prop_assert_eq!(reader.var_bytes(), Ok(data.as_slice()));
        prop_assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn pushes_read_back(items in vec(vec(any::<u8>(), 0..300), 0..8)) {
        let script = items
            .iter()
            .fold(ScriptBuilder::new(), |script, item| script.push_bytes(item))
            .into_script();
        let read: Vec<_> = script.instructions().map(Result::unwrap).collect();
        let pushed: Vec<_> = items.iter().map(|item| Instruction::Push(item)).collect();
        prop_assert_eq!(read, pushed);
    }

    #[test]
    fn minimal_pushes_read_back_as_the_same_number_or_bytes(data in vec(any::<u8>(), 0..3)) {
        let script = ScriptBuilder::new().push(&data).into_script();
        let read: Vec<_> = script.instructions().map(Result::unwrap).collect();
        let expected = match data.as_slice() {
            [number @ 1..=16] => Instruction::Op(0x50 + number),
            [0x81] => Instruction::Op(0x4f),
            bytes => Instruction::Push(bytes),
        };
        prop_assert_eq!(read, [expected]);
    }

    #[test]
    fn scripts_of_any_bytes_are_iterated_to_their_end(bytes in vec(any::<u8>(), 0..300)) {
        let script = Script::from_bytes(bytes);
        let read: Vec<_> = script.instructions().collect();
        prop_assert!(read.len() <= script.as_bytes().len());
        prop_assert!(read.iter().rev().skip(1).all(Result::is_ok), "an error is the last item");
        prop_assert_eq!(Script::from_hex(&script.to_hex()), Ok(script.clone()));
    }

    #[test]
    fn one_wrong_character_is_found(
        secret in uniform32(any::<u8>()),
        network in select(&[Network::Livenet, Network::Testnet, Network::Regtest]),
        place in any::<Index>(),
        character in select(BASE58),
    ) {
        let Ok(key) = PrivateKey::from_bytes(&secret) else { return Ok(()) };
        let wif = key.to_wif(network);
        prop_assert!(PrivateKey::from_wif(&wif, network).is_ok());
        if let Some(wrong) = with_character(&wif, place, character) {
            prop_assert!(PrivateKey::from_wif(&wrong, network).is_err(), "{}", wrong);
        }
        let address = Address::p2pkh(&key.public_key(), network);
        let text = address.to_string();
        prop_assert_eq!(Address::parse(&text, network), Ok(address));
        if let Some(wrong) = with_character(&text, place, character) {
            prop_assert!(Address::parse(&wrong, network).is_err(), "{}", wrong);
        }
        if let Some(wrong) = with_character(XPRV, place, character) {
            prop_assert!(wrong.parse::<ExtendedPrivateKey>().is_err(), "{}", wrong);
        }
    }

    #[test]
    fn text_of_any_kind_is_read_without_a_panic(text in "\\PC{0,120}") {
        for prefix in ["", "xprv", "tprv", "1", "K"] {
            let text = format!("{prefix}{text}");
            prop_assert!(Address::parse(&text, Network::Livenet).is_err());
            prop_assert!(PrivateKey::from_wif(&text, Network::Livenet).is_err());
            prop_assert!(text.parse::<ExtendedPrivateKey>().is_err());
            prop_assert!(text.parse::<OutPoint>().is_err());
            prop_assert!(text.parse::<Txid>().is_err());
        }
    }

    #[test]
    fn any_transactions_of_a_block_make_a_bump(
        (leaves, chosen) in block(),
        height in any::<u32>(),
        extension in vec(any::<u8>(), 1..50),
        cut in any::<Index>(),
    ) {
        let tree = MerkleTree::of(&leaves);
        let branch = |place: &usize| (leaves[*place], tree.branch(*place).unwrap());
        let branches: Vec<_> = chosen.iter().map(branch).collect();
        let bump = Bump::of(height, &branches).unwrap();
        prop_assert_eq!((bump.height(), Some(bump.root())), (height, tree.root()));
        prop_assert!(bump.txids().eq(chosen.iter().map(|place| leaves[*place])));
        for (txid, branch) in &branches {
            prop_assert_eq!(bump.branch(txid), Some(branch.clone()));
        }
        let bytes = bump.to_bytes();
        prop_assert!(Bump::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        prop_assert!(Bump::from_bytes(&[bytes.as_slice(), &extension].concat()).is_err());
        prop_assert_eq!(Bump::from_bytes(&bytes), Ok(bump));
    }

    #[test]
    fn what_decodes_as_a_bump_encodes_to_the_same_bytes(
        bytes in vec(prop_oneof![0..3u8, any::<u8>()], 0..120),
        (leaves, chosen) in block(),
        place in any::<Index>(),
        byte in any::<u8>(),
    ) {
        let tree = MerkleTree::of(&leaves);
        let branch = |place: &usize| (leaves[*place], tree.branch(*place).unwrap());
        let branches: Vec<_> = chosen.iter().map(branch).collect();
        let mut changed = Bump::of(9, &branches).unwrap().to_bytes();
        let place = place.index(changed.len());
        changed[place] = byte;
        for bytes in [bytes, changed] {
            if let Ok(bump) = Bump::from_bytes(&bytes) {
                prop_assert_eq!(bump.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn extended_transactions_survive_the_round_trip(
        extended in extended(),
        cut in any::<Index>(),
        extension in vec(any::<u8>(), 1..50),
    ) {
        let bytes = extended.to_bytes();
        prop_assert_eq!(TransactionForm::of(&bytes), TransactionForm::Extended);
        prop_assert!(ExtendedTransaction::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        prop_assert!(ExtendedTransaction::from_bytes(&[bytes.as_slice(), &extension].concat()).is_err());
        prop_assert_eq!(FormedTransaction::from_bytes(&bytes), Ok(FormedTransaction::Extended(extended)));
    }

    #[test]
    fn beef_survives_the_round_trip_and_is_verified(
        (beef, root) in beef(),
        cut in any::<Index>(),
        extension in vec(any::<u8>(), 1..50),
    ) {
        let bytes = beef.to_bytes();
        prop_assert!(Beef::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        prop_assert!(Beef::from_bytes(&[bytes.as_slice(), &extension].concat()).is_err());
        prop_assert_eq!(Beef::from_bytes(&bytes), Ok(beef.clone()));
        let tip = Tip { height: 7, median_time: 0 };
        let has = |root| move |height, claimed| (height == 7).then_some(claimed == root);
        let verify = |root| beef.verify(tip, has(root), |_| None);
        prop_assert_eq!(verify(root), Ok(()));
        prop_assert!(verify(MerkleRoot::from_bytes([9; 32])).is_err());
    }

    #[test]
    fn what_decodes_in_any_form_encodes_to_the_same_bytes(
        (beef, _) in beef(),
        extended in extended(),
        changes in vec((any::<Index>(), any::<u8>()), 0..3),
    ) {
        for mut bytes in [beef.to_bytes(), extended.to_bytes(), extended.transaction().to_bytes()] {
            for (place, byte) in &changes {
                let place = place.index(bytes.len());
                bytes[place] = *byte;
            }
            if let Ok(read) = FormedTransaction::from_bytes(&bytes) {
                prop_assert_eq!(read.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn every_branch_of_a_tree_leads_to_its_root(
        leaves in vec(uniform32(any::<u8>()), 1..200),
        position in any::<Index>(),
        foreign in uniform32(any::<u8>()),
    ) {
        let position = position.index(leaves.len());
        let txid = Txid::from_bytes(leaves[position]);
        let (root, branch) = root_and_branch(leaves, position);
        prop_assert_eq!(branch.root(&txid), Some(root));
        prop_assert_ne!(branch.root(&Txid::from_bytes(foreign)), Some(root));
        if position == 0 {
            let siblings: Option<Vec<_>> = branch
                .siblings
                .iter()
                .map(|sibling| match sibling {
                    Sibling::Hash(hash) => Some(*hash),
                    Sibling::Duplicate => None,
                })
                .collect();
            let siblings = siblings.expect("the first node of a level is alone only at the root");
            prop_assert_eq!(MerkleBranch::of_coinbase(&siblings), branch);
        }
    }

    #[test]
    fn branches_survive_the_round_trip(
        position in any::<u64>(),
        shift in 0..64u32,
        siblings in vec(proptest::option::of(uniform32(any::<u8>())), 0..=64),
        cut in any::<Index>(),
        extension in vec(any::<u8>(), 1..50),
    ) {
        let siblings: Vec<_> = siblings
            .into_iter()
            .map(|hash| hash.map_or(Sibling::Duplicate, Sibling::Hash))
            .collect();
        let branch = MerkleBranch { position: position >> shift, siblings };
        let bytes = branch.to_bytes();
        prop_assert!(MerkleBranch::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        prop_assert!(MerkleBranch::from_bytes(&[bytes.as_slice(), &extension].concat()).is_err());
        prop_assert_eq!(MerkleBranch::from_bytes(&bytes), Ok(branch));
    }

    #[test]
    fn what_decodes_as_a_branch_encodes_to_the_same_bytes(
        bytes in vec(prop_oneof![0..3u8, any::<u8>()], 0..120),
    ) {
        if let Ok(branch) = MerkleBranch::from_bytes(&bytes) {
            prop_assert_eq!(branch.to_bytes(), bytes);
        }
    }

    #[test]
    fn a_branch_of_any_content_is_followed_without_a_panic(
        position in any::<u64>(),
        siblings in vec(proptest::option::of(uniform32(any::<u8>())), 0..80),
    ) {
        let siblings: Vec<_> = siblings
            .into_iter()
            .map(|hash| hash.map_or(Sibling::Duplicate, Sibling::Hash))
            .collect();
        let fits = u32::try_from(siblings.len()).unwrap() >= u64::BITS - position.leading_zeros();
        let root = MerkleBranch { position, siblings }.root(&Txid::from_bytes([7; 32]));
        prop_assert!(fits || root.is_none());
    }
}

/// `text` with another character at `place`, or `None` if it is the same one.
fn with_character(text: &str, place: Index, character: u8) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let place = place.index(bytes.len());
    bytes[place] = character;
    Some(String::from_utf8(bytes).unwrap()).filter(|changed| changed != text)
}

fn root_and_branch(mut level: Vec<[u8; 32]>, position: usize) -> (MerkleRoot, MerkleBranch) {
    let mut siblings = Vec::new();
    let mut place = position;
    while level.len() > 1 {
        siblings.push(level.get(place ^ 1).map_or(Sibling::Duplicate, |hash| Sibling::Hash(*hash)));
        if level.len() % 2 == 1 {
            level.extend_from_within(level.len() - 1..);
        }
        level = level.chunks(2).map(|pair| sha256d(&pair.concat())).collect();
        place /= 2;
    }
    (MerkleRoot::from_bytes(level[0]), MerkleBranch { position: position as u64, siblings })
}
