//! Webhooks: events that are sent to endpoints which their owner names.
//!
//! The log of events is the outbox. A webhook is a cursor into it, and what could not be delivered is sent again by a
//! schedule.

pub mod schedule;
mod secret;

pub use self::secret::{WebhookSecret, signatures};
