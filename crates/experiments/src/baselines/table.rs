//! The comparison as a person reads it, in Markdown.

use std::fmt::Write as _;

use super::compare::{Comparison, Figure};

/// The figures of the first table, with their headings.
const COLUMNS: [(&str, &str); 8] = [
    ("classes", "classes"),
    ("task.nmi", "NMI task"),
    ("task.ami", "AMI task"),
    ("phase.nmi", "NMI phase"),
    ("phase.ami", "AMI phase"),
    ("phase.ari", "ARI phase"),
    ("phase.purity", "purity phase"),
    ("boundary_f1", "boundary F1"),
];

/// The figures of paired differences.
const PAIRED: [(&str, &str); 3] =
    [("task.nmi", "NMI task"), ("phase.nmi", "NMI phase"), ("boundary_f1", "boundary F1")];

impl Comparison {
    /// Two tables: the operators, and ours less each baseline.
    pub fn markdown(&self) -> String {
        let mut text = format!("## {}, budget `{}`\n\n", self.dataset, self.budget.name);
        let encoder = self.encoder.as_deref().unwrap_or("none");
        let _ = writeln!(
            text,
            "{} training fragments, {} steps; {} fragments of {} held-out episodes; features: {encoder}; vectors are clustered into \
             {} classes.\n",
            self.training_fragments, self.budget.steps, self.fragments, self.held_out_episodes, self.clusters
        );
        heading(&mut text, "operator | setting", &COLUMNS);
        for entry in &self.entries {
            let _ = write!(text, "| `{}` | {} |", entry.operator, setting(&entry.choice));
            COLUMNS.iter().for_each(|(name, _)| cell(&mut text, entry.figures.get(*name), name));
            text.push('\n');
        }
        if !self.differences.is_empty() {
            text.push_str("\nOurs less each baseline, paired by seed and episode:\n\n");
            heading(&mut text, "ours | baseline", &PAIRED);
            for difference in &self.differences {
                let _ = write!(text, "| `{}` | `{}` |", difference.ours, difference.baseline);
                PAIRED.iter().for_each(|(name, _)| cell(&mut text, difference.figures.get(*name), name));
                text.push('\n');
            }
        }
        for note in &self.notes {
            let _ = write!(text, "\n{note}.\n");
        }
        text.push_str(
            "\nMean ± standard deviation over seeds, and the 95 % interval by percentile bootstrap over held-out episodes. AMI is \
             NMI less what chance gives, which grows with the number of classes.\n",
        );
        text
    }
}

fn heading(text: &mut String, first: &str, columns: &[(&str, &str)]) {
    let _ = write!(text, "| {first} |");
    columns.iter().for_each(|(_, heading)| text.push_str(&format!(" {heading} |")));
    let _ = writeln!(text, "\n|---|---|{}", "---|".repeat(columns.len()));
}

fn cell(text: &mut String, figure: Option<&Figure>, name: &str) {
    let digits = if name == "classes" { 0 } else { 3 };
    let _ = match figure {
        None => write!(text, " – |"),
        Some(Figure { mean, std, interval }) => {
            let spread = std.filter(|_| digits > 0).map_or(String::new(), |std| format!(" ± {std:.digits$}"));
            let interval = interval.map_or(String::new(), |(low, high)| format!(" [{low:.digits$}, {high:.digits$}]"));
            write!(text, " {mean:.digits$}{spread}{interval} |")
        }
    };
}

/// A choice as `name value, name value`.
fn setting(choice: &serde_json::Value) -> String {
    let Some(fields) = choice.as_object() else { return choice.to_string() };
    let shown = fields.iter().map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name} {text}"),
        None => format!("{name} {value}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}
