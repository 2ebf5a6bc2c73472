//! The packages that each feature of a library compiles.

use std::collections::BTreeSet;

use bsv_tests::build::cargo;

/// The names of all packages that are compiled for a library of the workspace.
fn packages(library: &str, features: &str) -> Vec<String> {
    let features = ["--no-default-features", "--features", features];
    let arguments = [&["--package", library][..], &features, &["--edges", "normal"]].concat();
    tree(&arguments, "{lib}").lines().map(str::to_owned).collect()
}

/// The packages that cargo compiles, each on a line of this format.
fn tree(arguments: &[&str], format: &str) -> String {
    let output = cargo()
        .arg("tree")
        .args(arguments)
        .args(["--prefix", "none", "--format", format])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// If a development dependency gives a package another feature, cargo compiles the package and all that depend on it
/// once for the tests, and once for the programs under test.
#[test]
fn programs_have_the_dependencies_that_the_tests_have() {
    let compiled = |edges| -> BTreeSet<String> {
        let tree = tree(&["--workspace", "--edges", edges], "{p} {f}");
        // A star marks what has stood above.
        tree.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
    };
    let (programs, tests) = (compiled("no-dev"), compiled("all"));
    let of_programs_alone: Vec<_> = programs.difference(&tests).collect();
    assert!(of_programs_alone.is_empty(), "{of_programs_alone:#?}");
}

#[test]
fn each_feature_compiles_only_the_heavy_packages_that_it_needs() {
    let heavy = ["tokio", "hyper", "redb"];
    let cases: [(&str, &str, &[&str]); 7] = [
        ("bsv-minerid", "", &[]),
        ("bsv-minerid", "store", &["redb"]),
        ("bsv-minerid", "node", &["tokio", "hyper"]),
        ("bsv-minerid", "node,store", &heavy),
        ("bsv-store", "", &[]),
        ("bsv-store", "database", &["redb"]),
        ("bsv-store", "group-writer", &["tokio", "redb"]),
    ];
    for (library, features, expected) in cases {
        let packages = packages(library, features);
        let is_there = |name: &&str| packages.iter().any(|package| package == name);
        let compiled: Vec<_> = heavy.into_iter().filter(is_there).collect();
        assert_eq!(compiled, expected, "{library} with {features:?}");
    }
}

#[test]
fn identities_compile_with_each_feature_alone() {
    for features in ["", "store", "node"] {
        let output = cargo()
            .args(["check", "--quiet", "--package", "bsv-minerid"])
            .args(["--no-default-features", "--features", features])
            .output()
            .unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && complaints.is_empty(), "{features:?}: {complaints}");
    }
}
