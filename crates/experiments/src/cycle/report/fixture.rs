//! A small summary of a run with two iterations, for the tests of the sections.

use compression::{DescriptionLength, Library, StepEnd};
use skills::{PhaseScores, ReplayScores};

use crate::cycle::summary::{Refactored, Rewriting, RunSummary, SleepScores, WakeResult};
use crate::cycle::wake::WakeScores;
use crate::scores::Agreement;

/// Two iterations, each of which adds an entry. All policies have different figures.
pub(super) fn summary() -> RunSummary {
    let agreement = Agreement { nmi: 0.4, ami: 0.3, ari: 0.2, purity: 0.5 };
    RunSummary {
        dataset: "libero_goal_mini".to_owned(),
        demonstrations: (6, 3),
        segments: 40,
        skills: 5,
        skill_tasks: agreement,
        skill_phases: Some(PhaseScores {
            purity: 0.7,
            nmi: 0.6,
            ami: 0.55,
            ari: 0.5,
            boundary_precision: 0.6,
            boundary_recall: 0.8,
            boundary_f1: 0.69,
            class_boundary_f1: 0.6,
            tolerance: 4,
            segments: 20,
            frames: 300,
        }),
        replay: ReplayScores {
            action_error: 0.3,
            path_error: 0.02,
            end_error: 0.1,
            end_error_max: 0.2,
            lost: 0.0,
            frames: 300,
        },
        unknown_instructions: Vec::new(),
        wake: vec![wake(0.50, 0), wake(0.55, 1)],
        sleep: vec![SleepScores { task: agreement, phase: Some(agreement) }],
        refactor: vec![refactored(1, (1000.0, 0.0), (800.0, 20.0)), refactored(2, (800.0, 20.0), (700.0, 30.0))],
        with_library: wake(0.60, 2),
        without_library: wake(0.50, 0),
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

fn wake(exact: f64, entries: usize) -> WakeResult {
    WakeResult {
        scores: WakeScores {
            frames: 100,
            token_accuracy: exact + 0.3,
            task_accuracy: exact + 0.35,
            motion_accuracy: exact + 0.25,
            structure_accuracy: exact + 0.2,
            number_accuracy: exact + 0.1,
            unknown: 0.01,
            emitted: 50,
            exact,
            task_exact: exact + 0.05,
            velocity: 1.0 - exact,
            chunk: 1.1 - exact,
            own_chunk: 1.2 - exact,
        },
        rewriting: Rewriting { demonstrations: 9, rewritten: 7, entries_used: entries, entries },
        vocabulary: 80,
    }
}

fn refactored(entries: usize, before: (f64, f64), after: (f64, f64)) -> Refactored {
    let length = |(programs, library): (f64, f64)| DescriptionLength { programs, library };
    Refactored {
        library: library(entries),
        before: length(before),
        after: length(after),
        epsilon: 0.25,
        candidates: Vec::new(),
        pruned: Vec::new(),
        end: StepEnd::NothingGains,
        programs: Vec::new(),
    }
}
