use std::fs;
use std::sync::Arc;

use bsv_invoicing::ledger::BeginAccount;
use bsv_invoicing::ledger::queries::GetAccounts;
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::{Error, Wallet, WalletSettings};
use bsv_tx::{Network, PublicKey};

use crate::support::{Place, draft, user_named};

const SEED: &str = "wallet.seed";

/// Words of the standard's test vectors.
const WORDS: &str = "legal winner thank year wave sausage worth useful legal winner thank year \
                     wave sausage worth useful legal winner thank year wave sausage worth title";

#[tokio::test]
async fn a_seed_is_made_once() {
    let place = Place::new();
    let wallet = place.open().await;
    let words = wallet.export_seed().await.unwrap().words();
    let file = fs::read(place.seed_file()).unwrap();
    drop(wallet);
    for _ in 0..2 {
        assert_eq!(*place.open().await.export_seed().await.unwrap().words(), *words);
    }
    assert_eq!(fs::read(place.seed_file()).unwrap(), file);
    let other = Place::new().open().await.export_seed().await.unwrap();
    assert_ne!(*other.words(), *words);
}

#[tokio::test]
async fn an_existing_seed_is_used() {
    let place = Place::new();
    place.keystore().insert(SEED, WORDS.as_bytes()).unwrap();
    let wallet = place.open().await;
    assert_eq!(*wallet.export_seed().await.unwrap().words(), WORDS);
    drop(wallet);
    place.open().await;
}

#[tokio::test]
async fn the_key_of_a_user_is_the_same_for_ever() {
    let place = Place::new();
    let wallet = place.open().await;
    let mut users = Vec::new();
    for name in ["Ada", "Grace", "Ada"] {
        users.push(wallet.create_user(user_named(name), None).await.unwrap());
    }
    let keys: Vec<PublicKey> = users.iter().map(|user| user.pki).collect();
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
    assert_eq!(users.iter().map(|user| user.id).collect::<Vec<_>>(), [1, 2, 3]);
    drop(wallet);
    for _ in 0..2 {
        let wallet = place.open().await;
        for user in &users {
            assert_eq!(wallet.user(user.id).await.unwrap(), *user);
        }
    }
    let other = Place::new();
    let other = other.open().await.create_user(user_named("Ada"), None).await.unwrap();
    assert_ne!(other.pki, keys[0]);
}

/// The expected keys were made by `tests/vectors/user_key.py`.
#[tokio::test]
async fn keys_of_users_come_from_the_words_alone() {
    for network in [Network::Regtest, Network::Livenet] {
        let place = Place::new();
        place.keystore().insert(SEED, WORDS.as_bytes()).unwrap();
        let settings = WalletSettings::new(network);
        let wallet =
            Wallet::open(Arc::new(place.store()), place.keystore(), settings).await.unwrap();
        for expected in [
            "0355e03c2b2cb6447b26abc769f15f1f69ab7b84f8e128f0339aa7eff37fe4d1f6",
            "03d281664cad0f440a8da84af576298bfd5c71b89031023c9ec462ed9ca710be73",
        ] {
            let user = wallet.create_user(user_named("Ada"), None).await.unwrap();
            assert_eq!(user.pki.to_string(), expected);
        }
    }
}

/// The expected keys were made by `tests/vectors/user_key.py`.
#[tokio::test]
async fn keys_of_users_begin_anew_in_a_new_account_and_old_ones_stay() {
    let place = Place::new();
    place.keystore().insert(SEED, WORDS.as_bytes()).unwrap();
    let wallet = place.open().await;
    wallet.create_user(user_named("Ada"), None).await.unwrap();
    wallet.create_user(user_named("Grace"), None).await.unwrap();
    drop(wallet);
    for (account, users) in [(300, 2), (301, 1)] {
        place.store().execute(BeginAccount { account: 300, is_behind: false }).await.unwrap();
        let wallet = place.open().await;
        assert_eq!(wallet.store().get(GetAccounts).await.unwrap().last().unwrap().0, account);
        for _ in 0..users {
            wallet.create_user(user_named("Edsger"), None).await.unwrap();
        }
    }
    let wallet = place.open().await;
    for (id, expected) in (1..).zip([
        "0355e03c2b2cb6447b26abc769f15f1f69ab7b84f8e128f0339aa7eff37fe4d1f6",
        "03d281664cad0f440a8da84af576298bfd5c71b89031023c9ec462ed9ca710be73",
        "0287995436870625e4f2a930f712fc6e86537a45069d4d6ce2613abc094355d00b",
        "03a38b1d31a3a63c6e19db26290d14d1436ffe310712fa7fa5f3d72acae5b6d3ae",
        "0213d4e8c52e3f2e6bdf97ef114940f8afe2b64a1164e56fff80d882baf8782208",
    ]) {
        assert_eq!(wallet.user(id).await.unwrap().pki.to_string(), expected, "{id}");
    }
}

