//! The posterior over use decides what is pruned.

use compression::{Library, LoadError, Programs, PruneConfig, PruneReason, prune};

use crate::worlds::World;

/// Calls of `often` and two calls of `rarely`, among many calls of primitives.
fn programs(world: &World, calls: usize) -> Programs {
    let text = "often = \\x. seq[pick x, lift x, open x, close x]\n\
                rarely = \\x. seq[reach (on x), grasp x, stack x x, push x left]\n";
    let library = Library::from_text(text, &world.store, &world.base).unwrap();
    let texts: Vec<String> = (0..calls)
        .map(|at| match at % (calls / 2) {
            0 => format!(r#"rarely "thing {at}""#),
            _ => format!(r#"often "thing {at}""#),
        })
        .collect();
    Programs::read(&world.store, &world.base, &library, &texts).unwrap()
}

fn by_share(min_share: f64) -> PruneConfig {
    PruneConfig { min_share, by_length: false, ..PruneConfig::default() }
}

#[test]
fn a_share_that_is_small_for_certain_is_pruned() {
    let world = World::new();
    let programs = programs(&world, 600);
    let traces = World::shown(&programs);
    let pruned = prune(&programs, by_share(0.02)).unwrap();
    let removed: Vec<_> = pruned.removed.iter().map(|entry| (&*entry.name, entry.uses, entry.reason)).collect();
    assert_eq!(removed, [("rarely", 2, PruneReason::SmallShare)]);
    let share = pruned.removed[0].share;
    assert!(share.low < share.mean && share.mean < share.high && share.high < 0.02, "{share:?}");
    assert_eq!(pruned.programs.library().len(), 1);
    assert_eq!(World::shown(&pruned.programs), traces);
    // As many calls among fewer: that their share is small is not certain, and nothing goes.
    assert!(prune(&self::programs(&world, 20), by_share(0.02)).unwrap().removed.is_empty());
    assert!(prune(&programs, by_share(0.0)).unwrap().removed.is_empty());
}

#[test]
fn an_entry_that_only_entries_call_is_in_use() {
    let world = World::new();
    let text = "inner = \\x. seq[pick x, lift x, open x]\nouter = \\x. seq[inner x, close x, inner x]\n";
    let library = Library::from_text(text, &world.store, &world.base).unwrap();
    let texts: Vec<String> = (0..400).map(|at| format!(r#"outer "thing {at}""#)).collect();
    let programs = Programs::read(&world.store, &world.base, &library, &texts).unwrap();
    // No program calls `inner`, but every program makes two calls of it.
    assert!(prune(&programs, by_share(0.02)).unwrap().removed.is_empty());
}

#[test]
fn an_entry_without_which_the_corpus_is_shorter_goes_however_large_its_share() {
    let world = World::new();
    let library = Library::from_text("once = \\x. seq[pick x, lift x]", &world.store, &world.base).unwrap();
    let programs = Programs::read(&world.store, &world.base, &library, &[r#"once "a""#]).unwrap();
    let pruned = prune(&programs, PruneConfig::default()).unwrap();
    assert_eq!(pruned.removed[0].reason, PruneReason::Shorter);
    assert!(pruned.removed[0].saved > 0.0 && pruned.after.total() < pruned.before.total());
    assert_eq!(pruned.programs.texts(), [r#"seq[pick "a", lift "a"]"#]);
    let wrong = prune(&programs, by_share(1.5)).unwrap_err();
    assert!(matches!(wrong, LoadError::Setting { setting: "min_share", .. }));
}
