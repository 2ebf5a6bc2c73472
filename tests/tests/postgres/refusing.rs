//! Databases that a store refuses, and that refuse a store.

use bsv_invoicing::ledger::queries::GetUser;
use bsv_invoicing::ledger::rows::{KeyRange, Table};
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::{PostgresOptions, PostgresWalletStore};
use bsv_tests::{Postgres, tls};

use crate::postgres::{SERVER, open, user};

/// Why a database is refused, or refuses.
fn refusal(url: &str) -> String {
    let options = PostgresOptions::from_url(url).unwrap();
    PostgresWalletStore::open(options).expect_err("it is refused").to_string()
}

#[test]
fn a_schema_of_a_newer_version_or_of_something_else_is_refused() {
    let url = SERVER.url("other");
    drop(open(&url));
    SERVER.query("UPDATE other.meta SET version = 99");
    let refused = refusal(&url);
    assert!(refused.contains("written by a newer version"), "{refused}");
    SERVER.query("UPDATE other.meta SET version = 1, name = 'something else'");
    let refused = refusal(&url);
    assert!(refused.contains("is not a bsv-wallet store"), "{refused}");
    SERVER.query("UPDATE other.meta SET version = 1, name = 'wallet'");
    let refused = refusal(&url);
    assert!(refused.contains("was made by an unreleased build; make a new one"), "{refused}");
}

#[tokio::test]
async fn an_open_store_refuses_a_schema_that_a_newer_version_has_raised() {
    let url = SERVER.url("raised");
    let store = open(&url);
    store.execute(user("Ada")).await.unwrap();
    SERVER.query("UPDATE raised.meta SET version = 99");
    let refused = store.execute(user("Bob")).await.unwrap_err().to_string();
    assert!(refused.contains("written by a newer version"), "{refused}");
    let refused = store.get(GetUser(1)).await.unwrap_err().to_string();
    assert!(refused.contains("written by a newer version"), "{refused}");
    SERVER.query("UPDATE raised.meta SET version = 1");
    assert_eq!(store.execute(user("Eve")).await.unwrap().0, 2, "Bob was not added");
}

/// Two servers run. The one of a later version migrates the schema, and the other one refuses to go on.
#[tokio::test]
async fn a_server_of_a_later_version_migrates_the_schema_and_the_older_one_refuses_to_go_on() {
    const LATER: &[&str] = &["ALTER TABLE @users ADD COLUMN seen bigint NOT NULL DEFAULT 7"];
    let url = SERVER.url("migrated");
    let older = open(&url);
    older.execute(user("Ada")).await.unwrap();
    let open_later = || {
        let options = PostgresOptions::from_url(&url).unwrap().with_migrations(LATER);
        PostgresWalletStore::open(options).unwrap()
    };
    let later = open_later();
    assert_eq!(later.get(GetUser(1)).await.unwrap().unwrap().1.name, "Ada");
    assert_eq!(later.execute(user("Bob")).await.unwrap().0, 2);
    assert_eq!(SERVER.query("SELECT sum(seen) FROM migrated.users"), "14");
    assert_eq!(SERVER.query("SELECT version FROM migrated.meta"), "2");
    let refused = older.execute(user("Eve")).await.unwrap_err().to_string();
    assert!(refused.contains("written by a newer version"), "{refused}");
    let refused = older.get(GetUser(1)).await.unwrap_err().to_string();
    assert!(refused.contains("written by a newer version"), "{refused}");
    assert!(refusal(&url).contains("written by a newer version"));
    drop(later);
    assert_eq!(open_later().execute(user("Eve")).await.unwrap().0, 3, "it is migrated once");
}