#[tokio::test]
async fn a_wallet_does_not_open_without_its_seed() {
    let place = Place::new();
    let wallet = place.open().await;
    let invoice = wallet.create_invoice(draft(1), None).await.unwrap();
    fs::rename(place.seed_file(), place.path("away")).unwrap();
    let missing = wallet.export_seed().await.unwrap_err();
    assert!(matches!(missing, Error::SeedMissing), "{missing}");
    drop(wallet);
    for _ in 0..2 {
        let missing = place.try_open().await.unwrap_err();
        assert!(matches!(missing, Error::SeedMissing), "{missing}");
        assert!(!place.seed_file().exists());
    }
    fs::rename(place.path("away"), place.seed_file()).unwrap();
    assert_eq!(place.open().await.invoice(invoice.id.as_str()).await.unwrap(), invoice);
}

#[tokio::test]
async fn a_wallet_does_not_open_with_the_seed_of_another() {
    let place = Place::new();
    drop(place.open().await);
    fs::remove_file(place.seed_file()).unwrap();
    place.keystore().insert(SEED, WORDS.as_bytes()).unwrap();
    for _ in 0..2 {
        let other = place.try_open().await.unwrap_err();
        assert!(matches!(other, Error::OtherSeed), "{other}");
    }
}

#[tokio::test]
async fn a_damaged_seed_is_an_error_that_does_not_show_the_seed() {
    let short = WORDS.split(' ').take(12).collect::<Vec<_>>().join(" ");
    // These are twelve words with a right checksum.
    let twelve = format!("{} {}", "abandon ".repeat(11).trim_end(), "about");
    for words in [
        "",
        "legal",
        &short,
        &twelve,
        &WORDS.replace("title", "legal"),
        &WORDS.replace("winner", "winer"),
        &WORDS.to_uppercase(),
    ] {
        let place = Place::new();
        place.keystore().insert(SEED, words.as_bytes()).unwrap();
        let error = place.try_open().await.unwrap_err();
        assert!(matches!(error, Error::BadSeed), "{words}: {error}");
        let told = format!("{error} {error:?}");
        assert!(!["legal", "winner", "abandon"].iter().any(|word| told.contains(word)), "{told}");
    }
    let place = Place::new();
    place.keystore().insert(SEED, &[0xff; 100]).unwrap();
    assert!(matches!(place.try_open().await.unwrap_err(), Error::BadSeed));
}

#[tokio::test]
async fn a_damaged_seed_file_is_an_error_and_is_kept() {
    let place = Place::new();
    drop(place.open().await);
    let right = fs::read(place.seed_file()).unwrap();
    let mut flipped = right.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for damaged in [&b""[..], b"not a key file", &right[..right.len() - 1], &flipped] {
        fs::write(place.seed_file(), damaged).unwrap();
        let error = place.try_open().await.unwrap_err();
        assert!(matches!(error, Error::Keystore(_)), "{error}");
        assert_eq!(fs::read(place.seed_file()).unwrap(), damaged);
    }
    fs::write(place.seed_file(), right).unwrap();
    place.open().await;
}

#[tokio::test]
async fn no_secret_is_ever_printed() {
    let place = Place::new();
    place.keystore().insert(SEED, WORDS.as_bytes()).unwrap();
    let wallet = place.open().await;
    let seed = wallet.export_seed().await.unwrap();
    for printed in [format!("{wallet:?} {seed:?}"), format!("{wallet:#?} {seed:#?}")] {
        assert!(printed.contains("WalletSeed"), "{printed}");
        let words = printed.split(|c: char| !c.is_alphanumeric());
        for word in words {
            assert!(!WORDS.split(' ').any(|secret| secret == word), "{printed}");
        }
    }
}
