//! Tables and numbers for people.

/// A table: one heading per column, one name per row.
#[derive(Debug)]
pub struct Table {
    heads: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
}

impl Table {
    /// An empty table with these columns.
    #[must_use]
    pub fn new(heads: &[&str]) -> Self {
        Self { heads: heads.iter().map(|&head| head.to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells stay empty.
    pub fn row(&mut self, name: &str, cells: impl IntoIterator<Item = String>) {
        self.rows.push((name.to_owned(), cells.into_iter().collect()));
    }

    /// The table's lines: names to the left, cells to the right.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let names = self.rows.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.heads.len())
            .map(|at| {
                let cells = self.rows.iter().filter_map(|(_, cells)| cells.get(at)).chain(self.heads.get(at));
                cells.map(|cell| width(cell)).max().unwrap_or(0)
            })
            .collect();
        let line = |name: &str, cells: &[String]| {
            let mut line = format!("  {name:names$}");
            for (at, width) in widths.iter().enumerate() {
                let cell = cells.get(at).map_or("", String::as_str);
                line.push_str(&format!("  {cell:>width$}"));
            }
            line.trim_end().to_owned()
        };
        let rule = format!("  {}", "-".repeat(names + widths.iter().map(|width| width + 2).sum::<usize>()));
        let mut lines = vec![line("", &self.heads), rule];
        lines.extend(self.rows.iter().map(|(name, cells)| line(name, cells)));
        lines
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// `1234567` as `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Microseconds, with three digits or so: `870 us`, `1.23 ms`, `456 ms`, `2.50 s`.
#[must_use]
pub fn micros(number: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let value = number as f64;
    match number {
        0..1_000 => format!("{number} us"),
        1_000..10_000 => format!("{:.2} ms", value / 1e3),
        10_000..100_000 => format!("{:.1} ms", value / 1e3),
        100_000..1_000_000 => format!("{:.0} ms", value / 1e3),
        _ => format!("{:.2} s", value / 1e6),
    }
}

/// Bytes, in the unit that fits: `870 B`, `1.6 KiB`, `12.3 MiB`.
#[must_use]
pub fn bytes(number: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
    let value = number as f64;
    match number {
        0..1024 => format!("{number} B"),
        1024..1_048_576 => format!("{:.1} KiB", value / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", value / 1_048_576.0),
        _ => format!("{:.1} GiB", value / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_under_their_heads() {
        let mut table = Table::new(&["through Myriad", "directly"]);
        table.row("clients", ["10,000".into(), "9".into()]);
        table.row("slowest", ["1.2 ms".into()]);
        assert_eq!(
            table.lines(),
            [
                "           through Myriad  directly",
                "  ---------------------------------",
                "  clients          10,000         9",
                "  slowest          1.2 ms",
            ]
        );
    }

    #[test]
    fn numbers_are_readable() {
        let table = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ];
        for (number, text) in table {
            assert_eq!(grouped(number), text);
        }
        let table = [
            (0, "0 us"),
            (999, "999 us"),
            (1230, "1.23 ms"),
            (45_600, "45.6 ms"),
            (456_000, "456 ms"),
            (2_500_000, "2.50 s"),
        ];
        for (number, text) in table {
            assert_eq!(micros(number), text);
        }
        let table = [(870, "870 B"), (1640, "1.6 KiB"), (12_900_000, "12.3 MiB"), (3 << 30, "3.0 GiB")];
        for (number, text) in table {
            assert_eq!(bytes(number), text);
        }
    }
}
