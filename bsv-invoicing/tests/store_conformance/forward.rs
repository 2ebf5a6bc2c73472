//! Stores of tests hand on to another one all that they do not do themselves.

/// The methods of a store that answer queries of few and of many rows.
#[allow(unused_macros, reason = "not all tests have such a store")]
macro_rules! forward_queries {
    ($own:ident => $inner:expr) => {
        fn run_short(
            &$own,
            query: ::bsv_invoicing::store::BoxedQuery,
        ) -> ::bsv_invoicing::store::Answering<'_, ::bsv_invoicing::store::BoxedAnswer> {
            $inner.run_short(query)
        }

        fn run_long(
            &$own,
            query: ::bsv_invoicing::store::BoxedQuery,
        ) -> ::bsv_invoicing::store::Answering<'_, ::bsv_invoicing::store::BoxedAnswer> {
            $inner.run_long(query)
        }
    };
}

/// The methods of a store that are neither commands nor such queries.
#[allow(unused_macros, reason = "not all tests have such a store")]
macro_rules! forward_others {
    ($own:ident => $inner:expr) => {
        fn run_on_disk(
            &$own,
            query: ::bsv_invoicing::store::BoxedOnce,
        ) -> ::bsv_invoicing::store::Answering<'_, ::bsv_invoicing::store::BoxedAnswer> {
            $inner.run_on_disk(query)
        }

        fn last_event(&$own) -> ::tokio::sync::watch::Receiver<u64> {
            $inner.last_event()
        }

        fn audit_log(
            &$own,
            page: ::bsv_store::AuditPage,
            limit: usize,
        ) -> ::bsv_invoicing::store::Answering<'_, Vec<::bsv_store::AuditEntry>> {
            $inner.audit_log(page, limit)
        }

        fn verify_audit_log(&$own) -> ::bsv_invoicing::store::Answering<'_, ::bsv_store::AuditCheck> {
            $inner.verify_audit_log()
        }

        fn counts(&$own) -> &::bsv_store::StoreCounts {
            $inner.counts()
        }

        fn event_counts(&$own) -> &::bsv_invoicing::store::EventCounts {
            $inner.event_counts()
        }
    };
}

#[allow(unused_imports, reason = "not all tests have such a store")]
pub(crate) use {forward_others, forward_queries};
