/// How to open a database file.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseOptions {
    /// The most memory that cached pages may take, in bytes.
    pub cache_bytes: usize,
    /// The free space on the disk below which a write is refused, in bytes.
    pub free_space_reserve: u64,
    /// The length, in bytes, up to which a file is compared with its checksums whenever it is
    /// opened. This comparison reads the whole file. A longer file is compared when it is
    /// [checked](crate::Database::check) or [copied](crate::Database::copy).
    pub checked_len: u64,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self { cache_bytes: 48 << 20, free_space_reserve: 4 << 20, checked_len: 4 << 20 }
    }
}

impl DatabaseOptions {
    /// The engine's builder with these options.
    pub(super) fn builder(self) -> redb::Builder {
        let mut builder = redb::Database::builder();
        builder.set_cache_size(self.cache_bytes);
        builder
    }
}
