//! The command line for people and programs.

mod consent;
mod documentation;
mod errors;
mod help;
mod identities;
mod import;
mod looks;
mod node_check;
mod nothing_by_accident;
mod older_names;
mod standard_streams;
mod status;
mod wallet;
