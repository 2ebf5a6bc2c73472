/// The commit that the programs are built from, in hexadecimal, or `None` if it is unknown.
pub const COMMIT: Option<&str> = option_env!("BSV_BUILT_FROM");

/// The version of the programs, with the commit in brackets if it is known.
pub fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    COMMIT.map_or_else(|| version.to_owned(), |commit| format!("{version} ({commit})"))
}
