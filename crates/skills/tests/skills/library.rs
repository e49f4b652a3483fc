//! Skills in a library: what strict tokens cannot share, classes with arguments can.

use std::ops::Range;

use clustering::Points;
use compression::{Config, Corpus, Library, Programs, admit_all, compress, refactor, verify};
use language::{Signature, TermId, TermStore, parse};
use skills::{
    ActionLayout, AlphabetConfig, Episode, Position, SegmentConfig, SkillAlphabet, SkillCall, SkillError, StrictConfig,
    Written, adopt, motions_in, motor_config, motor_refactor_config, segment, strict_sweep,
};

/// Reach, grasp, lift, carry and release, every time by other amounts and at other speeds.
fn demonstrations() -> Vec<Vec<f32>> {
    let demonstration = |number: usize| {
        let vary = |step: usize| ((number * step) % 7) as f32 / 7.0;
        let parts: [([f32; 3], usize, f32); 5] = [
            ([0.5 + vary(3) / 3.0, -0.3 - vary(2) / 2.0, -0.6], 14 + number % 9, -1.0),
            ([0.01, 0.0, -0.02], 10, 1.0),
            ([0.02, 0.0, 0.6 + vary(5) / 4.0], 12 + number % 4, 1.0),
            ([-0.2 + vary(4) / 3.0, 0.7 + vary(1) / 4.0, 0.05], 18 + number % 11, 1.0),
            ([0.0, 0.01, 0.02], 8, -1.0),
        ];
        let rows = |&(velocity, length, gripper): &([f32; 3], usize, f32)| {
            let row = [velocity[0], velocity[1], velocity[2], 0.0, 0.0, 0.0, gripper];
            std::iter::repeat_n(row, length).flatten().collect::<Vec<f32>>()
        };
        parts.iter().flat_map(rows).collect()
    };
    (0..40).map(demonstration).collect()
}

struct Corpora {
    alphabet: SkillAlphabet,
    start: Position,
    calls: Vec<Vec<SkillCall>>,
    store: TermStore,
    signature: Signature,
    programs: Vec<TermId>,
}

fn corpora(demonstrations: &[Vec<f32>]) -> Corpora {
    // Positions are sums of commands, in units that no two episodes share: calls are distances.
    let mut layout = ActionLayout::libero();
    layout.groups[0].states.clear();
    let read = |rows: &Vec<f32>| Episode::new(&layout, Points::new(rows, 7).unwrap(), None).unwrap();
    let episodes: Vec<Episode> = demonstrations.iter().map(read).collect();
    let cut = |episode: &Episode| segment(episode, &layout, &SegmentConfig::default()).unwrap();
    let segments: Vec<Vec<Range<usize>>> = episodes.iter().map(cut).collect();
    assert!(segments.iter().all(|segments| segments.len() == 5));
    let mut parts = Vec::new();
    for (episode, segments) in episodes.iter().zip(&segments) {
        parts.extend(segments.iter().map(|part| episode.motion(part).unwrap()));
    }
    let labels: Vec<i64> = (0..parts.len() as i64).map(|at| at % 5).collect();
    let alphabet = SkillAlphabet::fit(&parts, &labels, layout.clone(), &AlphabetConfig::default()).unwrap();
    let encode = |(episode, segments): (&Episode, &Vec<Range<usize>>)| Written {
        start: alphabet.start(episode),
        calls: alphabet.encode(episode, segments, &[0, 1, 2, 3, 4]).unwrap(),
    };
    let mut written: Vec<Written> = episodes.iter().zip(&segments).map(encode).collect();
    alphabet.shorten(&mut written, &(0..episodes.len()).collect::<Vec<_>>()).unwrap();
    let start = written[0].start.clone();
    let calls: Vec<Vec<SkillCall>> = written.into_iter().map(|one| one.calls).collect();
    let mut store = TermStore::new();
    let mut signature = Signature::standard(&mut store);
    alphabet.declare(&mut store, &mut signature).unwrap();
    let programs = calls.iter().map(|calls| alphabet.program(&mut store, calls).unwrap()).collect();
    Corpora { alphabet, start, calls, store, signature, programs }
}

#[test]
fn a_motor_library_is_not_empty_and_its_calls_replay_as_before() {
    let demonstrations = demonstrations();
    let Corpora { alphabet, start, calls, mut store, mut signature, programs } = corpora(&demonstrations);
    let corpus = Corpus::from_programs(&store, &signature, &programs).unwrap();
    let config = Config { max_steps: Some(20_000), ..motor_config() };
    let found = compress(&corpus, &config, &|_| ()).unwrap();
    verify(&corpus, &found).unwrap();
    let rewritten = adopt(&mut store, &mut signature, &found).unwrap();
    let several = found.abstractions.iter().filter(|entry| motions_in(&store, &signature, &entry.name) > 1).count();
    assert!(several > 0, "{:?}", found.abstractions);
    for (&program, calls) in rewritten.iter().zip(&calls) {
        let expected = alphabet.expand_calls(calls, &start).unwrap();
        assert_eq!(alphabet.expand(&mut store, &signature, program, &start).unwrap(), expected);
    }
    // Threads change nothing.
    let threaded = compress(&corpus, &Config { threads: 4, ..config }, &|_| ()).unwrap();
    assert_eq!((threaded.abstractions, threaded.rewritten), (found.abstractions, found.rewritten));
}

