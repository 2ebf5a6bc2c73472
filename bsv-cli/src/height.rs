use clap::builder::TypedValueParser;

/// Parses the height of a block that a miner may be asked about.
pub(crate) fn height() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=i64::from(i32::MAX))
}
