//! The packages that each feature of a library compiles.

use bsv_tests::build::cargo;

/// The names of all packages that are compiled for a library of the workspace.
fn packages(library: &str, features: &str) -> Vec<String> {
    let output = cargo()
        .args(["tree", "--package", library, "--no-default-features", "--features", features])
        .args(["--edges", "normal", "--prefix", "none", "--format", "{lib}"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
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
