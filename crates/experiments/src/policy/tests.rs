//! A tiny run on the embedded dataset, served.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dataset::{CameraId, FRAGMENT_LENGTH, FrameIndex, FrameKey, FrameOptions, FrameReader, Overrides};
use models::training::distributed::Alone;

use super::files::WITH;
use super::*;
use crate::cycle::driver::with_wake_data;
use crate::cycle::wake::{TrainedHead as _, evaluated_chunk};
use crate::cycle::{Event, Extensions, RunOptions, RunSettings, run};
use crate::{FeatureChoice, Prepared, Source};

/// A run with everything that tests of serving look at.
struct Made {
    folder: tempfile::TempDir,
    prepared: Prepared,
    settings: RunSettings,
}

impl Made {
    /// With cached features, or with an eye in emitter and decoder.
    fn new(eye: Option<EyeConfig>) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let choice = FeatureChoice {
            encoder: Some("pixels:2".to_owned()),
            cache: Some(folder.path().join("features")),
            ..FeatureChoice::default()
        };
        let source = Source::open("embedded:libero_goal_mini", &Overrides::default(), &choice, &mut |_| {}).unwrap();
        let prepared = Prepared::new(source, None, FRAGMENT_LENGTH).unwrap();
        let mut sets: Vec<String> = Vec::new();
        for section in ["world_model", "amortizer", "wake.emitter", "wake.decoder"] {
            for few in ["train.steps=12", "train.warmup=1", "train.evaluate_every=12", "batch=8"] {
                sets.push(format!("{section}.{few}"));
            }
        }
        let few = [
            "wake.judged=8",
            "wake.emitted=2",
            "wake.beam.width=2",
            "cycle.refactor.max_judged=2",
            "cycle.iterations=1",
        ];
        sets.extend(few.map(str::to_owned));
        let mut settings = RunSettings::resolve("tiny", &sets).unwrap();
        (settings.wake.emitter.model.eye, settings.wake.decoder.model.eye) = (eye, eye);
        let made = Made { folder, prepared, settings };
        run(&made.prepared, &made.settings, made.options(&made.out(), &mut |_| {})).unwrap().unwrap();
        made
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn options<'a>(&self, out: &'a Path, observer: &'a mut dyn FnMut(Event<'_>)) -> RunOptions<'a> {
        RunOptions {
            out,
            resume: false,
            preset: "tiny",
            seed: 5,
            device: &Device::Cpu,
            transport: Arc::new(Alone::default()),
            stop: None,
            observer,
            runs_on: "cpu".to_owned(),
            command: String::new(),
            extensions: Extensions::default(),
        }
    }

    fn policy(&self) -> RunPolicy {
        self.arm(None).unwrap()
    }

    fn arm(&self, arm: Option<&str>) -> Result<RunPolicy> {
        let arm = arm.map(str::to_owned);
        RunPolicy::load(
            &self.out(),
            &PolicyOptions {
                device: Device::Cpu,
                weights: None,
                replan: 5,
                emission: Emission::Call,
                executor: Executor::Decoder,
                arm,
            },
        )
    }

    /// What a client sees at a frame of the dataset.
    fn observation(&self, client: u64, frame: usize) -> Observation {
        let dataset = &self.prepared.source.dataset;
        let episode = dataset.spans().iter().position(|span| span.frames.contains(&frame)).unwrap();
        let keys: Vec<FrameKey> = (0..2).map(|camera| (CameraId(camera), FrameIndex(frame))).collect();
        Observation {
            client,
            images: FrameReader::new(dataset, FrameOptions::default()).read(&keys).unwrap(),
            state: dataset.columns().states.rows(frame..frame + 1).to_vec(),
            asked: Asked::Prompt(dataset.tasks()[dataset.spans()[episode].task.0 as usize].clone()),
            restart: true,
        }
    }

    fn held_out(&self) -> Vec<usize> {
        let spans = self.prepared.source.dataset.spans();
        let episodes = self.prepared.split.held_out.iter().step_by(3);
        episodes.map(|episode| spans[episode.at()].frames.start + 7).collect()
    }
}

