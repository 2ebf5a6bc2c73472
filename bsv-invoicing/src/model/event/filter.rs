use std::str::FromStr;

use crate::model::event::EventKind;

/// Selects kinds of events. Its text is a list of types with commas between them, such as
/// `invoice.*,user.created`. Each type may end in `*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// A bit for each kind, at the place of its number.
    kinds: u128,
}

/// A list of types cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no type of event: expected types such as invoice.paid or invoice.*, with commas between them"
)]
pub struct EventFilterParseError(String);

/// The longest piece that an error repeats, in characters.
const MAX_TOLD: usize = 64;

impl EventFilter {
    /// All kinds.
    pub const ALL: Self = {
        let (mut kinds, mut place) = (0, 0);
        while place < EventKind::ALL.len() {
            kinds |= bit(EventKind::ALL[place]);
            place += 1;
        }
        Self { kinds }
    };

    /// Whether the filter selects this kind.
    pub fn has(&self, kind: EventKind) -> bool {
        self.kinds & bit(kind) != 0
    }
}

impl Default for EventFilter {
    fn default() -> Self {
        Self::ALL
    }
}

const fn bit(kind: EventKind) -> u128 {
    1 << kind as u8
}

impl FromStr for EventFilter {
    type Err = EventFilterParseError;

    fn from_str(text: &str) -> Result<Self, EventFilterParseError> {
        let mut kinds = 0;
        for pattern in text.split(',') {
            let is_named = |kind: &&EventKind| match pattern.strip_suffix('*') {
                Some(beginning) => kind.name().starts_with(beginning),
                None => kind.name() == pattern,
            };
            let named = EventKind::ALL.iter().filter(is_named);
            match named.fold(0, |bits, kind| bits | bit(*kind)) {
                0 => return Err(EventFilterParseError(pattern.chars().take(MAX_TOLD).collect())),
                bits => kinds |= bits,
            }
        }
        Ok(Self { kinds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(filter: &str) -> Vec<&'static str> {
        let filter: EventFilter = filter.parse().unwrap();
        let asked_for = EventKind::ALL.iter().filter(|kind| filter.has(**kind));
        asked_for.map(|kind| kind.name()).collect()
    }

    #[test]
    fn a_star_at_the_end_matches_all_types_with_that_beginning() {
        assert_eq!(names("user.*"), ["user.created"]);
        assert_eq!(names("invoice.p*,user.created")[..2], ["user.created", "invoice.paid"]);
        assert_eq!(names("*").len(), EventKind::ALL.len());
        assert_eq!("*".parse(), Ok(EventFilter::ALL));
        assert_eq!(names("invoice.paid,invoice.paid"), ["invoice.paid"]);
        for kind in EventKind::ALL {
            assert_eq!(names(kind.name()), [kind.name()]);
        }
    }

    #[test]
    fn a_text_that_names_no_type_is_refused() {
        for text in [
            "",
            ",",
            "invoice.paid,",
            "invoice",
            "*.paid",
            "invoice.*d",
            "invoice.**",
            "Invoice.*",
            " invoice.paid",
            "unheard.*",
            "webhook.test",
        ] {
            assert!(text.parse::<EventFilter>().is_err(), "{text}");
        }
        let long = "x".repeat(10_000).parse::<EventFilter>().unwrap_err();
        assert!(long.to_string().len() < 300);
    }
}
