use clap::builder::TypedValueParser;

/// The height of a block that a miner can be asked for.
pub(crate) fn height() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=i64::from(i32::MAX))
}
