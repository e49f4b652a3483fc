//! Figures over outer iterations: description lengths after each, and the policy that each of them trained.

use report::{Iteration, IterationPolicy};

use crate::cycle::summary::{PolicyResult, RunSummary};
use crate::cycle::wake::value_of;

/// One element for each iteration, after the state before the loop.
pub(super) fn iterations(summary: &RunSummary) -> Vec<Iteration> {
    let before = summary.refactor.first().map(|first| Iteration {
        t: 0,
        programs_nats: first.before.programs,
        library_nats: first.before.library,
        held_out_nats: first.held_out.map(|found| found.without_library),
        entries: 0,
        not_proposed: None,
        policy: None,
    });
    let after = summary.policies.iter().zip(&summary.refactor).zip(1..).map(|((trained, refactored), t)| Iteration {
        t,
        programs_nats: refactored.after.programs,
        library_nats: refactored.after.library,
        held_out_nats: refactored.held_out.map(|found| found.with_library),
        entries: refactored.library.len() as u64,
        not_proposed: Some(refactored.not_proposed.count as u64),
        policy: Some(policy(trained)),
    });
    before.into_iter().chain(after).collect()
}

/// The policy that iteration t trained before it refactored, so with F_{t−1}.
fn policy(trained: &PolicyResult) -> IterationPolicy {
    let value = |group: &str, name: &str| value_of(&trained.measures, group, name).unwrap_or(f64::NAN);
    IterationPolicy {
        library_entries: trained.rewriting.as_ref().map_or(0, |rewriting| rewriting.entries as u64),
        token_accuracy: value("emitter (TPE)", "token accuracy"),
        exact_match: value("emitter (TPE)", "exact programs"),
        velocity_error: value("decoder (LCAD)", "velocity error, oracle programs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::report::fixture;

    #[test]
    fn the_policy_of_an_iteration_has_the_library_of_the_one_before() {
        let found = iterations(&fixture::summary());
        assert_eq!(found.iter().map(|one| one.t).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(found.iter().map(|one| one.entries).collect::<Vec<_>>(), [0, 1, 2]);
        let entries: Vec<_> = found.iter().map(|one| one.policy.map(|policy| policy.library_entries)).collect();
        assert_eq!(entries, [None, Some(0), Some(1)]);
    }

    #[test]
    fn the_state_before_the_loop_is_that_before_the_first_refactoring() {
        let found = iterations(&fixture::summary());
        assert_eq!((found[0].programs_nats, found[0].library_nats), (1000.0, 0.0));
        assert_eq!((found[1].programs_nats, found[1].library_nats), (800.0, 20.0));
        assert_eq!((found[2].programs_nats, found[2].library_nats), (700.0, 30.0));
    }

    #[test]
    fn a_run_without_iterations_has_no_state_before_it() {
        let mut summary = fixture::summary();
        summary.refactor.clear();
        assert!(iterations(&summary).is_empty());
    }
}
