use std::fs;
use std::path::Path;

use bsv_tests::{Done, Site, repetitions};

use crate::scene::sealed_site;

/// A way to damage a file, chosen by random numbers.
fn damage(contents: &[u8], random: u64) -> Vec<u8> {
    let mut damaged = contents.to_vec();
    // Where redb keeps pages that are in use, most of the time.
    let used = contents.iter().rposition(|byte| *byte != 0).unwrap_or_default() + 1;
    let place = (random >> 8) as usize % used;
    match random % 4 {
        0 => damaged.truncate(place),
        1 => {
            let end = damaged.len().min(place + 512);
            damaged[place..end].fill(0);
        }
        _ => damaged[place] ^= 1 << (random >> 4 & 7),
    }
    damaged
}

/// Whether a command has told of damage; else it must have said what it said before.
fn has_told(done: &Done, before: &str) -> bool {
    if done.code == 0 {
        assert_eq!(done.stdout, before);
        return false;
    }
    assert_eq!(done.code, 1, "{}{}", done.stdout, done.stderr);
    assert!(done.stderr.contains("bsv-cli: "), "{}", done.stderr);
    true
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

/// Damages a file again and again, and asks. Answers how often damage was told.
fn told_of(site: &Site, path: &Path, commands: &[&[&str]]) -> usize {
    let count = repetitions("damaged stores", 400, 8);
    let right = fs::read(path).unwrap();
    let before: Vec<_> = commands.iter().map(|command| site.cli(command).stdout).collect();
    let mut told = 0;
    for _ in 0..count {
        let damaged = damage(&right, random());
        for (command, before) in commands.iter().zip(&before) {
            fs::write(path, &damaged).unwrap();
            told += usize::from(has_told(&site.cli(command), before));
        }
    }
    fs::write(path, &right).unwrap();
    for (command, before) in commands.iter().zip(&before) {
        assert!(!has_told(&site.cli(command), before));
    }
    told
}

#[test]
fn a_damaged_store_of_the_wallet_never_answers_wrongly() {
    let site = sealed_site(None);
    for number in 0..20 {
        let text = format!("number {number} with a description");
        site.cli_ok(&["invoice", "create", "--satoshis", "7", "--description", &text]);
    }
    let path = site.network_dir().join("wallet.redb");
    let commands: [&[&str]; 2] = [&["invoice", "list"], &["books", "verify"]];
    let told = told_of(&site, &path, &commands);
    assert!(told > 0);
}

#[test]
fn a_damaged_store_of_identities_never_answers_wrongly() {
    let site = sealed_site(None);
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    let path = site.network_dir().join("minerid/minerid.redb");
    let told = told_of(&site, &path, &[&["listminerids"]]);
    assert!(told > 0);
}
