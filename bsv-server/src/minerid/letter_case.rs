//! Paths in other letter case, which the older generator accepts.

use std::borrow::Cow;

use hyper::Uri;
use hyper::http::uri::PathAndQuery;

/// The path in lower case, except for the alias, which is its second part. The rest is fixed words
/// and numbers.
pub(crate) fn in_lower_case(path: &str) -> Cow<'_, str> {
    if !path.bytes().any(|c| c.is_ascii_uppercase()) {
        return Cow::Borrowed(path);
    }
    let parts = path.split('/').enumerate().map(|(place, part)| match place {
        2 => part.to_owned(),
        _ => part.to_ascii_lowercase(),
    });
    Cow::Owned(parts.collect::<Vec<_>>().join("/"))
}

/// Puts the path of a URI into lower case in this way.
pub(crate) fn lower_case(uri: &mut Uri) {
    let Cow::Owned(path) = in_lower_case(uri.path()) else { return };
    let text = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    // The path stays valid, because only the case of letters has changed.
    if let Ok(path) = text.parse::<PathAndQuery>() {
        let mut parts = std::mem::take(uri).into_parts();
        parts.path_and_query = Some(path);
        *uri = Uri::from_parts(parts).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_the_alias_is_put_into_lower_case() {
        for (path, expected) in [
            ("/OpReturn/Pool/12/AbCd", "/opreturn/Pool/12/abcd"),
            ("/MINERID/POOL/PkSign/00FF", "/minerid/POOL/pksign/00ff"),
            ("/Coinbase2", "/coinbase2"),
            ("/opreturn/Pool/isvalid", "/opreturn/Pool/isvalid"),
            ("/minerid/pool", "/minerid/pool"),
        ] {
            assert_eq!(in_lower_case(path), expected);
            let mut uri: Uri = format!("{path}?Query=A").parse().unwrap();
            lower_case(&mut uri);
            assert_eq!(uri.to_string(), format!("{expected}?Query=A"));
        }
        let mut uri: Uri = "http://Host:1/OPRETURN/A/1".parse().unwrap();
        lower_case(&mut uri);
        assert_eq!(uri.path(), "/opreturn/A/1");
        assert!(uri.authority().is_some());
    }
}
