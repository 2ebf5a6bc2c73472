use BeefVersion::{V1, V2};

use super::*;
use crate::hash::MerkleRoot;
use crate::merkle::MerkleTree;
use crate::script::Script;
use crate::transaction::{OutPoint, TxIn, TxOut};

/// The example of BRC-62.
const EXAMPLE: &str = "0100beef01fe636d0c0007021400fe507c0c7aa754cef1f7889d5fd395cf1f785dd7de98eed895dbedfe4e5bc70d1502ac4e164f5bc16746bb0868404292ac8318bbac3800e4aad13a014da427adce3e010b00bc4ff395efd11719b277694cface5aa50d085a0bb81f613f70313acd28cf4557010400574b2d9142b8d28b61d88e3b2c3f44d858411356b49a28a4643b6d1a6a092a5201030051a05fc84d531b5d250c23f4f886f6812f9fe3f402d61607f977b4ecd2701c19010000fd781529d58fc2523cf396a7f25440b409857e7e221766c57214b1d38c7b481f01010062f542f45ea3660f86c013ced80534cb5fd4c19d66c56e7e8c5d4bf2d40acc5e010100b121e91836fd7cd5102b654e9f72f3cf6fdbfd0b161c53a9c54b12c841126331020100000001cd4e4cac3c7b56920d1e7655e7e260d31f29d9a388d04910f1bbd72304a79029010000006b483045022100e75279a205a547c445719420aa3138bf14743e3f42618e5f86a19bde14bb95f7022064777d34776b05d816daf1699493fcdf2ef5a5ab1ad710d9c97bfb5b8f7cef3641210263e2dee22b1ddc5e11f6fab8bcd2378bdd19580d640501ea956ec0e786f93e76ffffffff013e660000000000001976a9146bfd5c7fbe21529d45803dbcf0c87dd3c71efbc288ac0000000001000100000001ac4e164f5bc16746bb0868404292ac8318bbac3800e4aad13a014da427adce3e000000006a47304402203a61a2e931612b4bda08d541cfb980885173b8dcf64a3471238ae7abcd368d6402204cbf24f04b9aa2256d8901f0ed97866603d2be8324c2bfb7a37bf8fc90edd5b441210263e2dee22b1ddc5e11f6fab8bcd2378bdd19580d640501ea956ec0e786f93e76ffffffff013c660000000000001976a9146bfd5c7fbe21529d45803dbcf0c87dd3c71efbc288ac0000000000";
const EXAMPLE_ROOT: &str = "bb6f640cc4ee56bf38eb5a1969ac0c16caa2d3d202b22bf3735d10eec0ca6e00";

const HEIGHT: u32 = 100;
const TIP: Tip = Tip { height: 200, median_time: 1_700_000_000 };

const FINAL: u32 = u32::MAX;

/// A transaction that spends these outputs and has outputs of these amounts.
fn spend(previous_outputs: &[OutPoint], amounts: &[u64]) -> Transaction {
    let input = |previous_output: &OutPoint| TxIn {
        previous_output: *previous_output,
        unlocking_script: Script::default(),
        sequence: FINAL,
    };
    let output = |satoshis: &u64| TxOut { satoshis: *satoshis, locking_script: Script::default() };
    Transaction {
        version: 1,
        inputs: previous_outputs.iter().map(input).collect(),
        outputs: amounts.iter().map(output).collect(),
        lock_time: 0,
    }
}

fn output_of(transaction: &Transaction, vout: u32) -> OutPoint {
    OutPoint { txid: transaction.txid(), vout }
}

/// An output of a transaction of which only the id matters.
fn elsewhere(number: u8) -> OutPoint {
    OutPoint { txid: Txid::from_bytes([number; 32]), vout: 0 }
}

/// A block of these transactions at [`HEIGHT`].
fn mine(transactions: &[&Transaction]) -> Vec<Bump> {
    let txids: Vec<_> = transactions.iter().map(|transaction| transaction.txid()).collect();
    let tree = MerkleTree::of(&txids);
    let bump = |(at, txid): (usize, &Txid)| Bump::of(HEIGHT, &[(*txid, tree.branch(at).unwrap())]);
    txids.iter().enumerate().map(bump).collect::<Result<_, _>>().unwrap()
}

