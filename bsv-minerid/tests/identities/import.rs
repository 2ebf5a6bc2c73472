use std::fs;
use std::path::Path;

use bsv_minerid::import::{Import, VctxFinding};
use bsv_minerid::store::{RedbIdentityStore, Vctx};
use bsv_minerid::{Error, MinerIds};
use bsv_tx::{ExtendedPrivateKey, PublicKey};

use crate::support::{Place, alias, begin, extended_key, named_keys};

const WIF: &str = "L3d7a2ekpLcb3Dtfey3PWXVA7nFoEzDapBs6RedZ9GFcqHJxtgu4";
const TXID: &str = "6839008199026098cc78bf5f34c9a6bdf7a8009c9f019f8399c7ca1945b4a4ff";

/// Writes the home directory of an older generator. The directory has the alias `a` with one key,
/// and `b`, which was rotated once. Answers the keys.
pub(crate) fn write_home(home: &Path) -> [ExtendedPrivateKey; 3] {
    let keys = [extended_key(), extended_key(), extended_key()];
    for (name, key) in ["a_1", "b_1", "b_2"].iter().zip(&keys) {
        write(home, &format!(".keystore/{name}.key"), key.as_text());
    }
    for (name, aliases) in
        [("a", r#"[{"name":"a_1"}]"#), ("b", r#"[{"name":"b_1"},{"name":"b_2"}]"#)]
    {
        let client = format!(".minerid-client/{name}");
        write(home, &format!("{client}/aliases"), aliases);
        write(home, &format!("{client}/vctx"), &format!(r#"{{"prv":"{WIF}","txid":"{TXID}"}}"#));
    }
    write(home, ".minerid-client/b/config", r#"{"name":"b"}"#);
    keys
}

fn write(home: &Path, path: &str, content: &str) {
    let path = home.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn aliases(ids: &MinerIds<RedbIdentityStore>) -> Vec<String> {
    ids.all().iter().map(|identity| identity.alias().to_string()).collect()
}

fn public_key(key: &ExtendedPrivateKey) -> PublicKey {
    key.private_key().public_key()
}

#[test]
fn a_home_is_taken_over_once() {
    let place = Place::new();
    let home = place.path("home");
    let keys = write_home(&home).map(|key| public_key(&key));
    let ids = place.open();
    let taken_over = Import::TakenOver(VctxFinding::NotAsked);
    let imported = [(alias("a"), taken_over), (alias("b"), taken_over)];
    assert_eq!(ids.import_without_node(&home, None).unwrap(), imported);
    let check = |ids: &MinerIds<RedbIdentityStore>| {
        assert_eq!(named_keys(ids, "a"), [keys[0], keys[0]]);
        assert_eq!(named_keys(ids, "b"), [keys[1], keys[2]]);
        let b = ids.get("b").unwrap();
        assert!(b.is_valid());
        assert_eq!(b.record().contact().to_json(), r#"{"name":"b"}"#);
        let outpoint = format!("{TXID}:0").parse().unwrap();
        assert!(
            matches!(b.record().vctx(), Some(Vctx::Recorded(recorded, _)) if *recorded == outpoint)
        );
    };
    check(&ids);
    let known = Import::Known { has_keys: true };
    assert_eq!(
        ids.import_without_node(&home, None).unwrap(),
        [(alias("a"), known), (alias("b"), known)]
    );
    drop(ids);
    let ids = place.open();
    check(&ids);
    let next = ids.rotate_without_node(&alias("b"), false).unwrap();
    assert_eq!(named_keys(&ids, "b"), [keys[2], next]);
}

#[test]
fn an_import_cut_short_after_its_keys_is_repeated() {
    let place = Place::new();
    let home = place.path("home");
    let keys = write_home(&home);
    place.keystore().insert("b_2", keys[2].as_text().as_bytes()).unwrap();
    let ids = place.open();
    ids.import_without_node(&home, None).unwrap();
    assert_eq!(named_keys(&ids, "b"), [public_key(&keys[1]), public_key(&keys[2])]);
}

#[test]
fn nothing_is_imported_where_one_key_is_taken_and_known_aliases_are_passed_over() {
    let place = Place::new();
    let home = place.path("home");
    write_home(&home);
    place.keystore().insert("b_2", extended_key().as_text().as_bytes()).unwrap();
    let taken = fs::read(place.key_file("b_2")).unwrap();
    let ids = place.open();
    let error = ids.import_without_node(&home, None).unwrap_err();
    assert!(matches!(&error, Error::KeyTaken(name) if name == "b_2"), "{error}");
    assert_eq!(fs::read(place.key_file("b_2")).unwrap(), taken);
    assert!(ids.all().is_empty());
    drop(ids);

    let other_place = Place::new();
    let ids = other_place.open();
    let key = begin(&ids, "b");
    let outcomes = ids.import_without_node(&home, None).unwrap();
    let known = Import::Known { has_keys: false };
    let taken_over = Import::TakenOver(VctxFinding::NotAsked);
    assert_eq!(outcomes, [(alias("a"), taken_over), (alias("b"), known)]);
    assert!(!other_place.key_file("b_2").exists());
    assert_eq!(aliases(&ids), ["a", "b"]);
    drop(ids);
    assert_eq!(named_keys(&other_place.open(), "b"), [key, key]);
    assert!(place.open().all().is_empty());
}

#[test]
fn what_a_home_has_beside_its_aliases_is_passed_over() {
    let place = Place::new();
    let home = place.path("home");
    write_home(&home);
    write(&home, ".minerid-client/settings.json", "{}");
    write(&home, ".minerid-client/a/notes", "mine");
    write(&home, ".keystore/other_1.key", "not a key");
    fs::remove_file(home.join(".minerid-client/a/vctx")).unwrap();
    let ids = place.open();
    ids.import_without_node(&home, None).unwrap();
    assert_eq!(aliases(&ids), ["a", "b"]);
    let error = ids.get("a").unwrap().output_script(1).unwrap_err();
    assert!(matches!(error, Error::NoVctx(_)), "{error}");
}

#[test]
fn the_file_of_a_home_that_is_not_as_it_should_be_is_named() {
    let place = Place::new();
    let ids = place.open();
    let names = |name: &str| format!(r#"[{{"name":"{name}"}}]"#);
    let vctx = |prv: &str, txid: &str| format!(r#"{{"prv":"{prv}","txid":"{txid}"}}"#);
    let (b_aliases, b_vctx) = (".minerid-client/b/aliases", ".minerid-client/b/vctx");
    let (b_2, config) = (".keystore/b_2.key", ".minerid-client/b/config");
    // The file that is written, its contents (`None` removes it), and the file that the error must
    // name.
    let mut faults = vec![
        (b_aliases, None, b_aliases),
        (b_aliases, Some("[]".to_owned()), b_aliases),
        (b_aliases, Some(String::new()), b_aliases),
        (b_aliases, Some("{}".to_owned()), b_aliases),
        (b_aliases, Some(r#"[{"name":1}]"#.to_owned()), b_aliases),
        (b_aliases, Some(r#"[{"name":"b_1"},{"name":"b_1"}]"#.to_owned()), b_aliases),
        (b_aliases, Some(names("b_3")), ".keystore/b_3.key"),
        (b_2, None, b_2),
        (b_2, Some(String::new()), b_2),
        (b_2, Some(extended_key().as_text()[1..].to_owned()), b_2),
        (b_2, Some("x".repeat((1 << 20) + 1)), b_2),
        (b_vctx, Some("{}".to_owned()), b_vctx),
        (b_vctx, Some(vctx(&WIF.replace('L', "K"), TXID)), b_vctx),
        (b_vctx, Some(vctx(WIF, &TXID[1..])), b_vctx),
        (b_vctx, Some(vctx(WIF, &TXID.replace('6', "g"))), b_vctx),
        (config, Some("[]".to_owned()), config),
        (config, Some(r#"{"name":"\ud800"}"#.to_owned()), config),
        (
            ".minerid-client/b/minerIdAliases",
            Some("[]".to_owned()),
            ".minerid-client/b/minerIdAliases",
        ),
        (".minerid-client/b c/aliases", Some("[]".to_owned()), ".minerid-client/b c"),
        (".minerid-client/.b/aliases", Some("[]".to_owned()), ".minerid-client/.b"),
    ];
    for name in [
        "",
        "b",
        "b_",
        "a_1",
        "c_1",
        "b_01",
        "b_+1",
        "b_-1",
        "b_x",
        "b_0",
        "b_4294967295",
        "b_4294967296",
        "../b_1",
        "b_1/../b_1",
        "b_1.key",
        "B_1",
    ] {
        faults.push((b_aliases, Some(names(name)), b_aliases));
    }
    for (number, (path, content, named)) in faults.into_iter().enumerate() {
        let home = place.path(&format!("home{number}"));
        write_home(&home);
        match &content {
            Some(content) => write(&home, path, content),
            None => fs::remove_file(home.join(path)).unwrap(),
        }
        let imported = ids.import_without_node(&home, None);
        let is_named =
            matches!(&imported, Err(Error::Import { path, .. }) if *path == home.join(named));
        assert!(is_named, "{path} {content:?}: {imported:?}");
        assert!(ids.all().is_empty());
        assert_eq!(fs::read_dir(place.path("keystore")).unwrap().count(), 2);
    }
}

#[test]
fn a_directory_that_is_no_home_is_named() {
    let place = Place::new();
    let ids = place.open();
    let home = place.path("home");
    for made in ["", ".minerid-client"] {
        fs::create_dir_all(home.join(made)).unwrap();
        let error = ids.import_without_node(&home, None).unwrap_err();
        let is_named = matches!(&error, Error::Import { path, .. } if path.starts_with(&home));
        assert!(is_named, "{error}");
    }
}