/// Rows can be looked at where the store cannot be opened.
#[test]
fn rows_of_a_schema_that_is_refused_are_shown() {
    let url = SERVER.url("peeked");
    let store = open(&url);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(store.execute(user("Ada"))).unwrap();
    drop(store);
    SERVER.query("UPDATE peeked.meta SET version = 99");
    assert!(refusal(&url).contains("written by a newer version"));
    let peek = |table, limit| {
        let options = PostgresOptions::from_url(&url).unwrap();
        PostgresWalletStore::peek(options, KeyRange::all(table), limit).unwrap()
    };
    let [(key, row)] = &peek(Table::Users, 9)[..] else { panic!("there is one") };
    assert!(Table::Users.show(key, row).unwrap().1.contains("Ada"));
    let [(key, row)] = &peek(Table::AllFigures, 9)[..] else { panic!("there is one") };
    assert!(Table::AllFigures.show(key, row).unwrap().1.contains("last_user: 1"));
    assert_eq!(peek(Table::Invoices, 9), []);
}

/// Another wallet in the place of the one that was opened is not taken for a loss of that one.
#[tokio::test]
async fn another_wallet_in_its_place_is_refused_as_such() {
    for users_of_other in [1, 9] {
        let schemas = ["swapped", "other"].map(|it| format!("{it}_{users_of_other}"));
        let [own, other] = schemas.each_ref().map(|schema| open(&SERVER.url(schema)));
        for _ in 0..3 {
            own.execute(user("Ada")).await.unwrap();
        }
        for _ in 0..users_of_other {
            other.execute(user("Bob")).await.unwrap();
        }
        drop(other);
        let [own_schema, other_schema] = &schemas;
        SERVER.query(&format!(
            "ALTER SCHEMA {own_schema} RENAME TO {own_schema}_away; \
             ALTER SCHEMA {other_schema} RENAME TO {own_schema}"
        ));
        for _ in 0..2 {
            let refused = own.execute(user("Eve")).await.unwrap_err().to_string();
            assert!(refused.contains("another wallet"), "{users_of_other}: {refused}");
            let refused = own.get(GetUser(1)).await.unwrap_err().to_string();
            assert!(refused.contains("another wallet"), "{users_of_other}: {refused}");
        }
        let count = SERVER.query(&format!("SELECT count(*) FROM {own_schema}.users"));
        assert_eq!(count, users_of_other.to_string());
    }
}

#[test]
fn a_role_without_rights_is_refused_and_changes_nothing() {
    let url = SERVER.url("guarded");
    drop(open(&url));
    SERVER.query("CREATE ROLE poor LOGIN");
    let of_poor = url.replace("user=postgres", "user=poor");
    let refused = refusal(&of_poor);
    assert!(refused.contains("may not use schema guarded"), "{refused}");
    SERVER.query("GRANT USAGE ON SCHEMA guarded TO poor");
    SERVER.query("GRANT SELECT ON ALL TABLES IN SCHEMA guarded TO poor");
    let dir = tempfile::tempdir().unwrap();
    let options = PostgresOptions::from_url(&of_poor).unwrap();
    let server = PostgresWalletStore::open(options.for_server(dir.path().join("step")));
    let refused = server.expect_err("it may only read").to_string();
    assert!(refused.contains("permission denied"), "{refused}");
    assert_eq!(SERVER.query("SELECT count(*) FROM guarded.claims"), "0");
    let other = SERVER.url("not_for_poor").replace("user=postgres", "user=poor");
    let refused = refusal(&other);
    assert!(refused.contains("permission denied"), "it makes no schema: {refused}");
}

#[test]
fn a_server_with_a_wrong_certificate_is_refused() {
    let server = Postgres::start_with_tls("payee");
    let url = |host: &str, roots: &str| {
        let (port, roots) = (server.port(), tls::file(roots).display().to_string());
        let verify = format!("sslmode=verify-full&sslrootcert={roots}");
        format!("postgresql://postgres@{host}:{port}/postgres?{verify}")
    };
    drop(open(&url("127.0.0.1", "authority.pem")));
    let refused = refusal(&url("127.0.0.1", "shop.pem"));
    assert!(refused.contains("invalid peer certificate"), "an unknown authority: {refused}");
    let refused = refusal(&url("localhost", "authority.pem"));
    assert!(refused.contains("not valid for name"), "another name: {refused}");
}
