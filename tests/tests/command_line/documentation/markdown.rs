//! Reading pages in Markdown.

use std::fs;

use bsv_tests::build::workspace;

/// A page.
pub(super) struct Page {
    /// The path from the root of the workspace.
    pub(super) path: String,
    pub(super) text: String,
    blocks: Vec<Block>,
}

/// A fenced block that tests use.
pub(super) enum Block {
    /// A file of settings.
    Settings {
        text: String,
        /// Where the reader saves it: `<!-- saved as: … -->` before the block.
        file: String,
    },
    /// A `bitcoin.conf`.
    Node(String),
    /// Commands and their output.
    Commands {
        commands: Vec<Command>,
        /// Why the commands are not run: `<!-- not run: … -->` before the block.
        not_run: Option<String>,
        /// Whether the commands begin with a new data directory: `<!-- run anew -->` before the
        /// block.
        anew: bool,
        /// Commands that are run before these and not shown: `<!-- first: … -->` before the block.
        first: Vec<String>,
        /// The line of the block's beginning.
        line: usize,
    },
}

/// Where the reader saves settings if the page does not say it: in the working directory.
pub(super) const SETTINGS_FILE: &str = "settings.toml";

/// A command and its output.
pub(super) struct Command {
    pub(super) text: String,
    pub(super) output: Vec<String>,
}

impl Page {
    /// Reads a page, given its path from the root of the workspace.
    pub(super) fn read(path: &str) -> Self {
        let text = fs::read_to_string(workspace().join(path)).unwrap();
        let blocks = blocks(path, &text);
        Self { path: path.to_owned(), text, blocks }
    }

    /// The blocks that tests use, in their order.
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The lines outside of fenced blocks.
    pub(super) fn prose(&self) -> impl Iterator<Item = &str> {
        let mut is_fenced = false;
        self.text.lines().filter(move |line| {
            let is_fence = line.trim_start().starts_with("```");
            is_fenced ^= is_fence;
            !is_fence && !is_fenced
        })
    }
}

fn blocks(path: &str, text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut notes: Vec<&str> = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if let Some(note) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
            notes.push(note);
            continue;
        }
        if let Some(language) = line.strip_prefix("```") {
            let body: Vec<_> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            match language {
                "toml" => blocks.push(settings(path, index + 1, &body, &notes)),
                "ini" => blocks.push(Block::Node(body.join("\n"))),
                "console" => blocks.push(commands(path, index + 1, &body, &notes)),
                _ => assert!(notes.is_empty(), "{path}:{index}: a note before {language}"),
            }
        } else {
            assert!(notes.is_empty(), "{path}:{index}: a note must stand right before its block");
        }
        notes.clear();
    }
    blocks
}

fn settings(path: &str, line: usize, body: &[&str], notes: &[&str]) -> Block {
    let file = match notes {
        [] => SETTINGS_FILE,
        [note] if note.starts_with("saved as: ") => &note["saved as: ".len()..],
        _ => panic!("{path}:{line}: the notes {notes:?} are unknown"),
    };
    Block::Settings { text: body.join("\n"), file: file.to_owned() }
}

fn commands(path: &str, line: usize, body: &[&str], notes: &[&str]) -> Block {
    let (mut not_run, mut anew, mut first) = (None, false, Vec::new());
    for note in notes {
        match note.split_once(": ") {
            Some(("not run" | "not run here", reason)) => not_run = Some(reason.to_owned()),
            Some(("first", command)) => first.push(command.to_owned()),
            _ if *note == "run anew" => anew = true,
            _ => panic!("{path}:{line}: the note {note:?} is unknown"),
        }
    }
    let mut commands: Vec<Command> = Vec::new();
    // The prompt of the administrator is a number sign.
    let prompt = if body.first().is_some_and(|line| line.starts_with("# ")) { "# " } else { "$ " };
    for text in body {
        match (text.strip_prefix(prompt), commands.last_mut()) {
            (Some(text), _) => {
                commands.push(Command { text: text.to_owned(), output: Vec::new() });
            }
            (None, Some(last)) if is_unfinished(&last.text) => {
                last.text += "\n";
                last.text += text;
            }
            (None, Some(last)) => last.output.push((*text).to_owned()),
            (None, None) => panic!("{path}:{line}: the first line is no command"),
        }
    }
    Block::Commands { commands, not_run, anew, first, line }
}

/// Whether a shell waits for more: the line ends in a backslash, or within quotes.
fn is_unfinished(command: &str) -> bool {
    command.ends_with('\\') || command.matches('\'').count() % 2 == 1
}
