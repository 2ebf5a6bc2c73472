/// The commit that the programs are built from, in hexadecimal; none where that is not known.
pub const COMMIT: Option<&str> = option_env!("BSV_BUILT_FROM");

/// The version of the programs, and in brackets the commit that they are built from.
pub fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    COMMIT.map_or_else(|| version.to_owned(), |commit| format!("{version} ({commit})"))
}