#[test]
fn a_served_run_answers_as_its_evaluation_does_and_executes_programs() {
    let made = Made::new(None);
    let mut policy = made.policy();
    let about = policy.about().clone();
    assert_eq!((about.cameras.len(), about.widths.states, about.record.limits.len()), (2, 8, 7));
    assert_eq!(about.record.limits[6], [-1.0, 1.0]);
    assert!(about.notes.is_empty() && about.record.tasks.len() == 9, "{:?}", about.record.tasks);

    served_actions_are_those_of_the_evaluation(&made, &mut policy);
    plans_of_what_is_to_be_written_are_those_that_the_decoder_learns_from(&made);
    programs_are_written_again_only_when_something_has_changed(&made, &mut policy);
    programs_of_clients_are_executed_or_refused(&made, &mut policy);
    the_controller_drives_to_the_target_and_keeps_its_plan(&made);
    runs_of_earlier_versions_and_missing_files(&made);
}

#[test]
fn a_policy_with_an_eye_sees_images_as_in_its_evaluation_and_can_be_served_without_programs() {
    let eye = EyeConfig { side: 32, width: 4, stages: 2, blocks: 1, grid: 2, keypoints: 3, ..EyeConfig::default() };
    let made = Made::new(Some(eye));
    let mut policy = made.policy();
    assert_eq!(policy.about().cameras.len(), 2);
    assert_eq!(policy.about().encoder, "trained with the policy, 32×32 pixels");
    served_actions_are_those_of_the_evaluation(&made, &mut policy);

    // What is seen matters, and an image that is too small is refused.
    let one = made.observation(1, made.held_out()[0]);
    let mut policy = made.arm(Some("no_programs")).unwrap();
    let decision = policy.act(std::slice::from_ref(&one)).remove(0).unwrap();
    assert!(decision.program.is_empty() && decision.actions.len() == policy.about().chunk * 7);
    let black = |side: usize| Frame { width: side, height: side, pixels: vec![0; side * side * 3].into() };
    let blind = Observation { images: vec![black(64), black(64)], ..one.clone() };
    assert_ne!(policy.act(&[blind]).remove(0).unwrap().actions, decision.actions);
    let small = Observation { images: vec![black(16), black(16)], ..one };
    let Refusal::Other(reason) = policy.act(&[small]).remove(0).unwrap_err() else { panic!("another refusal") };
    assert!(reason.contains("16×16 pixels; the policy needs 32×32"), "{reason}");
    let error = made.arm(Some("best")).err().unwrap().to_string();
    assert!(error.contains("no trained policy `best`; it has `no_programs`, `t1`, `with`"), "{error}");
}

/// Unfolding the library and the distances of a written program gives the plan of the demonstration: the same calls, with
/// targets that differ by the grid at most where a distance is on the grid, and not at all where the program has a position.
fn plans_of_what_is_to_be_written_are_those_that_the_decoder_learns_from(made: &Made) {
    let out = made.out();
    with_wake_data(&made.prepared, &made.settings, &made.options(&out, &mut |_| {}), |data| {
        let (mut exact, mut all, mut moved) = (0, 0, false);
        let starts = data.demonstrations.all.iter().flat_map(|one| one.segments.iter().map(|segment| segment.start));
        for frame in starts.step_by(3) {
            let written = &data.samples.target(frame).pieces;
            let plan = data.samples.plans(&[frame]).swap_remove(0);
            let positions = data.samples.plan(frame);
            let here = data.demonstrations.position(frame).unwrap();
            assert_eq!(positions.seen_from(&here), plan);
            assert_ne!(positions.pieces, plan);
            let unfolded = data.planned(&[frame], std::slice::from_ref(written)).unwrap().swap_remove(0);
            let ids = |pieces: &[Piece]| pieces.iter().map(|piece| piece.id).collect::<Vec<u32>>();
            assert_eq!(ids(&unfolded), ids(&plan), "frame {frame}");
            let coarsest = data.alphabet.grids.iter().flatten().copied().fold(0.0, f64::max);
            for (found, wanted) in unfolded.iter().zip(&plan) {
                assert!((found.number - wanted.number).abs() <= 2.0 * coarsest, "frame {frame}: {found:?}, {wanted:?}");
                exact += usize::from(found.number == wanted.number);
                all += 1;
                moved |= found.number != 0.0;
            }
        }
        assert!(moved && exact * 3 > all, "{exact} of {all}");
    })
    .unwrap();
}