/// Two mined transactions, their common child, and the subject, which spends that child.
struct Family {
    mined: [Transaction; 2],
    parent: Transaction,
    subject: Transaction,
}

impl Family {
    fn new() -> Self {
        let mined = [1, 2].map(|number| spend(&[elsewhere(number)], &[1000, 500]));
        let parent = spend(&[output_of(&mined[0], 0), output_of(&mined[1], 1)], &[1400]);
        let subject = spend(&[output_of(&parent, 0)], &[1000, 300]);
        Self { mined, parent, subject }
    }

    fn ancestry(&self) -> Ancestry {
        let [first, second] = &self.mined;
        Ancestry {
            transactions: vec![self.parent.clone(), second.clone(), first.clone()],
            bumps: mine(&[first, second]),
            held: Vec::new(),
        }
    }

    fn beef(&self, version: BeefVersion) -> Beef {
        Beef::new(version, self.subject.clone(), self.ancestry()).unwrap()
    }

    fn root(&self) -> MerkleRoot {
        mine(&[&self.mined[0], &self.mined[1]])[0].root()
    }
}

fn verify(beef: &Beef, root: MerkleRoot) -> Result<(), BeefVerificationError> {
    beef.verify(TIP, |height, claimed| (height == HEIGHT).then_some(claimed == root), |_| None)
}

/// Makes a BEEF of these entries with the checks that decoded entries pass.
fn checked(
    subject: Option<Txid>,
    bumps: Vec<Bump>,
    entries: Vec<Entry>,
) -> Result<Beef, BeefError> {
    let beef = Beef::checked(V2, subject, bumps, entries);
    if let Ok(beef) = &beef {
        assert_eq!(Beef::from_bytes(&beef.to_bytes()).as_ref(), Ok(beef));
    }
    beef
}

fn entry(transaction: &Transaction, bump: Option<u64>) -> Entry {
    Entry::carried(transaction.txid(), transaction.clone(), bump).unwrap()
}

fn named(txid: Txid) -> Entry {
    Entry { txid, content: Content::TxidOnly }
}

