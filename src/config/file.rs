//! A configuration file: read, parsed as far as it goes, walked.

use std::fs;
use std::ops::Range;
use std::path::Path;

use toml::de::DeTable;
use zeroize::Zeroizing;

use super::draft::Draft;
use super::mistake::Place;

/// A file larger than this is none of ours.
const MOST: u64 = 4 << 20;

/// Takes over every option of the file.
pub(super) fn read(path: &Path, draft: &mut Draft) {
    let bytes = match size_and_bytes(path) {
        Ok(bytes) => bytes,
        Err(message) => return draft.mistakes.push(&Place::File(path.into()), "", message),
    };
    match std::str::from_utf8(&bytes) {
        Ok(text) => parse(path, text.strip_prefix('\u{feff}').unwrap_or(text), draft),
        Err(error) => {
            let good = std::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default();
            let place = Lines::of(good).place(path, good.len()..good.len());
            draft.mistakes.push(&place, "", "is not UTF-8 from here on: save the file as UTF-8");
        }
    }
}

/// The bytes may hold passwords, so they are wiped after use.
fn size_and_bytes(path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    let size = fs::metadata(path).map_err(cannot)?.len();
    if size > MOST {
        return Err(format!("is {size} bytes large; a configuration has at most {MOST}"));
    }
    fs::read(path).map(Zeroizing::new).map_err(cannot)
}

pub(super) fn parse(path: &Path, text: &str, draft: &mut Draft) {
    let lines = Lines::of(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut broken_lines = Vec::new();
    for error in &errors {
        let place = lines.place(path, error.span().unwrap_or(0..0));
        draft.mistakes.push(&place, "", error.message().replace('\n', ", "));
        broken_lines.push(line_of(&place));
    }
    draft.table("", document.get_ref(), &|span| lines.place(path, span));
    // What could not be read as TOML was given a value by guess: what is said about that value is noise.
    draft.mistakes.retain(|mistake| mistake.option.is_empty() || !broken_lines.contains(&line_of(&mistake.place)));
}

fn line_of(place: &Place) -> Option<usize> {
    match place {
        Place::Line { line, .. } => Some(*line),
        _ => None,
    }
}

/// Where the lines of a text begin.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    fn place(&self, path: &Path, span: Range<usize>) -> Place {
        let line = self.starts.partition_point(|start| *start <= span.start).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..span.start).unwrap_or_default();
        Place::Line { path: path.into(), line, column: before.chars().count() + 1 }
    }
}
