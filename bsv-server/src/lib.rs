//! The server of the wallet and of the miner identity service: hyper around [`bsv_invoicing`] and
//! [`bsv_minerid`].
//!
//! An [`Instance`] is an opened data directory. An instance answers requests from any source. The
//! server connects it to listeners ([`run`]). The command line uses an instance in its own process
//! if no server runs, and otherwise the server's [control socket](control).

mod access;
mod api;
mod backup;
mod common_routes;
pub mod config;
mod config_check;
pub mod control;
mod headers;
mod health;
pub mod http;
mod instance;
mod listeners;
mod logging;
mod metrics;
mod minerid;
mod openapi;
mod opening;
mod page;
mod paths;
mod payments;
mod pipeline;
mod refusal;
mod request_id;
mod request_log;
mod reread;
mod restore;
mod run;
mod service_manager;
mod services;
mod services_check;
mod serving;
mod start_error;
mod store_check;
mod store_move;
mod stored_rows;
mod version;
mod visible;
mod wallet;
mod wallet_store;
pub mod wire;

pub use access::{
    Access, AccessConfig, Caller, Denied, Grant, GrantParseError, JwtKey, Scope, TokenFileError,
    TokenKind, Tokens, WeakJwtKey,
};
pub use api::Api;
pub use config::{
    Config, ConfigError, ConfigSources, MinerIdConfig, PageConfig, ShownSettings, StaleCopy,
    TlsFiles,
};
pub use config_check::{Outcome, Verdict, Verdicts, check_config};
pub use headers::open_headers;
pub use http::{TlsError, TlsProblem};
pub use instance::Instance;
pub use listeners::HandedSockets;
pub use logging::{LogForm, log_to_stderr};
pub use opening::{Create, OpenError, are_identities_in, is_wallet_in};
pub use paths::patterns;
pub use restore::{RestoreError, Restored, WordsRestored, restore_backup, restore_words};
pub use run::{Launch, main, run, serve_connection, survive_file_size_limit};
pub use services_check::check_services;
pub use start_error::StartError;
pub use store_move::{MoveError, MoveTarget, accept_loss, move_restored, move_wallet};
pub use stored_rows::stored_rows;
pub use version::{COMMIT, version};
pub use visible::steers;
