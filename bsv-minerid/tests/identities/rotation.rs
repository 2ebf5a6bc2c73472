use bsv_minerid::formats::BlockBindJob;
use bsv_minerid::store::{Exposure, IdentityRecord, IdentityStore, RedbIdentityStore, Vctx};
use bsv_minerid::{CanonicalJson, Error, JobData, MinerContact, MinerIds};
use bsv_tx::{BlockHash, PrivateKey, Txid};

use crate::support::{COINBASE2, Place, alias, begin, named_keys, vctx, verified};

#[test]
fn each_key_is_vouched_for_by_the_one_before_until_the_next_rotation() {
    let place = Place::new();
    let ids = place.open();
    let mut previous = begin(&ids, "pool");
    let mut current = previous;
    assert_eq!(named_keys(&ids, "pool"), [current, current]);
    for number in 2..5 {
        (previous, current) = (current, ids.rotate_without_node(&alias("pool"), false).unwrap());
        assert_ne!(previous, current);
        let identity = ids.get("pool").unwrap();
        for height in [1, 800_000, i32::MAX as u32] {
            let document = verified(&identity.output_script(height).unwrap());
            assert_eq!([document.previous_miner_id, document.miner_id], [previous, current]);
            assert_eq!((document.height, document.vctx), (height, vctx()));
        }
        assert_eq!(identity.public_key(), current);
        assert_eq!(identity.record().current_key().number, number);
        let digest = [7; 32];
        let (key, signature) = identity.sign_and_name_key(&digest).unwrap();
        assert_eq!(key, current);
        assert!(key.verify(&digest, &signature));
    }
    let record = ids.get("pool").unwrap().record();
    drop(ids);
    let ids = place.open();
    assert_eq!(ids.get("pool").unwrap().record(), record);
    assert_eq!(named_keys(&ids, "pool"), [previous, current]);
}

#[test]
fn an_identity_is_valid_unless_its_rotation_was_not_handed_out_yet() {
    let place = Place::new();
    let ids = place.open();
    begin(&ids, "pool");
    let is_valid = || ids.get("pool").unwrap().is_valid();
    assert!(is_valid());
    let coinbase2 = hex::decode(COINBASE2).unwrap();
    let job = JobData::default();
    for hand_out in 0..2 {
        ids.rotate_without_node(&alias("pool"), false).unwrap();
        let identity = ids.get("pool").unwrap();
        assert!(!is_valid());
        identity.preview_output_script(1).unwrap();
        identity.sign(&[1; 32]).unwrap();
        assert!(matches!(identity.output_script(0), Err(Error::InvalidHeight)));
        assert!(matches!(identity.output_script(1 << 31), Err(Error::InvalidHeight)));
        assert!(identity.coinbase2(1, &[], &job).is_err());
        ids.set_contact(&alias("pool"), &MinerContact::default()).unwrap();
        assert!(!is_valid());
        match hand_out {
            // The preview has cached this answer.
            0 => identity.output_script(1).unwrap(),
            _ => identity.coinbase2(1, &coinbase2, &job).unwrap(),
        };
        assert!(is_valid());
        ids.set_contact(&alias("pool"), &MinerContact::default()).unwrap();
        assert!(is_valid());
    }
}

#[test]
fn that_a_document_was_handed_out_is_on_the_disk_before_it_is_answered() {
    let place = Place::new();
    let ids = place.open();
    begin(&ids, "pool");
    begin(&ids, "other");
    ids.rotate_without_node(&alias("pool"), false).unwrap();
    ids.rotate_without_node(&alias("other"), false).unwrap();
    let pool = ids.get("pool").unwrap();
    assert_eq!(pool.output_script_if_noted(1).unwrap(), None);
    let script = pool.output_script(1).unwrap();
    assert_eq!(pool.output_script_if_noted(1).unwrap(), Some(script));
    assert!(place_record(&ids, "pool").is_handed_out() && pool.record().is_handed_out());
    ids.record_hand_outs().unwrap();
    drop((pool, ids));
    let ids = place.open();
    assert!(ids.get("pool").unwrap().is_valid());
    assert!(!ids.get("other").unwrap().is_valid());
}

/// The record on the disk.
fn place_record(ids: &MinerIds<RedbIdentityStore>, name: &str) -> IdentityRecord {
    ids.store().identity(&alias(name)).unwrap()
}

/// A pool that only asks for documents, as in the README.
#[test]
fn a_rotation_after_a_restart_is_announced_to_those_who_have_documents() {
    let coinbase2 = hex::decode(COINBASE2).unwrap();
    for by_coinbase2 in [true, false] {
        let place = Place::new();
        let ids = place.open();
        let first = ids.generate(&alias("pool")).unwrap();
        ids.adopt_vctx(&alias("pool"), vctx(), &PrivateKey::generate().unwrap()).unwrap();
        let pool = ids.get("pool").unwrap();
        let job = JobData::default();
        assert_eq!(pool.coinbase2_if_noted(1, &coinbase2, &job).unwrap(), None);
        match by_coinbase2 {
            true => pool.coinbase2(1, &coinbase2, &job).unwrap(),
            false => pool.output_script(1).unwrap(),
        };
        assert!(pool.coinbase2_if_noted(1, &coinbase2, &job).unwrap().is_some());
        drop((pool, ids));
        let ids = place.open();
        let second = ids.rotate_without_node(&alias("pool"), false).unwrap();
        assert_eq!(named_keys(&ids, "pool"), [first, second]);
    }
}

