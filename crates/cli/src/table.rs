//! Columns of text.

/// On which side a column is padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// The rows under their headings, indented by two spaces, columns two spaces apart, without trailing spaces.
pub(crate) fn table(columns: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let headings: Vec<String> = columns.iter().map(|(heading, _)| heading.to_string()).collect();
    let lines = || std::iter::once(&headings).chain(rows);
    let mut widths = vec![0; columns.len()];
    for line in lines() {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for line in lines() {
        let mut shown = String::new();
        for ((cell, (_, align)), &width) in line.iter().zip(columns).zip(&widths) {
            shown.push_str(&match align {
                Align::Left => format!("  {cell:<width$}"),
                Align::Right => format!("  {cell:>width$}"),
            });
        }
        text.push_str(shown.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["λ", "1"], ["long", "1000"]].map(|row| row.map(String::from).to_vec());
        let shown = table(&[("name", Align::Left), ("n", Align::Right)], &rows);
        assert_eq!(shown, "  name     n\n  λ        1\n  long  1000\n");
    }
}
