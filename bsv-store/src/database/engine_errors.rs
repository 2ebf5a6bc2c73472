use std::sync::Arc;

use crate::error::StoreError;

macro_rules! from_engine_errors {
    ($($error:ident),*) => {
        $(impl From<redb::$error> for StoreError {
            fn from(error: redb::$error) -> Self {
                Self::Engine(Arc::new(redb::Error::from(error)))
            }
        })*
    };
}
from_engine_errors!(StorageError, TableError, TransactionError, DatabaseError);
