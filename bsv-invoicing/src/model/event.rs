//! What has happened in the wallet, as the log of events tells it.

mod data;
mod kind;
mod log;

pub use self::data::{Event, EventData, EventInvoice, EventOutgoing, EventPayment, MinedIn};
pub use self::kind::EventKind;
pub use self::log::{LogName, LogNameParseError};