#[test]
fn the_strict_cell_is_the_same_for_any_number_of_threads() {
    let demonstrations = demonstrations();
    let fragments: Vec<Points<'_>> = demonstrations
        .iter()
        .flat_map(|rows| rows.chunks_exact(16 * 7))
        .map(|rows| Points::new(rows, 7).unwrap())
        .collect();
    let labels: Vec<i64> = (0..fragments.len() as i64).map(|at| at % 3).collect();
    let config = StrictConfig { rounds: 2, max_steps: Some(2000), ..StrictConfig::default() };
    let one = strict_sweep(&fragments, Some(&labels), &config).unwrap();
    let four = strict_sweep(&fragments, Some(&labels), &StrictConfig { threads: 4, ..config }).unwrap();
    assert_eq!(one, four);
    let text = serde_json::to_string(&one).unwrap();
    assert_eq!(serde_json::from_str::<Vec<skills::StrictRun>>(&text).unwrap(), one);
}

#[test]
fn alphabets_survive_json() {
    let demonstrations = demonstrations();
    let Corpora { alphabet, start, calls, .. } = corpora(&demonstrations);
    let text = serde_json::to_string(&alphabet).unwrap();
    let read: SkillAlphabet = serde_json::from_str(&text).unwrap();
    assert_eq!(read, alphabet);
    assert_eq!(read.expand_calls(&calls[3], &start), alphabet.expand_calls(&calls[3], &start));
}

#[test]
fn alphabets_that_someone_broke_are_refused_or_replayed_plainly() {
    let demonstrations = demonstrations();
    let Corpora { alphabet, start, calls, .. } = corpora(&demonstrations);
    let mut hollow = alphabet.clone();
    hollow.skills[0].profiles.clear();
    hollow.skills[1].profiles[0].gain[2].clear();
    let replayed = hollow.expand_calls(&calls[0], &start).unwrap();
    assert_eq!(replayed.calls, alphabet.expand_calls(&calls[0], &start).unwrap().calls);
    let broken: [fn(&mut SkillAlphabet); 3] = [
        |alphabet| alphabet.layout.width = 0,
        |alphabet| alphabet.layout.grippers[0].column = 7,
        |alphabet| alphabet.layout.groups[0].limits[0] = [1.0, -1.0],
    ];
    for change in broken {
        let mut broken = alphabet.clone();
        change(&mut broken);
        assert!(matches!(broken.expand_calls(&calls[0], &start), Err(SkillError::BadSetting { .. })));
    }
    let beyond = SkillCall { skill: skills::SkillId(99), ..calls[0][0].clone() };
    assert_eq!(alphabet.expand_calls(&[beyond], &start), Err(SkillError::UnknownSkill { found: 99, skills: 5 }));
    let short = SkillCall { arguments: Vec::new(), ..calls[0][0].clone() };
    assert!(matches!(alphabet.expand_calls(&[short], &start), Err(SkillError::NotSkill { .. })));
    assert!(matches!(alphabet.expand_calls(&calls[0], &[]), Err(SkillError::BadSetting { name: "start", .. })));
}

#[test]
fn what_is_no_program_of_skills_has_no_actions() {
    let demonstrations = demonstrations();
    let Corpora { alphabet, start, mut store, signature, .. } = corpora(&demonstrations);
    let mut expand = |text: &str| {
        let term = parse(&mut store, &signature, text).unwrap().term;
        alphabet.expand(&mut store, &signature, term, &start)
    };
    assert!(matches!(expand("move x_pos"), Err(SkillError::NotSkill { .. })));
    assert!(matches!(expand("skill_0 (on \"plate\")"), Err(SkillError::NotSkill { .. })));
    assert!(matches!(expand(r#"branch(is_on "stove", seq[], seq[])"#), Err(SkillError::Undecided { .. })));
    let forth = "skill_0 (by twist[1, 0, 0, 0, 0, 0])";
    assert!(matches!(expand("repeat(skill_0 (by twist[99, 0, 0, 0, 0, 0]), 60000)"), Err(SkillError::TooLong { .. })));
    let once = expand(forth).unwrap();
    let twice = expand(&format!("repeat({forth}, 2)")).unwrap();
    assert_eq!((twice.calls.len(), twice.rows.len()), (2, 2 * once.rows.len()));
    assert_eq!((once.end[0][0], twice.end[0][0]), (1.0, 2.0));
}

#[test]
fn a_step_finds_skills_of_several_motions_and_no_syntax() {
    let Corpora { alphabet, start, calls, store, signature, programs } = corpora(&demonstrations());
    let config = motor_refactor_config();
    let programs = Programs::new(&store, &signature, &Library::new(), programs).unwrap();
    let found = refactor(&programs, &config, admit_all).unwrap().programs;
    let entries = found.library().entries();
    let (mut store, signature) = (found.store().clone(), found.signature());
    assert!(
        entries.iter().any(|entry| motions_in(&store, signature, &entry.name) > 2),
        "{}",
        found.library().to_text()
    );
    for entry in entries {
        // An item that is nothing but a parameter is the last one.
        let items: Vec<&str> = entry.body.split("seq[").skip(1).flat_map(|items| items.split(", ")).collect();
        let is_param = |item: &str| item.starts_with('x') && item[1..].bytes().all(|byte| byte.is_ascii_digit());
        assert!(!items.into_iter().any(is_param), "{}", entry.body);
    }
    for (&program, calls) in found.terms().iter().zip(&calls) {
        let replayed = alphabet.expand(&mut store, signature, program, &start).unwrap();
        assert_eq!(replayed, alphabet.expand_calls(calls, &start).unwrap());
    }
}
