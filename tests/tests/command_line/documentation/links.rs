//! The links of all pages lead to existing files and headings.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use bsv_tests::build::workspace;

use super::markdown::Page;

/// The files of the workspace whose names have this end, as paths from its root.
fn files(ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(workspace().join(&directory)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = directory.join(&name);
            if entry.file_type().unwrap().is_file() && name.ends_with(ending) {
                found.push(path.to_str().unwrap().to_owned());
            } else if entry.file_type().unwrap().is_dir()
                && !name.starts_with('.')
                && !["target", "node_modules"].contains(&name.as_str())
            {
                directories.push(path);
            }
        }
    }
    found
}

/// The targets of the links in a line, such as `shop.md#webhooks` of `[shop](shop.md#webhooks)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// The anchors of headings, as GitHub makes them.
fn anchors(page: &Page) -> HashSet<String> {
    let headings = page.prose().filter(|line| line.starts_with('#'));
    let mut anchors = HashSet::new();
    for heading in headings.map(|line| line.trim_start_matches('#').trim()) {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        assert!(anchors.insert(name.to_lowercase()), "{}: two headings {heading:?}", page.path);
    }
    anchors
}

/// The fault of a link from a page, if there is one.
fn problem(page: &Page, target: &str) -> Option<String> {
    let (file, anchor) = match target.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (target, None),
    };
    let path = match file {
        "" => PathBuf::from(&page.path),
        file => Path::new(&page.path).parent().unwrap().join(file),
    };
    if !workspace().join(&path).exists() {
        return Some(format!("{} is missing", path.display()));
    }
    let anchor = anchor?;
    let is_there = anchors(&Page::read(path.to_str().unwrap())).contains(anchor);
    (!is_there).then(|| format!("{} has no heading #{anchor}", path.display()))
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let mut count = 0;
    let mut problems = Vec::new();
    for path in files(".md") {
        let page = Page::read(&path);
        for target in page.prose().flat_map(targets).filter(|target| !target.contains("://")) {
            count += 1;
            problems.extend(
                problem(&page, target).map(|problem| format!("{path}: {target}: {problem}")),
            );
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 100, "only {count} links");
}

/// The pages of `docs` that a text names.
fn named_pages(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("docs/").filter_map(|(start, _)| {
        let rest = &text[start..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "/-._".contains(c)));
        let name = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
        name.ends_with(".md").then_some(name)
    })
}

#[test]
fn pages_that_sources_name_exist() {
    let mut count = 0;
    for path in [files(".rs"), files(".toml"), files(".service")].concat() {
        let text = fs::read_to_string(workspace().join(&path)).unwrap();
        for name in named_pages(&text) {
            count += 1;
            assert!(workspace().join(name).exists(), "{path} names {name}");
        }
    }
    assert!(count > 5, "only {count} names");
}
