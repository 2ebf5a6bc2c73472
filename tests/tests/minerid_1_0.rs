//! Identities of generation 1.0, as the older generator made them and as a real node sees them.

mod answers;
mod at_once;
mod deletion;
mod drill;
mod early_rotations;
mod emergencies;
mod formats;
mod history;
mod kills;
mod node_connections;
mod observation;
mod orphans;
mod references;
mod revocation;
mod revocation_kills;
mod scene;
mod silent_node;
mod stale_copies;
mod vctx_sweep;
mod walks;