fn served_actions_are_those_of_the_evaluation(made: &Made, policy: &mut RunPolicy) {
    let frames = made.held_out();
    let observations: Vec<Observation> =
        frames.iter().zip(0..).map(|(frame, client)| made.observation(client, *frame)).collect();
    let singly: Vec<Decision> =
        observations.iter().map(|one| policy.act(std::slice::from_ref(one)).remove(0).unwrap()).collect();
    let together: Vec<Decision> = policy.act(&observations).into_iter().map(|one| one.unwrap()).collect();
    let emitter = load_emitter(&made.out().join(WITH), &Device::Cpu).unwrap();
    let decoder = load_decoder(&made.out().join(WITH), &Device::Cpu).unwrap();
    let out = made.out();
    let close = |found: &[f32], wanted: &[f32]| found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-4);
    with_wake_data(&made.prepared, &made.settings, &made.options(&out, &mut |_| {}), |data| {
        for (row, frame) in frames.iter().enumerate() {
            let programs = emitter.model.programs(data, &[*frame]).unwrap().unwrap();
            let plans = data.planned(&[*frame], &programs).unwrap();
            let mut wanted =
                evaluated_chunk(&decoder.model, (data.table, data.pictures, &data.alphabet.layout), *frame, &plans)
                    .unwrap();
            decoder.record.scales.actions.invert(&mut wanted);
            policy.about.record.clip(&mut wanted);
            let here = data.demonstrations.position(*frame).unwrap();
            let executed = &policy.episodes[&(row as u64)].executed;
            let near = |(a, b): (&Piece, &Piece)| a.id == b.id && (a.number - b.number).abs() < 1e-5;
            let seen = executed.seen_from(&here);
            assert!(seen.len() == plans[0].len() && seen.iter().zip(&plans[0]).all(near), "the plan at frame {frame}");
            for decision in [&singly[row], &together[row]] {
                assert_eq!(decision.actions.len(), wanted.len());
                assert!(close(&decision.actions, &wanted), "{:?}\n{wanted:?}", decision.actions);
            }
        }
    })
    .unwrap();
    let spread = singly.iter().any(|one| one.actions != singly[0].actions);
    assert!(spread, "other frames have other actions, or nothing was tested");
}

fn programs_are_written_again_only_when_something_has_changed(made: &Made, policy: &mut RunPolicy) {
    let frame = made.held_out()[0];
    let first = made.observation(9, frame);
    let again = Observation { restart: false, ..first.clone() };
    let mut act = |one: &Observation| policy.act(std::slice::from_ref(one)).remove(0).unwrap();
    let begun = act(&first);
    assert!(begun.rewritten);
    let next = act(&again);
    assert!(!next.rewritten, "{}", begun.program);
    assert!(next.program == begun.program && next.actions == begun.actions);
    // A robot that is somewhere else at once is in another episode.
    let mut moved = again.clone();
    moved.state[0] += 1.0;
    moved.state[1] -= 1.0;
    assert!(act(&moved).rewritten);
    // Whatever a call is, it does not last for ever.
    let rewritten = (0..400).filter(|_| act(&again).rewritten).count();
    assert!((1..200).contains(&rewritten), "{rewritten}");
    policy.forget(9);
    assert!(!policy.episodes.contains_key(&9));
}

