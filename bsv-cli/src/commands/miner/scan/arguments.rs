use std::path::PathBuf;

use clap::Args;

use crate::height::height;

#[derive(Debug, Args)]
pub(crate) struct ScanArguments {
    /// The height of the first block
    #[arg(long, value_name = "H", value_parser = height())]
    pub(super) from: u32,
    /// The height of the last block [default: the last of the chain]
    #[arg(long, value_name = "H", value_parser = height())]
    pub(super) to: Option<u32>,
    /// Where to keep what was seen, so that a later scan to a greater height goes on from there
    /// [default: a file in the data directory, until the scan is done]
    #[arg(long, value_name = "FILE")]
    pub(super) progress: Option<PathBuf>,
    /// Begin anew, whatever was seen before
    #[arg(long)]
    pub(super) restart: bool,
}
