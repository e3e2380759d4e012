//! "Did you mean ...?"

/// The candidate most like `written`, if one is like it at all.
pub(super) fn nearest<'c>(written: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let written = written.to_ascii_lowercase().replace('-', "_");
    candidates
        .map(|candidate| (distance(&written, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many letters must be added, dropped, changed or swapped with their neighbour (Damerau-Levenshtein, with each
/// pair swapped at most once).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(LONGEST).collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// No option's name is as long; what is longer is like none of them.
const LONGEST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_slip_of_a_finger() {
        let names = ["max_clients", "max_clients_per_address", "idle_timeout", "tls"];
        for (written, expected) in [
            ("max_client", Some("max_clients")),
            ("max-clients", Some("max_clients")),
            ("maxclients", Some("max_clients")),
            ("idel_timeout", Some("idle_timeout")),
            ("TLS", Some("tls")),
            ("ssl", None),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, names.into_iter()), expected, "{written}");
        }
    }

    #[test]
    fn counts_edits() {
        for (a, b, expected) in [("", "", 0), ("abc", "", 3), ("abc", "acb", 1), ("kitten", "sitting", 3)] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
