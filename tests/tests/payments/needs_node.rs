//! The list of the tests that need a node.

use std::process::Command;

use bsv_tests::source::needing_node;

#[test]
fn each_test_that_is_said_to_need_a_node_exists() {
    let mut list = Command::new(std::env::current_exe().unwrap());
    let list = list.args(["--list", "--format", "terse"]).output().unwrap().stdout;
    let list = String::from_utf8(list).unwrap();
    let tests: Vec<_> = list.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    for (name, reason) in needing_node() {
        assert!(!reason.is_empty(), "{name}");
        // A run leaves out all tests whose names contain a listed one.
        let named: Vec<_> = tests.iter().filter(|test| test.contains(name)).collect();
        let is_meant = |test: &str| match name.ends_with("::") {
            true => test.starts_with(name),
            false => test == name,
        };
        assert!(!named.is_empty() && named.iter().all(|test| is_meant(test)), "{name}: {named:?}");
    }
}