fn programs_of_clients_are_executed_or_refused(made: &Made, policy: &mut RunPolicy) {
    let seen = made.observation(4, made.held_out()[1]);
    let mut act = |source: &str| {
        let one = Observation { asked: Asked::Program(source.to_owned()), ..seen.clone() };
        policy.act(std::slice::from_ref(&one)).remove(0)
    };
    // Two tasks that training had, one that it did not have, and a skill with its target.
    let decision = act(r#"seq[turn_on "stove", put "bowl" (on "plate")]"#).unwrap();
    assert_eq!((decision.task.as_str(), decision.step), (r#"turn_on "stove""#, Some((0, 2))));
    let decision = act(r#"put "bowl" (on "stove")"#).unwrap();
    assert_eq!(decision.step, Some((0, 1)));
    let decision = act(r#"open "stove""#).unwrap();
    assert_eq!(decision.task, r#"open "stove""#);
    let task = &policy.episodes[&4].task.text;
    assert_eq!(task, r#"open "stove""#, "the emitter was made to begin with it");
    let skill = policy.tongue.alphabet.skills.iter().find(|skill| skill.arguments.len() == 1).unwrap().name.clone();
    let text = format!("seq[{skill} pose[0.1,0.2,1,0,0,0], {skill} pose[0.1,0.2,1.2,0,0,0]]");
    let mut act = |source: &str| {
        let one = Observation { asked: Asked::Program(source.to_owned()), ..seen.clone() };
        policy.act(std::slice::from_ref(&one)).remove(0)
    };
    let decision = act(&text).unwrap();
    let [name, readable, call] = decision.skill.clone().unwrap();
    assert_eq!((name.as_str(), decision.progress), (skill.as_str(), Some(0.0)));
    assert!(readable != name && call.starts_with(&skill), "{readable}, {call}");
    let span = decision.active.clone().unwrap();
    assert!(decision.program[span].starts_with(&format!("{skill} pose")), "{}", decision.program);

    let Err(Refusal::Program(report)) = act("seq[pick left]") else { panic!("ill-typed") };
    assert_eq!(report.source_text, "seq[pick left]");
    let reasons = [
        (r#"pick "unicorn""#, "has words that no training program has"),
        ("seq[]", "the program does nothing"),
        (r#"branch(is_open "drawer", open "drawer", close "drawer")"#, "only the world can decide"),
    ];
    for (source, part) in reasons {
        let Err(Refusal::Other(reason)) = act(source) else { panic!("{source}") };
        assert!(reason.contains(part), "{reason}");
    }
    small_programs_that_ask_for_much_work_are_refused(&mut act, &skill);
    // A refusal does not affect the others of its batch.
    let bad = Observation { asked: Asked::Program("nonsense".to_owned()), ..seen.clone() };
    let good = made.observation(5, made.held_out()[0]);
    let short = Observation { client: 6, state: vec![0.0; 3], ..seen.clone() };
    let far = Observation { client: 7, state: vec![1e30; 8], ..seen.clone() };
    let pixel = Frame { width: 1, height: 1, pixels: vec![0; 3].into() };
    let small = Observation { client: 8, images: vec![pixel.clone(), pixel], ..seen.clone() };
    let found = policy.act(&[bad, good, short, far, small]);
    assert!(found[0].is_err() && found[1].is_ok() && found[2].is_err());
    let reason = |at: usize| match &found[at] {
        Err(Refusal::Other(reason)) => reason.clone(),
        other => panic!("{other:?}"),
    };
    assert!(reason(3).contains("number 0 of the state is 1e30, more than 10000 standard deviations"), "{}", reason(3));
    assert!(reason(4).contains("1×1 pixels; the policy needs 2×2 or more"), "{}", reason(4));
}

/// By default the controller executes programs, and a plan is written once.
fn the_controller_drives_to_the_target_and_keeps_its_plan(made: &Made) {
    let (emission, executor) = (Emission::default(), Executor::default());
    let options = PolicyOptions { device: Device::Cpu, weights: None, replan: 5, emission, executor, arm: None };
    let mut policy = RunPolicy::load(&made.out(), &options).unwrap();
    assert_eq!((policy.executor, policy.rhythm.emission), (Executor::Controller, Emission::Plan));
    let seen = made.observation(3, made.held_out()[0]);
    let mut act = |asked: Asked, restart: bool| {
        let one = Observation { asked, restart, ..seen.clone() };
        policy.act(std::slice::from_ref(&one)).remove(0).unwrap()
    };
    assert!(act(seen.asked.clone(), true).rewritten);
    assert!(!act(seen.asked.clone(), false).rewritten);
    let alphabet = policy.tongue.alphabet.clone();
    let skill = alphabet.skills.iter().find(|skill| skill.arguments == [0]).unwrap();
    let here = policy.rhythm.body(&alphabet).position(&seen.state)[0].clone();
    let chunk = policy.about.chunk;
    for (dim, by) in [(0, 0.1), (1, -0.1), (2, 0.1)] {
        let mut target = here.clone();
        target[dim] += by;
        let numbers: Vec<String> = target.iter().map(f64::to_string).collect();
        let call = format!("{} pose[{}]", skill.name, numbers.join(","));
        let program = Asked::Program(format!("seq[{call}, {call}]"));
        let one = Observation { asked: program, ..seen.clone() };
        let decision = policy.act(std::slice::from_ref(&one)).remove(0).unwrap();
        assert_eq!(decision.actions.len(), chunk * 7);
        let first = &decision.actions[..7];
        assert!(f64::from(first[dim]) * by > 0.0, "{first:?}");
        let others = (0..3).filter(|other| *other != dim);
        assert!(others.map(|other| first[other].abs()).fold(0.0, f32::max) < 0.05, "{first:?}");
        assert!((f64::from(first[6]) - skill.commands[0]).abs() < 1e-3, "{first:?}");
    }
}

/// All clients wait while a program is read: thirty bytes once took eleven seconds.
fn small_programs_that_ask_for_much_work_are_refused(
    act: &mut impl FnMut(&str) -> std::result::Result<Decision, Refusal>,
    skill: &str,
) {
    let most = tongue::MOST_CALLS;
    let decision = act(&format!(r#"repeat(seq[open "stove", turn_on "stove"], {})"#, most / 2)).unwrap();
    assert_eq!(decision.step, Some((0, most)), "as many as are allowed");
    let decision = act(&format!("repeat({skill} pose[0.1,0.2,1,0,0,0], {most})")).unwrap();
    assert_eq!(decision.step, Some((0, 1)), "skills in a row are one step");
    // Twice as many calls for each name.
    let doubled =
        |times: usize| (0..times).fold(r#"open "stove""#.to_owned(), |term, _| format!(r"(\x. seq[x, x]) ({term})"));
    // Two places for each of 18 names, in one argument.
    let wide = (0..18).fold(r#""stove""#.to_owned(), |term, _| format!(r"(\x. at x (between x x)) ({term})"));
    let long = (0..10).fold(r#""stove""#.to_owned(), |term, _| format!("(at {term} left)"));
    let cases = [
        (
            format!(r#"repeat(open "stove", {})"#, most + 1),
            "makes more than 1000 calls; a served policy executes at most",
        ),
        (r#"repeat(open "stove", 30000)"#.to_owned(), "lower a count of `repeat`, or send the program in parts"),
        (r#"repeat(repeat(open "stove", 99999), 99999)"#.to_owned(), "makes more than 1000 calls"),
        (doubled(12), "more than 1000 calls"),
        (doubled(40), "becomes too large when its functions are applied"),
        (format!("open ({wide})"), "becomes too large when its functions are applied"),
        (format!("repeat(open {long}, {most})"), "have more than 65536 bytes written out"),
    ];
    for (source, part) in cases {
        let Err(Refusal::Other(reason)) = act(&source) else { panic!("{source}") };
        assert!(reason.contains(part), "{source}: {reason}");
    }
}

fn runs_of_earlier_versions_and_missing_files(made: &Made) {
    std::fs::remove_file(made.out().join(POLICY)).unwrap();
    let old = made.policy();
    assert!(old.about().record.tasks.is_empty());
    assert_eq!(old.about().record.limits[6], [-1.0, 1.0], "limits come from the skills' layout");
    std::fs::remove_dir_all(made.out().join(WITH)).unwrap();
    assert_eq!(made.policy().about().chunk, old.about().chunk, "the last policy of the loop serves as well");
    std::fs::remove_dir_all(made.out().join("t1/emitter")).unwrap();
    let options = PolicyOptions {
        device: Device::Cpu,
        weights: None,
        replan: 5,
        emission: Emission::Call,
        executor: Executor::Decoder,
        arm: None,
    };
    let error = RunPolicy::load(&made.out(), &options).err().unwrap().to_string();
    assert!(error.contains("has no trained policy"), "{error}");
}
