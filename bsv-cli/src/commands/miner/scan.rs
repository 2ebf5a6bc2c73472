//! Scanning a node's chain, block by block, for the identities of its miners.

mod arguments;
mod error;
mod lines;
mod progress;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bsv_minerid::node::{DataCache, GatheredBlock, gather};
use bsv_minerid::verify::verify;
use bsv_network::{NodeError, NodeRpc};
use indicatif::ProgressBar;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

pub(crate) use self::arguments::ScanArguments;
pub(crate) use self::error::ScanError;
#[cfg(test)]
pub(in crate::commands) use self::lines::COLUMNS;
use self::progress::{Progress, ProgressFile, Seen};
use super::verify::node;
use crate::context::Context;
use crate::error::CliError;
use crate::output;

/// How many blocks are fetched in advance.
const AHEAD: usize = 8;

/// How often progress is saved. After a crash, the later blocks are read again.
const SAVE_EVERY: Duration = Duration::from_secs(1);

impl ScanArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let from = self.from;
        if let Some(to) = self.to.filter(|to| *to < from) {
            return Err(ScanError::NothingToScan { from, to }.into());
        }
        let config = context.config()?;
        let node = node(&config)?;
        let tip = node.tip().await?.height;
        let to = self.to.unwrap_or(tip);
        if to > tip || from > to {
            return Err(CliError::BeyondTip(to.max(from)));
        }
        if !node.has_transaction_index().await? {
            return Err(ScanError::NoIndex.into());
        }
        let file = ProgressFile::open(&self, &config)?;
        let progress = file.read(&self, config.network)?;
        if let Some(last) = progress.recent.last().filter(|last| last.height > to) {
            return Err(ScanError::SeenMore { seen: last.height, to }.into());
        }
        Scan::new(node, to, file, progress, context).run().await
    }
}

struct Scan<'c> {
    node: NodeRpc,
    to: u32,
    file: ProgressFile,
    progress: Progress,
    saved: Instant,
    ahead: VecDeque<JoinHandle<Result<Option<GatheredBlock>, NodeError>>>,
    data: Arc<DataCache>,
    bar: ProgressBar,
    context: &'c Context,
}

impl<'c> Scan<'c> {
    fn new(
        node: NodeRpc,
        to: u32,
        file: ProgressFile,
        progress: Progress,
        context: &'c Context,
    ) -> Self {
        let count = u64::from(to - progress.from) + 1;
        let bar = context.progress_bar(count, "{bar:40} {pos}/{len} blocks, {eta} left");
        let (saved, ahead) = (Instant::now(), VecDeque::new());
        Self { node, to, file, progress, saved, ahead, data: Arc::default(), bar, context }
    }

    async fn run(mut self) -> Result<(), CliError> {
        let is_told = !self.context.is_quiet && !self.context.is_json;
        if self.progress.next() > self.progress.from && is_told {
            let next = self.progress.next();
            self.bar.suspend(|| eprintln!("bsv-cli: continuing from height {next}"));
        }
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let result = tokio::select! {
            result = self.walk() => result,
            _ = interrupt.recv() => Err(self.interrupted()),
            _ = terminate.recv() => Err(self.interrupted()),
        };
        self.bar.finish_and_clear();
        match result {
            Ok(()) => {
                self.file.finish(&self.progress)?;
                self.print(&lines::summary(&self.progress, self.context))
            }
            Err(error) => {
                self.file.write(&self.progress)?;
                Err(error)
            }
        }
    }

    fn interrupted(&self) -> CliError {
        ScanError::Interrupted { next: self.progress.next() }.into()
    }

    async fn walk(&mut self) -> Result<(), CliError> {
        self.leave_orphans().await?;
        while self.progress.next() <= self.to {
            self.fetch_ahead();
            let Some(fetched) = self.ahead.front_mut() else { break };
            let block = fetched.await.map_err(std::io::Error::other)?;
            self.ahead.pop_front();
            let block = block.map_err(|source| self.node_failed(source))?;
            match block {
                Some(block) if self.progress.is_followed_by(&block.proof.header) => {
                    self.take(&block)?;
                }
                // The chain has changed meanwhile.
                _ => {
                    self.forget_fetched();
                    self.leave_orphans().await?;
                    let next = self.progress.next();
                    let hash = self.node.block_hash(next).await;
                    if hash.map_err(|source| self.node_failed(source))?.is_none() {
                        return Err(CliError::BeyondTip(self.to));
                    }
                }
            }
        }
        Ok(())
    }

    fn fetch_ahead(&mut self) {
        let first = self.progress.next();
        while self.ahead.len() < AHEAD {
            let height = first + self.ahead.len() as u32;
            if height > self.to {
                break;
            }
            let (node, data) = (self.node.clone(), self.data.clone());
            self.ahead.push_back(tokio::spawn(async move {
                match node.block_hash(height).await? {
                    Some(hash) => gather(&node, &hash, &data).await,
                    None => Ok(None),
                }
            }));
        }
    }

    fn forget_fetched(&mut self) {
        for fetched in self.ahead.drain(..) {
            fetched.abort();
        }
        // Data of a block that has left the chain may no longer be in any block.
        self.data = Arc::default();
    }

    /// Goes back to the last block that is still in the chain.
    async fn leave_orphans(&mut self) -> Result<(), CliError> {
        let mut kept = self.progress.recent.len();
        while let Some(seen) = self.progress.recent[..kept].last() {
            let hash = self.node.block_hash(seen.height).await;
            if hash.map_err(|source| self.node_failed(source))? == Some(seen.hash) {
                break;
            }
            kept -= 1;
        }
        let is_all = kept == 0;
        if is_all
            && self.progress.recent.first().is_some_and(|seen| seen.height > self.progress.from)
        {
            return Err(ScanError::DeepReorganisation(self.progress.recent.len()).into());
        }
        let orphans = self.progress.disconnect(kept);
        if !orphans.is_empty() {
            self.print(&lines::reorganisation(&orphans, self.context.is_json))?;
        }
        Ok(())
    }

    fn take(&mut self, block: &GatheredBlock) -> Result<(), CliError> {
        let report = verify(&block.proof, &block.evidence);
        let seen = Seen { height: self.progress.next(), hash: report.block };
        let claim = match report.passes_node() {
            Some(true) => report.claim(),
            Some(false) => None,
            None => return Err(ScanError::Incomplete(seen.hash).into()),
        };
        let entry = self.progress.connect(seen, claim);
        let from = self.progress.from;
        self.print(&lines::block(seen, from, &report, &entry, self.context))?;
        self.bar.set_position(u64::from(self.progress.next() - self.progress.from));
        if self.saved.elapsed() >= SAVE_EVERY {
            self.file.write(&self.progress)?;
            self.saved = Instant::now();
        }
        Ok(())
    }

    fn print(&self, text: &str) -> Result<(), CliError> {
        let print = || match self.context.is_json {
            true => output::print_json(text),
            false => output::print(&self.context.fitted(text)),
        };
        Ok(self.bar.suspend(print)?)
    }

    fn node_failed(&self, source: NodeError) -> CliError {
        ScanError::Node { next: self.progress.next(), source }.into()
    }
}
