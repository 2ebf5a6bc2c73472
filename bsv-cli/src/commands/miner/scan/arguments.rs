use std::path::PathBuf;

use clap::Args;

use crate::shared_arguments::height;

#[derive(Debug, Args)]
pub(crate) struct ScanArguments {
    /// The height of the first block
    #[arg(long, value_name = "H", value_parser = height())]
    pub(super) from: u32,
    /// The height of the last block [default: the tip]
    #[arg(long, value_name = "H", value_parser = height())]
    pub(super) to: Option<u32>,
    /// The file for the progress. A later scan to a greater height continues from it [default: a
    /// file in the data directory, until the scan is done]
    #[arg(long, value_name = "FILE")]
    pub(super) progress: Option<PathBuf>,
    /// Start again, without earlier progress
    #[arg(long)]
    pub(super) restart: bool,
}
