//! What a reader must know to interpret the figures.

use crate::cycle::summary::RunSummary;

/// The notes, as sentences.
pub(super) fn notes(summary: &RunSummary) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(rewriting) = summary.arms.iter().find_map(|arm| arm.rewriting.as_ref()) {
        notes.push(format!(
            "The library rewrites {} of {} demonstrations; their programs call {} of its {} entries.",
            rewriting.rewritten, rewriting.demonstrations, rewriting.entries_used, rewriting.entries
        ));
    }
    notes.extend([
        "Returns are imagined by the world model. They are not measured on a robot or in a simulator.".to_owned(),
        "All policies were trained on the same data with the same sizes and the same number of steps.".to_owned(),
    ]);
    notes.extend(summary.refactor.last().and_then(|last| last.held_out).map(|found| {
        let (without, with) = found.per_demonstration();
        format!(
            "Description length of {} held-out demonstrations: {with:.1} nats each with the library, {without:.1} without it.",
            found.demonstrations
        )
    }));
    for unknown in &summary.unknown_instructions {
        notes.push(format!("The grammar cannot parse an instruction, so its task is one opaque primitive: {unknown}."));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::report::fixture;

    #[test]
    fn notes_count_what_the_library_rewrites() {
        let found = notes(&fixture::summary());
        assert_eq!(found[0], "The library rewrites 7 of 9 demonstrations; their programs call 2 of its 2 entries.");
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn every_unknown_instruction_is_named() {
        let mut summary = fixture::summary();
        summary.unknown_instructions = vec!["`dance`: unknown verb".to_owned()];
        let found = notes(&summary);
        assert!(found.len() == 4 && found[3].contains("`dance`: unknown verb"), "{found:?}");
    }
}