#[test]
fn an_older_copy_can_refuse_documents_and_references_of_both_generations() {
    let place = Place::new();
    let ids = place.open();
    begin(&ids, "old");
    ids.generate_miner_info(&alias("new"), &place.keystore_named("revocation")).unwrap();
    ids.refuse_if_stale(true);
    let (old, new) = (ids.get("old").unwrap(), ids.get("new").unwrap());
    let coinbase2 = hex::decode(COINBASE2).unwrap();
    let job =
        BlockBindJob { previous_block: BlockHash::from_bytes([1; 32]), merkle_branch: vec![] };
    let txid = Txid::from_bytes([2; 32]);
    let ask = || {
        [
            old.output_script(1),
            old.coinbase2(1, &coinbase2, &JobData::default()),
            new.output_script(1),
            new.preview_coinbase2_with_reference(txid, &coinbase2, &job),
            ids.coinbase2_with_reference("new", txid, &coinbase2, &job),
        ]
    };
    assert!(ask().iter().all(Result::is_ok));
    for identity in [&old, &new] {
        identity.note_stale(true);
    }
    for refused in ask() {
        assert!(matches!(refused, Err(Error::StaleCopy(_))), "{refused:?}");
    }
    ids.refuse_if_stale(false);
    assert!(ask().iter().all(Result::is_ok));
}

#[test]
fn without_a_vctx_there_are_signatures_but_no_documents() {
    let place = Place::new();
    let ids = place.open();
    let key = ids.generate(&alias("pool")).unwrap();
    let identity = ids.get("pool").unwrap();
    let coinbase2 = hex::decode(COINBASE2).unwrap();
    for error in [
        identity.output_script(1).unwrap_err(),
        identity.preview_output_script(1).unwrap_err(),
        identity.coinbase2(1, &coinbase2, &JobData::default()).unwrap_err(),
    ] {
        assert_eq!(error.to_string(), r#"alias "pool" has no VCTx"#);
    }
    assert!(key.verify(&[1; 32], &identity.sign(&[1; 32]).unwrap()));
    assert!(matches!(ids.rotate_without_node(&alias("pool"), false), Ok(next) if next != key));
}

/// Nodes accept no document whose previous key they do not know.
#[test]
fn a_key_of_which_no_document_was_handed_out_vouches_for_none() {
    let place = Place::new();
    let ids = place.open();
    ids.generate(&alias("pool")).unwrap();
    let key = PrivateKey::generate().unwrap();
    ids.adopt_vctx(&alias("pool"), vctx(), &key).unwrap();
    for _ in 0..2 {
        let key = ids.rotate_without_node(&alias("pool"), false).unwrap();
        assert_eq!(named_keys(&ids, "pool"), [key, key]);
        assert_eq!(ids.get("pool").unwrap().record().exposure(), Exposure::Kept);
    }
    drop(ids);
    let ids = place.open();
    ids.get("pool").unwrap().output_script(1).unwrap();
    let first = ids.get("pool").unwrap().public_key();
    let second = ids.rotate_without_node(&alias("pool"), false).unwrap();
    assert_eq!(named_keys(&ids, "pool"), [first, second]);
    assert_eq!(ids.get("pool").unwrap().record().exposure(), Exposure::HandedOut);
    let third = ids.rotate_without_node(&alias("pool"), false).unwrap();
    assert_eq!(named_keys(&ids, "pool"), [second, third]);
}

#[test]
fn a_vctx_made_elsewhere_is_adopted_once() {
    let place = Place::new();
    let ids = place.open();
    let pool = alias("pool");
    let key = PrivateKey::generate().unwrap();
    let unknown = ids.adopt_vctx(&pool, vctx(), &key).unwrap_err();
    assert!(matches!(unknown, Error::UnknownAlias(_)), "{unknown}");
    assert!(!place.key_file("pool_vctx").exists());
    ids.generate(&pool).unwrap();
    ids.adopt_vctx(&pool, vctx(), &key).unwrap();
    ids.adopt_vctx(&pool, vctx(), &key).unwrap();
    let mut other = vctx();
    other.vout += 1;
    let conflict = ids.adopt_vctx(&pool, other, &key).unwrap_err();
    assert!(matches!(conflict, Error::Conflict { .. }), "{conflict}");
    let taken = ids.adopt_vctx(&pool, vctx(), &PrivateKey::generate().unwrap()).unwrap_err();
    assert!(matches!(&taken, Error::KeyTaken(name) if name == "pool_vctx"), "{taken}");
    drop(ids);
    let record = place.open().get("pool").unwrap().record();
    assert!(matches!(record.vctx(), Some(Vctx::Recorded(outpoint, _)) if *outpoint == vctx()));
}

#[test]
fn what_a_miner_tells_about_itself_is_set_key_by_key() {
    let place = Place::new();
    let ids = place.open();
    begin(&ids, "pool");
    let set = |json: &str| {
        ids.set_contact(&alias("pool"), &MinerContact::from_json(json).unwrap()).unwrap()
    };
    set(r#"{"name":"Golden Pool","email":"ops@example.com"}"#);
    set(r#"{"email":"new@example.com","url":"https://example.com/"}"#);
    let mut contact = set("{}");
    let json = r#"{"name":"Golden Pool","email":"new@example.com","url":"https://example.com/"}"#;
    assert_eq!(contact.to_json(), json);
    let document = verified(&ids.get("pool").unwrap().output_script(1).unwrap());
    assert_eq!(document.miner_contact, contact);
    drop(ids);
    let ids = place.open();
    let document = verified(&ids.get("pool").unwrap().output_script(1).unwrap());
    assert_eq!(document.miner_contact, contact);
    contact.set("name", CanonicalJson::string("other"));
    assert_eq!(ids.set_contact(&alias("pool"), &contact).unwrap(), contact);
}
