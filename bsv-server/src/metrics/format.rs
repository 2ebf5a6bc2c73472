use hyper::HeaderMap;
use hyper::header::ACCEPT;

/// The format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// The text format of Prometheus, version 0.0.4.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

const OPEN_METRICS: &str = "application/openmetrics-text";

impl Format {
    /// The format that a caller prefers (RFC 9110, section 12.5.1): text, unless the caller prefers
    /// OpenMetrics.
    pub(super) fn asked_for(headers: &HeaderMap) -> Self {
        let (mut open_metrics, mut text) = (0.0_f32, 0.0_f32);
        let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for range in accepted.flat_map(|value| value.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
            let quality = parameter(&parameters, "q").map_or(Some(1.0), |q| q.parse().ok());
            let quality = quality.unwrap_or(0.0);
            let version = parameter(&parameters, "version");
            match kind.as_str() {
                OPEN_METRICS if version.is_none_or(|version| version == "1.0.0") => {
                    open_metrics = open_metrics.max(quality);
                }
                "text/plain" | "text/*" | "*/*" => text = text.max(quality),
                _ => {}
            }
        }
        if open_metrics > 0.0 && open_metrics >= text { Self::OpenMetrics } else { Self::Text }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

fn parameter<'a>(parameters: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    let found = parameters.iter().find(|(key, _)| key.trim().eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn a_caller_gets_the_format_that_it_prefers() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                          application/openmetrics-text;version=0.0.1;q=0.5,\
                          text/plain;version=0.0.4;q=0.4,*/*;q=0.3";
        for (accept, format) in [
            ("", Format::Text),
            ("*/*", Format::Text),
            ("text/plain", Format::Text),
            (prometheus, Format::OpenMetrics),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("Application/OpenMetrics-Text; Version=\"1.0.0\"", Format::OpenMetrics),
            ("application/openmetrics-text;version=0.0.1", Format::Text),
            ("application/openmetrics-text;version=2.0.0", Format::Text),
            ("application/openmetrics-text;q=0", Format::Text),
            ("application/openmetrics-text;q=wrong", Format::Text),
            ("application/openmetrics-text;q=0.2,text/plain", Format::Text),
            ("application/openmetrics-text2", Format::Text),
        ] {
            let headers = [(ACCEPT, HeaderValue::from_static(accept))].into_iter().collect();
            assert_eq!(Format::asked_for(&headers), format, "{accept}");
        }
    }
}
