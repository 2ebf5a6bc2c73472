//! Programs that do jobs with other people's software.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

/// A program's answers to jobs, in their order. The program reads a JSON array of jobs from standard input, and writes one
/// of answers to standard output.
///
/// # Panics
/// If it fails.
pub fn ask(mut program: Command, jobs: &[&Value]) -> Vec<Value> {
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = program.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&serde_json::to_vec(jobs).unwrap()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program:?}");
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answers.len(), jobs.len());
    answers
}
