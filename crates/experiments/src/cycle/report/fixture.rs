//! A small summary of a run with two iterations, for the tests of the sections.

use compression::{DescriptionLength, EntryKinds, Library, NotProposed, StepEnd, Stop};
use models::kernel::KernelForm;
use skills::{PhaseScores, ReplayScores};

use crate::cycle::class_scores::{KernelAgreement, MatchedScores};
use crate::cycle::driver::arms;
use crate::cycle::summary::{PolicyResult, Refactored, Rewriting, RunSummary};
use crate::cycle::wake::Measure;
use crate::scores::Agreement;

/// Two iterations, each of which adds an entry. All policies have different figures.
pub(super) fn summary() -> RunSummary {
    let agreement = Agreement { nmi: 0.4, ami: 0.3, ari: 0.2, purity: 0.5 };
    RunSummary {
        dataset: "libero_goal_mini".to_owned(),
        labels: None,
        demonstrations: (6, 3),
        segments: 40,
        skills: 5,
        skill_tasks: agreement,
        skill_phases: Some(phases(0.6)),
        classes: Some(MatchedScores { kernel: phases(0.65), actions: phases(0.55) }),
        kernel: Some(KernelAgreement {
            form: KernelForm::Amortized,
            horizon: 16,
            starts: 8,
            samples: 4,
            segments: 30,
            pairs: 435,
            spearman: Some(0.93),
            phases: None,
            reference_phases: None,
        }),
        replay: ReplayScores { action_error: 0.3, duration_error: 0.2, clamped: 0, frames: 300 },
        unknown_instructions: Vec::new(),
        policies: vec![policy(arms::WITHOUT, 0.50, 0), policy(arms::WITH, 0.55, 1)],
        refactor: vec![refactored(1, (1000.0, 0.0), (800.0, 20.0)), refactored(2, (800.0, 20.0), (700.0, 30.0))],
        arms: vec![policy(arms::WITH, 0.60, 2), policy(arms::WITHOUT, 0.50, 0), no_programs()],
    }
}

/// A library of so many entries over the standard signature.
pub(super) fn library(entries: usize) -> Library {
    let places = ["basket", "drawer", "cabinet"];
    let entry = |at: usize| {
        serde_json::json!({
            "name": format!("fn_{at}"),
            "arity": 1,
            "type": "Lang -> Motion",
            "iteration": at + 1,
            "gain": 10.0,
            "uses": 3,
            "body": format!("\\x0. seq[pick x0, place x0 (in \"{}\")]", places[at % places.len()]),
        })
    };
    let all: Vec<_> = (0..entries).map(entry).collect();
    serde_json::from_value(serde_json::json!({ "version": 1, "next": entries, "abstractions": all })).unwrap()
}

fn phases(nmi: f64) -> PhaseScores {
    PhaseScores {
        purity: 0.7,
        nmi,
        ami: 0.55,
        ari: 0.5,
        boundary_precision: 0.6,
        boundary_recall: 0.8,
        boundary_f1: 0.69,
        class_boundary_f1: 0.6,
        tolerance: 4,
        segments: 20,
        frames: 300,
    }
}

fn policy(name: &str, exact: f64, entries: usize) -> PolicyResult {
    let (emitter, decoder) = ("emitter (TPE)", "decoder (LCAD)");
    PolicyResult {
        name: name.to_owned(),
        measures: vec![
            Measure::higher(emitter, "token accuracy", exact + 0.3, ""),
            Measure::higher(emitter, "exact programs", exact, ""),
            Measure::lower(decoder, "chunk error", 1.2 - exact, ""),
            Measure::lower(decoder, "velocity error, oracle programs", 1.0 - exact, ""),
        ],
        rewriting: Some(Rewriting { demonstrations: 9, rewritten: 7, entries_used: entries, entries }),
        vocabulary: 80,
    }
}

fn no_programs() -> PolicyResult {
    let measures = vec![Measure::lower("decoder (LCAD)", "chunk error", 0.9, "")];
    PolicyResult { name: arms::NO_PROGRAMS.to_owned(), measures, rewriting: None, vocabulary: 20 }
}

fn refactored(entries: usize, before: (f64, f64), after: (f64, f64)) -> Refactored {
    let length = |(programs, library): (f64, f64)| DescriptionLength { programs, library };
    Refactored {
        library: library(entries),
        before: length(before),
        after: length(after),
        epsilon: 0.25,
        candidates: Vec::new(),
        not_proposed: NotProposed { count: 3, best_gain: Some(2.5) },
        pruned: Vec::new(),
        kinds: EntryKinds::default(),
        held_out: None,
        end: StepEnd::NothingGains,
        search: Stop::Optimal,
        programs: Vec::new(),
    }
}
