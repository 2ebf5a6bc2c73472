use console::measure_text_width;

/// A text for a terminal of this width, which then breaks no word in two that could stand in a line. A
/// line that is too wide goes on under its value, or further to the left if the next word needs that.
pub(crate) fn wrapped(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut wrapped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (start, value) = places(line);
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            let len = measure_text_width(word.trim_end());
            if column > start && column + len > width {
                let places = [value, start + 2];
                if let Some(place) = places.into_iter().find(|place| place + len <= width) {
                    wrapped.truncate(wrapped.trim_end_matches(' ').len());
                    wrapped.push('\n');
                    wrapped.push_str(&" ".repeat(place));
                    column = place;
                }
            }
            wrapped.push_str(word);
            column += measure_text_width(word);
        }
    }
    wrapped
}

/// Where a line begins, and where its value does: behind the first wide gap.
fn places(line: &str) -> (usize, usize) {
    let words = line.trim_start_matches(' ');
    let start = line.len() - words.len();
    let value = words.split_once("  ").map(|(_, value)| value.trim_start_matches(' ').len());
    let place = |len| measure_text_width(&line[..line.len() - len]);
    (start, value.map_or(start + 2, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_go_on_under_the_value() {
        for (text, shown) in [
            ("next  wait for a block\n", "next  wait for a\n      block\n"),
            ("wait for one block or two\n", "wait for one block\n  or two\n"),
            ("  a state  not 9: it\n  state  holds\n", "  a state  not 9: it\n  state  holds\n"),
            ("  a state  not 10: it\n", "  a state  not 10:\n           it\n"),
            ("the state  of 0123456789", "the state  of\n  0123456789"),
            (
                "the state  of 0123456789 0123456789 0123456789",
                "the state  of\n  0123456789\n  0123456789\n  0123456789",
            ),
            ("url  http://example.com/a is it", "url  http://example.com/a\n     is it"),
            ("\nshort", "\nshort"),
        ] {
            assert_eq!(wrapped(text, Some(20)), shown);
            assert_eq!(wrapped(text, None), text);
        }
    }
}
