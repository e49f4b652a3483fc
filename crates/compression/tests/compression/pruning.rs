//! The posterior over use decides what is pruned.

use compression::{Library, LoadError, Programs, PruneConfig, PruneReason, Pruned, prune};

use crate::worlds::World;

/// 600 calls of entries: 598 of `often` or `sometimes`, one of `once`, none of `never`. Arguments are of 20 kinds.
fn programs(world: &World, sometimes: usize) -> Programs {
    let text = "often = \\x. seq[pick x, lift x, open x, close x]\n\
                sometimes = \\x. seq[reach (on x), grasp x, lift x, open x, release x, close x]\n\
                once = \\x. seq[reach (on x), grasp x, stack x x, push x left]\n\
                never = \\x. seq[lift x, lift x, lift x, lift x, lift x, lift x]\n";
    let library = Library::from_text(text, &world.store, &world.base).unwrap();
    let texts: Vec<String> = (0..599)
        .map(|at| match at {
            0 => r#"once "thing 0""#.to_owned(),
            _ if at <= sometimes => format!(r#"sometimes "thing {}""#, at % 20),
            _ => format!(r#"often "thing {}""#, at % 20),
        })
        .collect();
    Programs::read(&world.store, &world.base, &library, &texts).unwrap()
}

fn by_share(min_probability: f64) -> PruneConfig {
    PruneConfig { min_probability, by_length: false, ..PruneConfig::default() }
}

fn removed(programs: &Programs, config: PruneConfig) -> Vec<(String, u64, PruneReason)> {
    let removed = prune(programs, config).unwrap().removed;
    removed.into_iter().map(|entry| (entry.name, entry.uses, entry.reason)).collect()
}

#[test]
fn what_is_called_at_most_once_is_pruned_by_its_share() {
    let world = World::new();
    let programs = programs(&world, 12);
    let traces = World::shown(&programs);
    let by_default = PruneConfig { by_length: false, ..PruneConfig::default() };
    let pruned = prune(&programs, by_default).unwrap();
    let gone: Vec<_> = pruned.removed.iter().map(|entry| (&*entry.name, entry.uses, entry.reason)).collect();
    assert_eq!(gone, [("never", 0, PruneReason::SmallShare), ("once", 1, PruneReason::SmallShare)]);
    for Pruned { share, .. } in &pruned.removed {
        assert!(share.low < share.mean && share.mean < share.high, "{share:?}");
        // A fixed share of one call in a thousand, as it was before, is below what 600 calls can show of any entry.
        assert!(share.high > 1e-3, "{share:?}");
    }
    assert_eq!(pruned.programs.library().len(), 2);
    assert_eq!(World::shown(&pruned.programs), traces);
    assert!(prune(&programs, by_share(0.0)).unwrap().removed.is_empty());
}

#[test]
fn calls_that_pay_keep_a_rare_entry() {
    let world = World::new();
    // One in two hundred calls, each of which saves a long body; a fixed share of one in a hundred would remove the entry.
    let names = |sometimes| {
        let removed = removed(&programs(&world, sometimes), by_share(0.75));
        removed.into_iter().map(|(name, ..)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(3), ["never", "once"]);
    assert_eq!(names(1), ["never", "once", "sometimes"]);
}

#[test]
fn an_entry_that_only_entries_call_is_in_use() {
    let world = World::new();
    let text = "inner = \\x. seq[pick x, lift x, open x]\nouter = \\x. seq[inner x, close x, inner x]\n";
    let library = Library::from_text(text, &world.store, &world.base).unwrap();
    let texts: Vec<String> = (0..400).map(|at| format!(r#"outer "thing {at}""#)).collect();
    let programs = Programs::read(&world.store, &world.base, &library, &texts).unwrap();
    let shares =
        |programs: &Programs| removed(programs, by_share(0.75)).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
    // No program calls `inner`, but every program makes two calls of it.
    assert!(!shares(&programs).contains(&"inner".to_owned()), "{:?}", shares(&programs));
}

#[test]
fn an_entry_without_which_the_corpus_is_shorter_goes_however_large_its_share() {
    let world = World::new();
    let library = Library::from_text("once = \\x. seq[pick x, lift x]", &world.store, &world.base).unwrap();
    let programs = Programs::read(&world.store, &world.base, &library, &[r#"once "a""#]).unwrap();
    let by_length = PruneConfig { min_probability: 0.0, ..PruneConfig::default() };
    let pruned = prune(&programs, by_length).unwrap();
    assert_eq!(pruned.removed[0].reason, PruneReason::Shorter);
    assert!(pruned.removed[0].saved > 0.0 && pruned.after.total() < pruned.before.total());
    assert_eq!(pruned.programs.texts(), [r#"seq[pick "a", lift "a"]"#]);
    let wrong = prune(&programs, by_share(1.5)).unwrap_err();
    assert!(matches!(wrong, LoadError::Setting { setting: "min_probability", .. }));
}
