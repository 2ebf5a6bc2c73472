use std::sync::Arc;

use bsv_store::{Batches, GroupWriter, StoreError};

use super::is_send;

pub(super) fn writer<T: Batches>(writer: &Arc<GroupWriter<T>>) {
    is_send(writer.run(0, |_| Ok::<Result<(), ()>, StoreError>(Ok(()))));
}
