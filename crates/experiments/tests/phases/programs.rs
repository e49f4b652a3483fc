//! Programs at frames: the same horizon with a library and without one, and nothing of what is over.

use compression::{Library, Programs, Strategy};
use experiments::Prepared;
use experiments::cycle::corpus::{Corpus, Subject, UnderWay};
use experiments::cycle::demonstrations::{Demonstrations, SegmentId};
use experiments::cycle::refactoring::held_out;
use skills::{AlphabetConfig, Argument, SegmentConfig, SkillCall};

use super::prepared;

const HORIZON: usize = 3;

/// Programs of the embedded dataset, where the class of a segment is the axis that it moves along most.
fn corpus(prepared: &Prepared) -> (Demonstrations, Corpus) {
    let demonstrations = Demonstrations::new(prepared, &SegmentConfig::default()).unwrap();
    let actions = &prepared.source.dataset.columns().actions;
    let axis = |frames: &std::ops::Range<usize>| {
        let moved = |axis: usize| -> f32 { frames.clone().map(|at| actions.values[at * actions.width + axis]).sum() };
        (0..6).max_by(|&a, &b| moved(a).abs().total_cmp(&moved(b).abs())).unwrap() as i64
    };
    let labels: Vec<Vec<i64>> = demonstrations.all.iter().map(|one| one.segments.iter().map(axis).collect()).collect();
    let corpus = Corpus::with_labels(&demonstrations, &labels, &AlphabetConfig::default()).unwrap();
    (demonstrations, corpus)
}

/// The training motions, with a library of the two skills that most often follow each other.
fn with_library(demonstrations: &Demonstrations, corpus: &Corpus) -> (Vec<Subject>, Programs) {
    let subjects: Vec<Subject> = demonstrations.which(false).into_iter().map(Subject::Motion).collect();
    let mut counts = std::collections::BTreeMap::new();
    for pair in corpus.calls.iter().flat_map(|calls| calls.windows(2)) {
        *counts.entry([pair[0].skill.0, pair[1].skill.0]).or_insert(0) += 1;
    }
    let (pair, _) = counts.into_iter().max_by_key(|&(_, count)| count).unwrap();
    let [first, second] = pair.map(|skill| &corpus.alphabet.skills[skill].name);
    let text = format!("pair = \\a. \\b. \\rest. seq[{first} a, {second} b, rest]");
    let library = Library::from_text(&text, &corpus.store, &corpus.base).unwrap();
    let programs = corpus.bound(&library, &subjects).unwrap();
    (subjects, programs)
}

#[test]
fn a_program_covers_the_next_segments_and_is_the_same_at_every_frame_of_the_first() {
    let prepared = prepared();
    let (demonstrations, corpus) = corpus(&prepared);
    let (_, training) = with_library(&demonstrations, &corpus);
    let started = std::time::Instant::now();
    let mut arms = Vec::new();
    for library in [&Library::new(), training.library()] {
        let compiled = corpus.compiled(library, Strategy::Greedy).unwrap();
        arms.push(corpus.written(&compiled, Strategy::Greedy, HORIZON).unwrap());
    }
    let mut distinct: Vec<_> = arms[0].now.iter().flatten().collect();
    distinct.sort_unstable();
    distinct.dedup();
    let frames = demonstrations.all.iter().map(|one| one.frames.len()).sum::<usize>();
    eprintln!("{frames} frames, {} programs, both arms in {:?}", distinct.len(), started.elapsed());
    let mut called = false;
    for (at, demonstration) in demonstrations.all.iter().enumerate() {
        let calls = &corpus.calls[at];
        assert_eq!(arms[0].now[at].len(), demonstration.frames.len());
        for (frame, UnderWay { segment, rest }) in demonstration.frames.clone().zip(&corpus.under_way[at]) {
            let own = demonstrations.frames(SegmentId { demonstration: at, segment: *segment });
            assert!(own.contains(&frame));
            // The call under way says where it ends, and not how far that is from a start that is over.
            assert!(rest.arguments.iter().all(|argument| matches!(argument, Argument::To(_))));
            let mut end = corpus.positions[at][*segment].clone();
            corpus.alphabet.advance(&mut end, &calls[*segment]).unwrap();
            let mut found = corpus.positions[at][*segment].clone();
            corpus.alphabet.advance(&mut found, rest).unwrap();
            assert_eq!(found, end);
            // The next calls lead where those of the demonstration do, whichever way their targets are written.
            let whole: Vec<_> = calls[*segment..].iter().take(HORIZON).collect();
            let mut wanted = corpus.positions[at][*segment].clone();
            whole.iter().for_each(|call| corpus.alphabet.advance(&mut wanted, call).unwrap());
            for arm in &mut arms {
                let now = arm.now[at][frame - demonstration.frames.start];
                let found = corpus.alphabet.calls_of_term(&mut arm.store, &arm.signature, now).unwrap();
                let skills = |calls: &[&SkillCall]| calls.iter().map(|call| call.skill).collect::<Vec<_>>();
                assert_eq!(
                    skills(&found.iter().collect::<Vec<_>>()),
                    skills(&whole),
                    "demonstration {at}, frame {frame}"
                );
                // From anywhere: nothing in the program is counted from where it began.
                let mut end = vec![vec![9.0; 6]];
                found.iter().for_each(|call| corpus.alphabet.advance(&mut end, call).unwrap());
                if found.iter().any(|call| !call.arguments.is_empty()) {
                    assert_eq!(end, wanted, "demonstration {at}, frame {frame}");
                }
            }
        }
        let with = &arms[1];
        let entries = training.library().entries();
        called |= with.now[at].iter().any(|&now| {
            let names = with.store.constants(now).into_iter();
            names.into_iter().any(|name| entries.iter().any(|entry| entry.name == with.store.spelling(name)))
        });
    }
    assert!(called, "no program calls the library:\n{}", training.library().to_text());
}

