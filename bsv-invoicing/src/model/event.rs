//! Events: what has happened in the wallet.

mod data;
mod filter;
mod kind;
mod log;
mod page;
mod written;

pub use self::data::{Event, EventData, EventInvoice, EventOutgoing, EventPayment, MinedIn};
pub use self::filter::{EventFilter, EventFilterParseError};
pub use self::kind::EventKind;
pub use self::log::{LogName, LogNameParseError};
pub use self::page::{EventPage, EventQuery, MAX_EVENTS_LOOKED_AT};
pub use self::written::{WrittenEvent, WrittenPage};
