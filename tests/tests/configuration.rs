//! Every setting from every source has its effect.

mod directories;
mod keystores;
mod lifetimes;
mod mistakes;
mod programs;
mod settings;
mod verdicts;
