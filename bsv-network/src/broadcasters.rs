//! Services that take transactions for the network and tell what became of them: Arcade and ARC.
//!
//! An answer is the word of a service. It proves nothing, but for a Merkle path, which the caller
//! checks against a header of the main chain. What each answer means stands at [`Word`], and what the
//! answers of several services mean together at [`Standing`]. The routes and the forms of the answers
//! are those of Arcade 0.9 and ARC 1.5.
//!
//! A [`Broadcaster`] is the client of one service. A [`BroadcasterSet`] gives a transaction to several
//! ones until it is clear how it stands. An [`EventStream`], and a [`Callback`] that has come, say when
//! to ask sooner ([`BroadcasterSet::hint`]).
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use bsv_network::broadcasters::{
//!     Broadcaster, BroadcasterSet, Dialect, SeenByError, Standing, Submission, Urgency,
//! };
//! use bsv_network::bsv_tx::{Bump, ExtendedTransaction};
//!
//! fn broadcasters(client: reqwest::Client) -> Result<BroadcasterSet, SeenByError> {
//!     let arcade = Broadcaster::new(Dialect::Arcade, client.clone(), "https://arcade.example");
//!     let arc = Broadcaster::new(Dialect::Arc, client, "https://arc.example");
//!     BroadcasterSet::new(vec![arcade, arc], 1)
//! }
//!
//! /// Whether the network has a payment whose inputs are proven. `holds` checks a path against the
//! /// headers of the main chain.
//! async fn is_paid(
//!     set: &BroadcasterSet,
//!     payment: &ExtendedTransaction,
//!     holds: impl Fn(&Bump) -> bool,
//! ) -> bool {
//!     let payment = Submission { ancestors: &[], transaction: payment, newest_block: None };
//!     let told = set.send(payment, Duration::from_secs(10), Urgency::Now).await;
//!     for said in &told.said {
//!         println!("{}: {:?}", said.host, said.word);
//!     }
//!     told.standing == Standing::Taken || told.paths.iter().any(holds)
//! }
//! ```

mod answer;
mod budget;
mod callback;
mod client;
mod events;
mod member;
mod set;
mod standing;
mod told_height;

pub use answer::{Answer, Word};
pub use callback::Callback;
pub use client::{Broadcaster, BroadcasterError, Dialect, Health};
pub use events::{EventStream, ReasonToAsk};
pub use member::{BroadcasterReport, Outcome, Urgency};
pub use set::{BroadcasterSet, Said, SeenByError, Submission, Told};
pub use standing::Standing;
