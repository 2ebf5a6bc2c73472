//! What lies in the database.

use bsv_invoicing::ledger::queries::GetFigures;
use bsv_invoicing::store::WalletStore;

use crate::postgres::{SERVER, open};

#[tokio::test]
async fn a_schema_is_made_once_and_found_again() {
    let url = SERVER.url("made_once");
    for _ in 0..2 {
        let stores = [open(&url), open(&url)];
        for store in stores {
            assert_eq!(store.get(GetFigures).await.unwrap().last_event, 0);
        }
    }
    assert_eq!(SERVER.query("SELECT count(*) FROM made_once.meta"), "1");
    assert_eq!(SERVER.query("SELECT count(*) FROM made_once.step"), "1");
}
