/// How a database file is opened.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseOptions {
    /// The most memory that cached pages may take, in bytes.
    pub cache_bytes: usize,
    /// The room that must be left on the disk for a write to be tried, in bytes.
    pub free_space_reserve: u64,
    /// Up to which length, in bytes, a file is compared with its checksums whenever it is opened. That
    /// reads all of it; a longer one is when it is [checked](crate::Database::check) or
    /// [copied](crate::Database::copy).
    pub checked_len: u64,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self { cache_bytes: 48 << 20, free_space_reserve: 4 << 20, checked_len: 4 << 20 }
    }
}

impl DatabaseOptions {
    /// What builds a handle on a file.
    pub(super) fn builder(self) -> redb::Builder {
        let mut builder = redb::Database::builder();
        builder.set_cache_size(self.cache_bytes);
        builder
    }
}
