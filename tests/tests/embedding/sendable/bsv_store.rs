use std::sync::Arc;

use bsv_store::{GroupWriter, StoreError, Tables};

use super::is_send;

pub(super) fn writer<T: Tables>(writer: &Arc<GroupWriter<T>>) {
    is_send(writer.run(|_| Ok::<Result<(), ()>, StoreError>(Ok(()))));
}
