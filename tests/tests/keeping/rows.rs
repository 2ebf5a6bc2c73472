//! Rows as they are stored, for people who look for a fault.

use bsv_invoicing::ledger::rows::{Kind, Users};
use bsv_tests::Site;
use redb::{Database, TableDefinition};
use serde_json::{Value, json};

use crate::keeping::scene::create_invoice;

fn rows(site: &Site, arguments: &[&str]) -> Vec<Value> {
    let all = [&["books", "rows"], arguments, &["--json"]].concat();
    let done = site.cli(&all);
    assert_eq!(done.code, 0, "{}", done.stderr);
    serde_json::from_str(&done.stdout).unwrap()
}

#[test]
fn rows_are_shown_also_where_the_server_refuses_to_start() {
    let site = Site::new();
    let server = site.server();
    let ids: Vec<_> = (1..=3).map(|number| create_invoice(server.wallet(), number)).collect();
    let in_use = site.cli(&["books", "rows", "invoices"]);
    assert!(in_use.code == 1 && in_use.stderr.contains("bsv-server"), "{}", in_use.stderr);
    assert_eq!(server.stop(), 0);

    let all = rows(&site, &["invoices"]);
    let shown = |row: &Value| row["row"].as_str().unwrap().to_owned();
    assert!(all.iter().zip(&ids).all(|(row, id)| shown(row).contains(id.as_str())), "{all:?}");
    assert_eq!((&all[1]["key"], &all[1]["keyText"]), (&json!("0000000000000002"), &json!("2")));
    let from_second = rows(&site, &["invoices", "--from", "0000000000000002", "--limit", "1"]);
    assert_eq!(from_second, all[1..2]);
    let text = site.cli_ok(&["books", "rows", "invoices"]);
    assert!(text.lines().count() == 3 && text.contains(&ids[2]), "{text}");

    let database = Database::open(site.network_dir().join("wallet.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    let users: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(Users::TABLE.name());
    transaction.open_table(users).unwrap().insert(&[7][..], &[0xff][..]).unwrap();
    let versions: TableDefinition<'_, &str, u64> = TableDefinition::new("schema_version");
    transaction.open_table(versions).unwrap().insert("bsv-wallet", 99).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let refused = site.cli(&["books", "verify"]);
    assert!(refused.code == 1 && refused.stderr.contains("version 99"), "{}", refused.stderr);
    assert_eq!(rows(&site, &["invoices"]), all);
    let damaged = rows(&site, &["users"]).remove(0);
    assert_eq!((&damaged["key"], &damaged["row"]), (&json!("07"), &json!("ff")));
    assert!(damaged["error"].as_str().unwrap().contains("too short"), "{damaged}");
    let unknown = site.cli(&["books", "rows", "nothing"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("invoices"), "{}", unknown.stderr);
}
