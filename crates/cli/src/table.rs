//! Columns of text.

use dataset::printable;

/// On which side a column is padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// The rows under their headings, indented by two spaces, columns two spaces apart, without trailing spaces. Cells come
/// from datasets, so what a terminal would obey is shown instead.
pub(crate) fn table(columns: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let headings = columns.iter().map(|(heading, _)| printable(heading)).collect();
    let rows = rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect());
    let lines: Vec<Vec<String>> = std::iter::once(headings).chain(rows).collect();
    let mut widths = vec![0; columns.len()];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for line in &lines {
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

    #[test]
    fn control_characters_of_cells_do_not_reach_the_terminal() {
        let rows = [["pour\u{1b}[2J\r\n", "1"], ["put", "2"]].map(|row| row.map(String::from).to_vec());
        let shown = table(&[("task\u{7}", Align::Left), ("n", Align::Right)], &rows);
        let wanted = "  task\\u{7}                n\n  pour\\u{1b}[2J\\u{d}\\u{a}  1\n  put                      2\n";
        assert_eq!(shown, wanted);
    }
}
