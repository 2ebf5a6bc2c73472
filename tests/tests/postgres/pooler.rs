//! A pooler between the store and the database.

use std::fs;

use bsv_invoicing::ledger::queries::GetUser;
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::{PostgresOptions, PostgresWalletStore};
use bsv_tests::PgBouncer;

use crate::postgres::server::{create_invoice, second_site, site};
use crate::postgres::{SERVER, open, user};

/// A pooler that keeps no sessions is named before anything is changed, in the database or in what a server remembers.
#[tokio::test]
async fn a_pooler_that_keeps_no_sessions_is_refused_and_costs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("step");
    let open_at = |url: &str| {
        let options = PostgresOptions::from_url(url).unwrap();
        PostgresWalletStore::open(options.for_server(&file))
    };
    let neighbour = open(&SERVER.url("pooled_neighbour"));
    for name in ["Ada", "Bob", "Eve"] {
        neighbour.execute(user(name)).await.unwrap();
    }
    let direct = open_at(&SERVER.url("pooled")).unwrap();
    direct.execute(user("Zoe")).await.unwrap();
    drop(direct);
    let kept = fs::read_to_string(&file).unwrap();
    for pool_mode in ["transaction", "statement"] {
        let pooler = PgBouncer::start(&SERVER, pool_mode);
        for schema in ["pooled_neighbour", "pooled", "pooled_new"] {
            let refused = open_at(&pooler.url(schema)).expect_err("it is refused").to_string();
            assert!(refused.contains("PgBouncer: pool_mode = session"), "{pool_mode}: {refused}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), kept);
    }
    let made = "SELECT count(*) FROM pg_namespace WHERE nspname = 'pooled_new'";
    assert_eq!(SERVER.query(made), "0");
    let direct = open_at(&SERVER.url("pooled")).unwrap();
    assert_eq!(direct.get(GetUser(1)).await.unwrap().unwrap().1.name, "Zoe");
    assert_eq!(neighbour.execute(user("Kim")).await.unwrap().0, 4);
}

#[test]
fn servers_share_a_pooler_that_keeps_sessions() {
    let pooler = PgBouncer::start(&SERVER, "session");
    let [first, neighbour] = ["behind_pooler", "behind_pooler_too"].map(|it| site(&pooler.url(it)));
    let [server, of_neighbour] = [first.server(), neighbour.server()];
    let second = second_site(&first, &pooler.url("behind_pooler"));
    let successor = second.server();
    for server in [&server, &successor, &of_neighbour] {
        create_invoice(server.wallet());
    }
    assert_eq!(SERVER.query("SELECT count(*) FROM behind_pooler.invoices"), "2");
    assert_eq!(SERVER.query("SELECT count(*) FROM behind_pooler_too.invoices"), "1");
    drop(server);
    let server = first.server();
    create_invoice(server.wallet());
    assert_eq!(SERVER.query("SELECT count(*) FROM behind_pooler.invoices"), "3");
}
