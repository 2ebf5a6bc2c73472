//! Every public future of the libraries is `Send`, so that it can be spawned. The compiler checks
//! that. The test checks that no future is left out.

mod bsv_invoicing;
mod bsv_minerid;
mod bsv_network;
mod bsv_store;

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};

use ::bsv_store::DatabaseBatches;
use bsv_tests::build::workspace;

fn is_send(_: impl Future + Send) {}

fn is_spawnable(_: impl Future + Send + 'static) {}

/// A value of any type, in code that is compiled and never runs.
fn any<T>() -> T {
    unreachable!("this is only compiled")
}

#[test]
fn every_public_future_is_checked() {
    let libraries = [
        ("bsv-invoicing", include_str!("sendable/bsv_invoicing.rs")),
        ("bsv-minerid", include_str!("sendable/bsv_minerid.rs")),
        ("bsv-network", include_str!("sendable/bsv_network.rs")),
        ("bsv-store", include_str!("sendable/bsv_store.rs")),
    ];
    for (library, checks) in libraries {
        let names = async_functions(&workspace().join(library).join("src"));
        assert!(!names.is_empty(), "{library}");
        for name in names {
            let calls = [format!(".{name}("), format!("::{name}("), format!("({name}(")];
            let is_checked = calls.iter().any(|call| checks.contains(call));
            assert!(is_checked, "{library}: {name} may not be Send");
        }
    }
    // This makes the compiler treat the function as used.
    let _ = bsv_invoicing::wallet;
    let _ = bsv_minerid::miner_ids::<::bsv_minerid::store::RedbIdentityStore>;
    let _ =
        (bsv_network::node, bsv_network::source, bsv_network::broadcaster, bsv_network::headers);
    let _ = bsv_store::writer::<DatabaseBatches<NoTables>>;
}

struct NoTables;

impl ::bsv_store::Tables for NoTables {
    type Open<'t> = ();
    type Told = ();

    fn open(_: &redb::WriteTransaction) -> Result<(), ::bsv_store::StoreError> {
        Ok(())
    }

    fn close((): ()) -> Result<Option<()>, ::bsv_store::StoreError> {
        Ok(None)
    }
}

/// The names of all `pub async fn` below a directory.
fn async_functions(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for file in sources(dir) {
        let text = fs::read_to_string(file).unwrap();
        let found = text.split("pub async fn ").skip(1);
        names.extend(found.map(|rest| rest.split(['(', '<']).next().unwrap().to_owned()));
    }
    names
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false if path.extension().is_some_and(|extension| extension == "rs") => vec![path],
            false => Vec::new(),
        })
        .collect()
}
