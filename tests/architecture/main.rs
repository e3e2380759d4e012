//! The sources themselves: who imports whom, what pure rooms never name, how large files are.
//!
//! A rule that is broken for a good reason is changed in `rules.rs`, in a commit of its own that says why.

mod rules;
mod source;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use source::Source;

/// What lies at the top of the repository; names that start with a dot are tooling.
const TOP: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "src",
    "config",
    "tests",
    "benches",
    "docs",
    "docker",
    "target",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Every Rust file of ours.
fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    for folder in ["src", "tests", "benches"] {
        files_below(&root().join(folder), &mut files);
    }
    files.sort();
    let read = |path: &PathBuf| {
        let name = path.strip_prefix(root()).unwrap_or(path).to_string_lossy().replace('\\', "/");
        Source::parse(&name, &fs::read_to_string(path).unwrap_or_default())
    };
    files.iter().map(read).collect()
}

#[test]
fn the_rules_are_kept() {
    let broken: Vec<_> = sources().iter().flat_map(rules::all).collect();
    assert!(broken.is_empty(), "{} broken:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn the_table_of_imports_lists_the_rooms_that_exist() {
    let sources = sources();
    let rooms: BTreeSet<_> = sources.iter().filter_map(Source::room).collect();
    let listed: BTreeSet<_> = rules::IMPORTS.iter().map(|(room, _)| *room).collect();
    assert_eq!(rooms, listed);
    assert!(sources.len() > rooms.len(), "the files were found");
}

#[test]
fn every_room_has_a_door() {
    for (room, _) in rules::IMPORTS {
        assert!(root().join("src").join(room).join("mod.rs").is_file(), "src/{room}/mod.rs is missing");
    }
}

#[test]
fn the_top_of_the_repository_is_tidy() {
    let names = fs::read_dir(root()).expect("the repository is readable").flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let strange: Vec<_> = names.filter(|name| !name.starts_with('.') && !TOP.contains(&name.as_str())).collect();
    assert!(strange.is_empty(), "does not belong at the top: {strange:?}");
}
