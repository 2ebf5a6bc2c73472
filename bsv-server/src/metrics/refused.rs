use crate::access::Denied;
use crate::http::BodyError;
use crate::refusal::Refusal;

/// Why a request or connection is refused that might be answered for another sender or in another
/// form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    TokenMissing,
    TokenInvalid,
    TokenExpired,
    ScopeMissing,
    OtherOrigin,
    TooManyRequests,
    TooManyConnections,
    BodyTooLarge,
    BodyTooSlow,
    BodyBrokenOff,
    TooManyLargeBodies,
}

impl Refused {
    /// All reasons, in their order.
    pub(crate) const ALL: [Self; 11] = [
        Self::TokenMissing,
        Self::TokenInvalid,
        Self::TokenExpired,
        Self::ScopeMissing,
        Self::OtherOrigin,
        Self::TooManyRequests,
        Self::TooManyConnections,
        Self::BodyTooLarge,
        Self::BodyTooSlow,
        Self::BodyBrokenOff,
        Self::TooManyLargeBodies,
    ];

    /// Why a request is refused, unless the reason is what it asks for.
    pub(crate) fn of(refusal: &Refusal) -> Option<Self> {
        match refusal {
            Refusal::Denied(Denied::Missing) => Some(Self::TokenMissing),
            Refusal::Denied(Denied::Invalid(_)) => Some(Self::TokenInvalid),
            Refusal::Denied(Denied::Expired(_)) => Some(Self::TokenExpired),
            Refusal::Denied(Denied::OutOfScope(..)) => Some(Self::ScopeMissing),
            Refusal::Forbidden(_) => Some(Self::OtherOrigin),
            Refusal::TooMany { .. } => Some(Self::TooManyRequests),
            _ => None,
        }
    }

    /// Why a request with an unreadable body is refused.
    pub(crate) fn of_body(error: &BodyError) -> Self {
        match error {
            BodyError::TooLarge(_) => Self::BodyTooLarge,
            BodyError::TooSlow => Self::BodyTooSlow,
            BodyError::BrokenOff => Self::BodyBrokenOff,
            BodyError::TooMany => Self::TooManyLargeBodies,
        }
    }

    /// The stable name for programs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TokenMissing => "token-missing",
            Self::TokenInvalid => "token-invalid",
            Self::TokenExpired => "token-expired",
            Self::ScopeMissing => "scope-missing",
            Self::OtherOrigin => "other-origin",
            Self::TooManyRequests => "too-many-requests",
            Self::TooManyConnections => "too-many-connections",
            Self::BodyTooLarge => "too-large",
            Self::BodyTooSlow => "request-timeout",
            Self::BodyBrokenOff => "broken-off",
            Self::TooManyLargeBodies => "too-many-large",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_place() {
        for (place, reason) in Refused::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
        }
    }
}