#[test]
fn there_is_one_program_for_each_segment() {
    let prepared = prepared();
    let (demonstrations, corpus) = corpus(&prepared);
    let compiled = corpus.compiled(&Library::new(), Strategy::Greedy).unwrap();
    let written = corpus.written(&compiled, Strategy::Greedy, HORIZON).unwrap();
    for (at, demonstration) in demonstrations.all.iter().enumerate() {
        for rows in demonstrations.rows_of(at) {
            let programs = &written.now[at][rows];
            assert!(programs.iter().all(|program| *program == programs[0]));
        }
        assert_eq!(written.now[at].len(), demonstration.frames.len());
    }
}

/// The call of a segment leads to where the robot is when the segment ends.
#[test]
fn targets_are_where_the_robot_is_at_the_end_of_a_segment() {
    let prepared = prepared();
    let (demonstrations, corpus) = corpus(&prepared);
    let states = &prepared.source.dataset.columns().states;
    let mut compared = 0;
    for (at, demonstration) in demonstrations.all.iter().enumerate() {
        for (segment, call) in corpus.calls[at].iter().enumerate() {
            let own = demonstrations.frames(SegmentId { demonstration: at, segment });
            let mut end = corpus.positions[at][segment].clone();
            corpus.alphabet.advance(&mut end, call).unwrap();
            let last = own.end.min(demonstration.frames.end - 1);
            if call.arguments.is_empty() {
                continue;
            }
            let seen = &states.values[last * states.width..][..3];
            for (axis, (seen, grid)) in seen.iter().zip(&corpus.alphabet.grids[0]).enumerate() {
                let off = (end[0][axis] - f64::from(*seen)).abs();
                assert!(off <= 0.5 * grid + 1e-6, "{at} {segment} {axis}");
                compared += 1;
            }
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn held_out_demonstrations_are_described_with_the_library_and_without() {
    let prepared = prepared();
    let (demonstrations, corpus) = corpus(&prepared);
    let (subjects, training) = with_library(&demonstrations, &corpus);
    let found = held_out(&corpus, &demonstrations, &subjects, &training).unwrap().unwrap();
    assert_eq!(found.demonstrations, demonstrations.which(true).len());
    assert!(found.with_library > 0.0 && found.without_library > 0.0, "{found:?}");
    assert!((found.with_library - found.without_library).abs() > 1.0, "{found:?}");
    let (without, with) = found.per_demonstration();
    eprintln!("{without:.1} nats without the library and {with:.1} with it, per held-out demonstration");
    assert!((without * found.demonstrations as f64 - found.without_library).abs() < 1e-6);
    assert!((with * found.demonstrations as f64 - found.with_library).abs() < 1e-6);
    // Without a library both are the same.
    let plain = corpus.bound(&Library::new(), &subjects).unwrap();
    let found = held_out(&corpus, &demonstrations, &subjects, &plain).unwrap().unwrap();
    assert!((found.with_library - found.without_library).abs() < 1e-6);
}

#[test]
fn general_primitives_are_declared_only_where_an_instruction_needs_them() {
    let prepared = prepared();
    let (mut demonstrations, corpus) = corpus(&prepared);
    assert!(corpus.unknown.is_empty(), "{:?}", corpus.unknown);
    assert!(corpus.base.find(&corpus.store, "put").is_some());
    assert!(corpus.base.find(&corpus.store, "act_on").is_none(), "LIBERO needs none of them");
    demonstrations.all[0].instruction = "fold the towel".to_owned();
    let labels: Vec<Vec<i64>> = demonstrations.all.iter().map(|one| vec![0; one.segments.len()]).collect();
    let general = Corpus::with_labels(&demonstrations, &labels, &AlphabetConfig::default()).unwrap();
    assert!(general.unknown.is_empty(), "{:?}", general.unknown);
    assert_eq!(language::print(&general.store, general.tasks[0]), r#"act_on "fold" "towel""#);
}