#[test]
fn the_example_of_the_standard() {
    let bytes = hex::decode(EXAMPLE).unwrap();
    let beef = Beef::from_bytes(&bytes).unwrap();
    assert_eq!(beef.to_bytes(), bytes);
    assert_eq!((beef.version(), beef.is_atomic()), (V1, false));
    assert_eq!(beef.subject_txid(), beef.subject().txid());
    assert_eq!(beef.subject().outputs[0].satoshis, 26_172);
    assert!(beef.unmined().eq([(beef.subject_txid(), beef.subject())]));
    let root: MerkleRoot = EXAMPLE_ROOT.parse().unwrap();
    assert!(beef.claimed_roots().into_iter().eq([(814_435, root)]));
    let tip = Tip { height: 814_435, median_time: 0 };
    let has = |root| move |height, claimed| (height == 814_435).then_some(claimed == root);
    let verify = |root| beef.verify(tip, has(root), |_| None);
    assert_eq!(verify(root), Ok(()));
    let wrong = MerkleRoot::from_bytes([0; 32]);
    let refused = BeefVerificationError::WrongRoot { height: 814_435, root };
    assert_eq!(verify(wrong), Err(refused));
    for len in 0..bytes.len() {
        assert!(Beef::from_bytes(&bytes[..len]).is_err(), "cut at {len}");
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    assert_eq!(Beef::from_bytes(&longer), Err(DecodeError::TrailingBytes(1).into()));
}

#[test]
fn every_form_is_read_as_it_was_written() {
    let family = Family::new();
    for version in [V1, V2] {
        let beef = family.beef(version);
        assert_eq!(beef.subject(), &family.subject);
        assert_eq!((beef.bumps().len(), beef.entries.len()), (1, 4));
        let unmined = [&family.parent, &family.subject].map(|each| (each.txid(), each));
        assert!(beef.unmined().eq(unmined));
        let all = [&family.mined[0], &family.mined[1], &family.parent, &family.subject];
        let mut carried: Vec<_> = beef.transactions().collect();
        assert_eq!(carried.len(), all.len());
        carried.retain(|(txid, it)| !all.contains(it) || *txid != it.txid());
        assert_eq!(carried, []);
        let atomic = beef.clone().into_atomic().unwrap();
        assert_eq!((beef.is_atomic(), atomic.is_atomic()), (false, true));
        for beef in [beef, atomic] {
            assert_eq!(Beef::from_bytes(&beef.to_bytes()).as_ref(), Ok(&beef));
            assert_eq!(verify(&beef, family.root()), Ok(()));
        }
    }
}

#[test]
fn what_the_subject_does_not_need_is_left_out() {
    let family = Family::new();
    let mut ancestry = family.ancestry();
    let unrelated = spend(&[elsewhere(9)], &[1]);
    ancestry.bumps.extend(mine(&[&unrelated]));
    ancestry.transactions.push(unrelated);
    ancestry.held.push(Txid::from_bytes([8; 32]));
    assert_eq!(Beef::new(V1, family.subject.clone(), ancestry), Ok(family.beef(V1)));
    let mut ancestry = family.ancestry();
    ancestry.bumps.extend(mine(&[&family.parent]));
    let beef = Beef::new(V1, family.subject.clone(), ancestry).unwrap();
    assert_eq!((beef.bumps().len(), beef.entries.len()), (1, 2), "ancestors of mined ones");
}

#[test]
fn a_transaction_follows_its_ancestors() {
    let family = Family::new();
    let Ancestry { transactions, bumps, .. } = family.ancestry();
    let parents = Ancestry { transactions, bumps, ..Ancestry::default() };
    let ancestors = Beef::new(V2, family.parent.clone(), parents).unwrap();
    let whole = ancestors.clone().into_atomic().unwrap().followed_by(family.subject.clone());
    let whole = whole.unwrap();
    assert!(!whole.is_atomic());
    assert_eq!(whole.subject(), &family.subject);
    assert_eq!(Beef::from_bytes(&whole.to_bytes()), Ok(whole.clone()));
    let txid = family.subject.txid();
    assert_eq!(whole.followed_by(family.subject), Err(BeefError::Twice(txid)));
    let stranger = spend(&[elsewhere(9)], &[1]);
    let lost = ancestors.followed_by(stranger);
    assert!(matches!(lost, Err(BeefError::ParentNotBefore { .. })), "{lost:?}");
}

#[test]
fn unmined_ancestors_are_those_that_the_subject_spends_from() {
    let family = Family::new();
    let unrelated = spend(&[output_of(&family.mined[0], 1)], &[500]);
    let [first, second] = family.mined.each_ref().map(|mined| entry(mined, Some(0)));
    let unmined = [&family.parent, &unrelated, &family.subject].map(|each| entry(each, None));
    let entries = [first, second].into_iter().chain(unmined).collect();
    let beef = checked(None, family.beef(V2).bumps().to_vec(), entries).unwrap();
    assert!(beef.unmined_ancestors().eq([(family.parent.txid(), &family.parent)]));
    assert_eq!(beef.unmined().count(), 3);
}

#[test]
fn a_beef_of_more_than_ten_million_bytes_is_not_read() {
    let mut bytes = vec![0; Beef::MAX_LEN];
    assert_eq!(Beef::from_bytes(&bytes), Err(BeefError::UnknownVersion([0; 4])));
    bytes.push(0);
    assert_eq!(Beef::from_bytes(&bytes), Err(BeefError::TooLong(10_000_001)));
}

#[test]
fn an_ancestry_with_a_gap_makes_no_beef() {
    let family = Family::new();
    for missing in 0..3 {
        let mut ancestry = family.ancestry();
        let missing = ancestry.transactions.remove(missing).txid();
        let beef = Beef::new(V2, family.subject.clone(), ancestry.clone());
        assert!(
            matches!(beef, Err(BeefError::ParentNotBefore { parent, .. }) if parent == missing),
            "{beef:?}"
        );
        ancestry.held.push(missing);
        let beef = Beef::new(V2, family.subject.clone(), ancestry.clone()).unwrap();
        assert!(beef.txid_only().eq([missing]));
        let beef = Beef::new(V1, family.subject.clone(), ancestry);
        assert_eq!(beef, Err(BeefError::TxidOnlyInV1(missing)));
    }
    let ancestry = Ancestry { bumps: Vec::new(), ..family.ancestry() };
    let beef = Beef::new(V2, family.subject.clone(), ancestry);
    assert!(matches!(beef, Err(BeefError::ParentNotBefore { .. })), "{beef:?}");
}

#[test]
fn a_transaction_known_by_its_id_must_be_held() {
    let family = Family::new();
    let txid = family.parent.txid();
    let ancestry = Ancestry { held: vec![txid], ..family.ancestry() };
    let beef = Beef::new(V2, family.subject.clone(), ancestry).unwrap();
    assert_eq!((beef.entries.len(), beef.bumps().len()), (2, 0));
    let verify = |held: Option<&Transaction>| {
        beef.verify(TIP, |_, _| None, |asked| held.filter(|_| *asked == txid))
    };
    assert_eq!(verify(Some(&family.parent)), Ok(()));
    assert_eq!(verify(None), Err(BeefVerificationError::NotHeld(txid)));
    let poorer = spend(&[elsewhere(1)], &[1299]);
    assert!(matches!(verify(Some(&poorer)), Err(BeefVerificationError::CreatesCoins { .. })));
}

#[test]
fn transactions_that_do_not_fit_together_are_refused() {
    let family = Family::new();
    let bumps = family.beef(V2).bumps().to_vec();
    let [first, second] = family.mined.each_ref().map(|mined| entry(mined, Some(0)));
    let (parent, subject) = (entry(&family.parent, None), entry(&family.subject, None));
    let all = [&first, &second, &parent, &subject].map(Clone::clone);
    let read = |entries: &[&Entry]| {
        checked(None, bumps.clone(), entries.iter().map(|entry| (*entry).clone()).collect())
    };
    assert!(read(&all.each_ref()).is_ok());
    assert!(read(&[&second, &first, &parent, &subject]).is_ok(), "mined ones stand in any order");

    let not_before = |txid: &Entry, parent: &Entry| {
        Err(BeefError::ParentNotBefore { txid: txid.txid, parent: parent.txid })
    };
    assert_eq!(read(&[&first, &second, &subject, &parent]), not_before(&subject, &parent));
    assert_eq!(read(&[&first, &parent, &subject]), not_before(&parent, &second));
    assert_eq!(read(&[&first, &second, &subject]), not_before(&subject, &parent));
    assert_eq!(read(&[&first, &second, &first]), Err(BeefError::Twice(first.txid)));
    let first_named = named(first.txid);
    assert_eq!(read(&[&first_named, &first]), Err(BeefError::Twice(first.txid)));
    assert_eq!(read(&[]), Err(BeefError::NoSubject));
    assert_eq!(read(&[&first_named]), Err(BeefError::NoSubject));

    let not_in = |entry: &Entry, bump| Err(BeefError::NotInBump { txid: entry.txid, bump });
    let elsewhere = [1, u64::MAX].map(|bump| entry(&family.mined[0], Some(bump)));
    assert_eq!(read(&[&elsewhere[0]]), not_in(&first, 1));
    assert_eq!(read(&[&elsewhere[1]]), not_in(&first, u64::MAX));
    let parent_mined = entry(&family.parent, Some(0));
    assert_eq!(read(&[&parent_mined]), not_in(&parent, 0));

    for hollow in [spend(&[], &[1]), spend(&[output_of(&family.mined[0], 0)], &[])] {
        for bump in [None, Some(0)] {
            let hollow = entry(&hollow, bump);
            assert_eq!(read(&[&first, &hollow]), Err(BeefError::Hollow(hollow.txid)));
        }
    }
}

#[test]
fn an_atomic_beef_holds_its_subject_and_its_ancestors() {
    let family = Family::new();
    let bumps = family.beef(V2).bumps().to_vec();
    let entries: Vec<_> = family.beef(V2).entries;
    let txids: Vec<_> = entries.iter().map(|entry| entry.txid).collect();
    let (subject, absent) = (family.subject.txid(), Txid::from_bytes([9; 32]));
    let read = |subject, entries: &[Entry]| checked(Some(subject), bumps.clone(), entries.to_vec());
    assert!(read(subject, &entries).is_ok());
    assert_eq!(read(absent, &entries), Err(BeefError::NoSubject));
    assert_eq!(read(txids[2], &entries), Err(BeefError::Unrelated(subject)));
    assert_eq!(read(txids[2], &entries[..3]).unwrap().subject(), &family.parent);
    let with_stranger = [&[named(absent)], entries.as_slice()].concat();
    assert_eq!(read(subject, &with_stranger), Err(BeefError::Unrelated(absent)));
    let beef = checked(None, bumps.clone(), with_stranger).unwrap();
    assert_eq!(beef.into_atomic(), Err(BeefError::Unrelated(absent)));
    let only_named = [&entries[..2], &[named(txids[2])]].concat();
    assert_eq!(read(txids[2], &only_named), Err(BeefError::NoSubject));
}

#[test]
fn what_the_chain_does_not_bear_out_is_refused() {
    let family = Family::new();
    let beef = family.beef(V2);
    let root = family.root();
    let other = MerkleRoot::from_bytes([1; 32]);
    let wrong = BeefVerificationError::WrongRoot { height: HEIGHT, root };
    assert_eq!(verify(&beef, other), Err(wrong.clone()));
    let above = BeefVerificationError::AboveTip { height: HEIGHT };
    assert_eq!(beef.verify(TIP, |_, _| None, |_| None), Err(above));

    // A path that no transaction uses has to be right too.
    let unrelated = spend(&[elsewhere(9)], &[1]);
    let bumps = [beef.bumps.clone(), mine(&[&unrelated])].concat();
    let unused = checked(None, bumps, beef.entries.clone()).unwrap();
    let claimed: Vec<_> = unused.claimed_roots().into_iter().collect();
    assert_eq!(claimed.len(), 2);
    assert!(claimed.contains(&(HEIGHT, root)));
    assert!(matches!(verify(&unused, root), Err(BeefVerificationError::WrongRoot { .. })));
    // The caller may vouch for several roots of a height: one block took the other's place.
    assert_eq!(unused.verify(TIP, |at, _| (at == HEIGHT).then_some(true), |_| None), Ok(()));

    // A certain error is reported before one that a higher tip may resolve.
    let subject = spend(&[output_of(&family.parent, 0)], &[1401]);
    let greedy = Beef::new(V2, subject, family.ancestry()).unwrap();
    let refused = greedy.verify(TIP, |_, _| None, |_| None);
    assert!(matches!(refused, Err(BeefVerificationError::CreatesCoins { .. })), "{refused:?}");
}

#[test]
fn no_transaction_creates_coins() {
    let family = Family::new();
    let spent = [output_of(&family.mined[0], 0), output_of(&family.mined[1], 0)];
    for (amounts, is_right) in [
        (&[2000][..], true),
        (&[0], true),
        (&[2001], false),
        (&[1999, 1, 1], false),
        (&[u64::MAX, 2001], false),
        (&[u64::MAX, 1], false),
        (&[u64::MAX, u64::MAX, u64::MAX], false),
    ] {
        let subject = spend(&spent, amounts);
        let txid = subject.txid();
        let beef = Beef::new(V1, subject, family.ancestry()).unwrap();
        let outputs = amounts.iter().map(|satoshis| u128::from(*satoshis)).sum();
        let refused = BeefVerificationError::CreatesCoins { txid, inputs: 2000, outputs };
        let expected = if is_right { Ok(()) } else { Err(refused) };
        assert_eq!(verify(&beef, family.root()), expected, "{amounts:?}");
    }
}

#[test]
fn outputs_are_there_and_are_spent_once() {
    let family = Family::new();
    let beef_of = |subject| Beef::new(V1, subject, family.ancestry()).unwrap();
    for vout in [2, u32::MAX] {
        let previous_output = output_of(&family.mined[0], vout);
        let subject = spend(&[previous_output], &[0]);
        let refused = BeefVerificationError::NoSuchOutput { txid: subject.txid(), previous_output };
        assert_eq!(verify(&beef_of(subject), family.root()), Err(refused));
    }
    let once = output_of(&family.mined[0], 0);
    let in_parent_too = output_of(&family.parent, 0);
    for subject in [spend(&[once, once], &[0]), spend(&[in_parent_too, once], &[0])] {
        let refused = BeefVerificationError::SpentTwice(once);
        assert_eq!(verify(&beef_of(subject), family.root()), Err(refused));
    }
}

#[test]
fn all_that_is_unmined_is_final_in_the_next_block() {
    let family = Family::new();
    for (lock_time, sequence, is_final) in [
        (TIP.height, 0, true),
        (TIP.height + 1, 0, false),
        (TIP.height + 1, FINAL, true),
        (TIP.median_time - 1, 0, true),
        (TIP.median_time, 0, false),
        (TIP.median_time, FINAL, true),
    ] {
        let mut parent = Transaction { lock_time, ..family.parent.clone() };
        parent.inputs[0].sequence = sequence;
        let mut ancestry = family.ancestry();
        ancestry.transactions.push(parent.clone());
        let child = spend(&[output_of(&parent, 0)], &[1]);
        let not_final = BeefVerificationError::NotFinal(parent.txid());
        let expected = if is_final { Ok(()) } else { Err(not_final) };
        for subject in [parent, child] {
            let beef = Beef::new(V1, subject, ancestry.clone()).unwrap();
            assert_eq!(verify(&beef, family.root()), expected, "{lock_time} {sequence}");
        }
    }
}

#[test]
fn as_many_transactions_in_a_row_as_there_may_be() {
    let mined = spend(&[elsewhere(1)], &[5000]);
    let bumps = mine(&[&mined]);
    let mut transactions = vec![mined];
    for _ in 1..Beef::MAX_TRANSACTIONS + 1 {
        let previous = transactions.last().unwrap();
        let child = spend(&[output_of(previous, 0)], &[previous.outputs[0].satoshis - 1]);
        transactions.push(child);
    }
    let root = bumps[0].root();
    let subject = transactions.pop().unwrap();
    let ancestry = Ancestry { transactions: transactions.clone(), bumps, held: Vec::new() };
    let too_many = BeefError::TooMany(1001, "transactions");
    assert_eq!(Beef::new(V1, subject, ancestry.clone()), Err(too_many));
    let beef = Beef::new(V1, transactions.pop().unwrap(), ancestry).unwrap().into_atomic().unwrap();
    assert_eq!(beef.unmined().count(), 999);
    let read = Beef::from_bytes(&beef.to_bytes()).unwrap();
    assert_eq!(verify(&read, root), Ok(()));
}

#[test]
fn lengths_and_numbers_have_bounds() {
    let read = |text: &str| Beef::from_bytes(&hex::decode(text).unwrap());
    let too_long = [hex::decode("0100beef").unwrap(), vec![0; Beef::MAX_LEN - 3]].concat();
    assert_eq!(Beef::from_bytes(&too_long), Err(BeefError::TooLong(Beef::MAX_LEN + 1)));
    for marker in ["0000beef", "0300beef", "01000000", "efbe0001"] {
        let found = hex::decode(marker).unwrap().try_into().unwrap();
        assert_eq!(read(marker), Err(BeefError::UnknownVersion(found)));
    }
    let atomic_in_atomic = format!("01010101{}01010101", "00".repeat(32));
    assert_eq!(read(&atomic_in_atomic), Err(BeefError::UnknownVersion([1; 4])));
    for (count, announced) in [
        ("fde903", 1001),
        ("fe40420f00", 1_000_000),
        ("feffffffff", 0xffff_ffff),
        ("ffffffffffffffffff", u64::MAX),
    ] {
        let bumps = read(&format!("0200beef{count}"));
        assert_eq!(bumps, Err(BeefError::TooMany(announced, "merkle paths")));
        let transactions = read(&format!("0200beef00{count}"));
        assert_eq!(transactions, Err(BeefError::TooMany(announced, "transactions")));
    }
    for text in ["0200beeffde803", "0200beef00fde803", "0200beef00fde80302"] {
        assert!(matches!(read(text), Err(BeefError::Decode(_) | BeefError::Bump { .. })), "{text}");
    }
    assert_eq!(read("0200beef000103"), Err(BeefError::UnknownKind(3)));
    let empty = "01000000000000000000";
    assert_eq!(read(&format!("0100beef0001{empty}02")), Err(BeefError::UnknownKind(2)));
    let bump = read("0200beef01070100");
    let error = BumpError::MissingNode { level: 0, offset: 0 };
    assert_eq!(bump, Err(BeefError::Bump { index: 0, error }));
}
