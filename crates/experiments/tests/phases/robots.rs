//! Robots that are no arm with velocity commands: recognised, cut where a person would cut, written as targets, and replayed.

use dataset::synthetic::{Options, Synthetic, write};
use dataset::{Dataset, FRAGMENT_LENGTH, Overrides, RobotLayout, Root};
use experiments::cycle::corpus::Corpus;
use experiments::cycle::demonstrations::Demonstrations;
use experiments::cycle::skill_scores::{replay, skill_phases};
use experiments::{FeatureChoice, Prepared, Source};
use language::print;
use skills::{AlphabetConfig, Argument, Control, SegmentConfig, Space};

/// A robot's demonstrations as programs. Classes are those of the phase that most of a segment is, for want of a world model.
fn written(robot: Synthetic) -> (Prepared, Demonstrations, Corpus) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join(robot.name());
    write(&place, robot, &Options { per_task: 3, ..Options::default() }).unwrap();
    let blind = Overrides { cameras: Some(Vec::new()), ..Overrides::default() };
    let source = Source::open(place.to_str().unwrap(), &blind, &FeatureChoice::default(), &mut |_| {}).unwrap();
    let prepared = Prepared::new(source, None, FRAGMENT_LENGTH).unwrap();
    let demonstrations = Demonstrations::new(&prepared, &SegmentConfig::default()).unwrap();
    let phases = &prepared.source.dataset.columns().labels["phase"];
    let middle = |frames: &std::ops::Range<usize>| phases[(frames.start + frames.end) / 2];
    let labels: Vec<Vec<i64>> =
        demonstrations.all.iter().map(|one| one.segments.iter().map(middle).collect()).collect();
    let corpus = Corpus::with_labels(&demonstrations, &labels, &AlphabetConfig::default()).unwrap();
    (prepared, demonstrations, corpus)
}

#[test]
fn finding_1_a_humanoid_of_34_columns_is_written_as_the_targets_of_its_limbs() {
    let (prepared, demonstrations, corpus) = written(Synthetic::Humanoid);
    assert_eq!(demonstrations.layout.width, 34);
    let columns: usize = demonstrations.layout.groups.iter().map(|group| group.columns.len()).sum();
    assert_eq!(columns + demonstrations.layout.grippers.len(), 34, "{:?}", demonstrations.layout);
    assert!(demonstrations.layout.groups.len() > 3, "limbs are groups: {:?}", demonstrations.layout);
    let scores = skill_phases(&prepared, &demonstrations, &corpus).unwrap().unwrap();
    assert!(scores.boundary_f1 > 0.85, "{scores:?}");
    assert!(replay(&demonstrations, &corpus).unwrap().action_error < 0.2);
    let text = print(&corpus.store, corpus.motions[0]);
    assert!(text.contains("joints["), "{text}");
}

#[test]
fn finding_2_absolute_joint_targets_are_positions_and_an_episode_has_as_many_segments_as_a_person_names() {
    for robot in [Synthetic::So101, Synthetic::Aloha] {
        let (prepared, demonstrations, corpus) = written(robot);
        for group in &demonstrations.layout.groups {
            assert_eq!((group.control, &group.space), (Control::Absolute, &Space::Joints), "{group:?}");
        }
        assert_eq!(demonstrations.layout.grippers.len(), if robot == Synthetic::Aloha { 2 } else { 1 });
        let scores = skill_phases(&prepared, &demonstrations, &corpus).unwrap().unwrap();
        assert!(scores.boundary_f1 > 0.85, "{}: {scores:?}", robot.name());
        // A target is a position that the joint was commanded to, not a sum of positions.
        let limits = &demonstrations.layout.groups[0].limits;
        for call in corpus.calls.iter().flatten() {
            let first = corpus.alphabet.skills[call.skill.0].arguments.first();
            if let (Some(0), Some(Argument::To(target))) = (first, call.arguments.first()) {
                for ((value, [least, most]), grid) in target.iter().zip(limits).zip(&corpus.alphabet.grids[0]) {
                    assert!((least - grid..=most + grid).contains(value), "{value} is not within {least} and {most}");
                }
            }
        }
        assert!(replay(&demonstrations, &corpus).unwrap().action_error < 0.2, "{}", robot.name());
    }
}

#[test]
fn a_base_without_a_position_is_written_by_distances_and_its_arm_by_targets() {
    let (prepared, demonstrations, corpus) = written(Synthetic::Mobile);
    let base = demonstrations.layout.groups.iter().position(|group| group.control == Control::Velocity).unwrap();
    assert!(!demonstrations.layout.groups[base].anchored());
    let (mut driven, mut reached) = (0, 0);
    for call in corpus.calls.iter().flatten() {
        for (group, argument) in corpus.alphabet.skills[call.skill.0].arguments.iter().zip(&call.arguments) {
            match argument {
                Argument::By(_) if *group == base => driven += 1,
                Argument::To(_) if *group != base => reached += 1,
                Argument::To(_) => panic!("a base that does not know where it is has no target"),
                Argument::By(_) => {}
            }
        }
    }
    assert!(driven > 5 && reached > 5, "{driven} {reached}");
    let scores = skill_phases(&prepared, &demonstrations, &corpus).unwrap().unwrap();
    assert!(scores.boundary_f1 > 0.7, "{scores:?}");
}

/// The columns' meaning can be said instead of measured, and then decides how arguments are read.
#[test]
fn what_the_user_says_about_control_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("arm");
    write(&place, Synthetic::StateOnly, &Options { per_task: 2, ..Options::default() }).unwrap();
    let overrides = Overrides { control: vec!["arm=relative".parse().unwrap()], ..Overrides::default() };
    let dataset = Dataset::open(Root::Directory(place), &overrides).unwrap();
    let layout = subtasks::robot::action_layout(&dataset, &RobotLayout::of(&dataset)).unwrap();
    assert_eq!(layout.groups[0].control, Control::Relative);
}
