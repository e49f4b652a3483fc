//! A report as a run might write it: plausible, random, always the same.

mod programs;
mod scene;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use report::{
    Arm, Better, ClusterMap, DatasetInfo, Episode, Estimate, Example, Iteration, IterationPolicy, KernelAgreement,
    LossTerm, Metric, Report, Run, SCHEMA, SKILL_GROUP, Series, Skill, Span, TrainingPhase,
};

const PHASES: [&str; 7] = ["reach", "descend", "grasp", "lift", "carry", "lower", "release"];

/// Skills: name, main phase, displacement in metres, change of the gripper as a share of its range.
const SKILLS: [(&str, i64, [f64; 3], f64); 14] = [
    ("reach forward", 0, [0.182, -0.031, -0.020], 0.001),
    ("reach left", 0, [0.090, 0.164, -0.015], 0.0),
    ("straight down", 1, [0.004, 0.002, -0.141], 0.0),
    ("close", 2, [0.0, 0.001, -0.002], -0.76),
    ("lift", 3, [0.003, -0.004, 0.152], 0.0),
    ("carry right", 4, [0.021, -0.210, 0.012], 0.0),
    ("carry back", 4, [-0.155, 0.034, 0.020], 0.0),
    ("lower", 5, [0.010, 0.001, -0.083], 0.0),
    ("open", 6, [0.001, 0.0, 0.004], 0.8),
    ("pull the drawer", 4, [-0.171, 0.005, 0.001], 0.0),
    ("push", 4, [0.143, 0.011, -0.004], 0.0),
    ("turn the knob", 4, [0.012, 0.022, -0.006], -0.05),
    ("retreat up", 6, [-0.030, 0.010, 0.110], 0.010),
    ("approach the handle", 0, [0.122, 0.080, -0.110], 0.0),
];

const TASKS: [&str; 10] = [
    "open the middle drawer of the cabinet",
    "put the bowl on the stove",
    "put the wine bottle on top of the cabinet",
    "open the top drawer and put the bowl inside",
    "put the bowl on top of the cabinet",
    "push the plate to the front of the stove",
    "put the cream cheese in the bowl",
    "turn on the stove",
    "put the bowl on the plate",
    "put the wine bottle on the rack",
];

/// The sample: 60 episodes of 10 tasks, 14 skills, 2000 segments in the map, three iterations.
pub(crate) fn sample() -> Report {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let episodes = episodes(&mut rng);
    let map = map(&mut rng, &episodes);
    let skills = skills(&mut rng, &episodes);
    Report {
        schema: SCHEMA,
        run: run(&episodes),
        tasks: TASKS.map(str::to_owned).to_vec(),
        phases: PHASES.map(str::to_owned).to_vec(),
        iterations: iterations(),
        training: training(&mut rng),
        skills,
        map: Some(map),
        kernel: Some(KernelAgreement {
            kernel: "amortized".into(),
            samples: 8,
            spearman: Some(0.934),
            pairs: Some(20_000),
        }),
        episodes,
        library: programs::library(),
        candidates: programs::candidates(),
        arms: arms(),
        metrics: metrics(),
        notes: vec![
            "Sixty scripted episodes are few: intervals are wide, and the figures are not those of the paper.".into(),
            "The return gate used 32 imagined rollouts for each candidate, so the error of the world model affects it."
                .into(),
            "skill_11 (turn the knob) has few segments and mixes two phases; its purity is uncertain.".into(),
        ],
    }
}

/// The same run on data without pictures, phases, tasks and reward, with nothing learned.
pub(crate) fn bare() -> Report {
    let mut report = sample();
    report.run.datasets[0].reward = false;
    report.run.datasets[0].pictures = false;
    report.phases.clear();
    report.tasks.clear();
    report.training.clear();
    report.map = None;
    report.kernel = None;
    report.library.clear();
    report.candidates.clear();
    report.arms.clear();
    report.metrics.clear();
    report.notes.clear();
    report.iterations.clear();
    for episode in &mut report.episodes {
        episode.phases.clear();
        episode.task = -1;
        episode.program = None;
    }
    for skill in &mut report.skills {
        skill.examples.clear();
        skill.purity = None;
        skill.main_phase = None;
        skill.displacement = None;
    }
    report
}

fn run(episodes: &[Episode]) -> Run {
    let held_out = episodes.iter().filter(|episode| episode.held_out).count() as u64;
    Run {
        title: "libero_goal, three iterations".into(),
        datasets: vec![DatasetInfo {
            name: "demonstrations/libero_goal".into(),
            episodes: 60 - held_out,
            held_out_episodes: held_out,
            frames: episodes.iter().map(|episode| episode.frames).sum(),
            tasks: 10,
            fps: 10.0,
            reward: true,
            pictures: true,
        }],
        presets: vec!["small".into(), "vision".into()],
        seed: 3,
        version: "0.1.0".into(),
        device: "cpu, 2 threads".into(),
        labels: "no labels were used".into(),
        seconds: 2754.0,
        command:
            "refactor-vla run --dataset demonstrations/libero_goal --out runs/goal-3 --preset small --preset vision \
                  --set train.seed=3"
                .into(),
        config_hash: "9b1f7c0e5d3a2f4486c1d0be7a95f3127740c2e9".into(),
        config: Some("[train]\nseed = 3\nsteps = 4000\n\n[gates]\nepsilon = 0.05\nmin_gain = 4.0\n".into()),
    }
}

/// Skills that a scripted expert would show in a task, with noise in lengths and an occasional slip.
fn episodes(rng: &mut ChaCha8Rng) -> Vec<Episode> {
    let plans: [&[usize]; 10] = [
        &[13, 3, 9, 8, 12],
        &[0, 2, 3, 4, 5, 7, 8, 12],
        &[1, 2, 3, 4, 6, 7, 8, 12],
        &[13, 3, 9, 8, 0, 2, 3, 4, 6, 7, 8],
        &[0, 2, 3, 4, 6, 7, 8],
        &[0, 2, 10, 12],
        &[1, 2, 3, 4, 5, 7, 8, 12],
        &[13, 3, 11, 8, 12],
        &[0, 2, 3, 4, 5, 7, 8],
        &[1, 2, 3, 4, 5, 7, 8, 12],
    ];
    let mut episodes = Vec::new();
    for index in 0..60_u64 {
        let task = (index % 10) as usize;
        let mut phases: Vec<Span> = Vec::new();
        let mut skills = Vec::new();
        let mut at = 0;
        let mut cut = 0;
        for (place, skill) in plans[task].iter().enumerate() {
            let length = match SKILLS[*skill].1 {
                2 | 6 => rng.random_range(4..8),
                _ => rng.random_range(7..16),
            };
            let label = SKILLS[*skill].1;
            match phases.last_mut() {
                Some(last) if last.label == label => last.end = at + length,
                _ => phases.push(Span { first: at, end: at + length, label }),
            }
            at += length;
            let last = place + 1 == plans[task].len();
            let end = if last { at } else { at + rng.random_range(0..3) - 1 };
            let slip = rng.random_bool(0.07);
            let label = if slip { rng.random_range(-1..14) } else { *skill as i64 };
            skills.push(Span { first: cut, end, label });
            cut = end;
        }
        let program = (task != 7).then(|| programs::of_task(task).to_owned());
        let instruction = TASKS[task].to_owned();
        let held_out = index >= 40;
        episodes.push(Episode {
            index,
            dataset: 0,
            task: task as i64,
            instruction,
            frames: at,
            held_out,
            skills,
            phases,
            program,
        });
    }
    episodes
}

fn map(rng: &mut ChaCha8Rng, episodes: &[Episode]) -> ClusterMap {
    let method = "the first two principal components of D_φ, 58 % of the variance".to_owned();
    let mut map = ClusterMap {
        method,
        x: vec![],
        y: vec![],
        skill: vec![],
        phase: vec![],
        task: vec![],
        dataset: vec![],
        episode: vec![],
        first_frame: vec![],
        end_frame: vec![],
    };
    let mut normal = || (0..6).map(|_| rng.random_range(-0.5..0.5)).sum::<f64>();
    for n in 0..2000 {
        let episode = &episodes[n * 7 % 60];
        let first = (n as u64 * 11) % (episode.frames - 8);
        let label = |spans: &[Span]| spans.iter().find(|span| first + 4 < span.end).map_or(-1, |span| span.label);
        let skill = label(&episode.skills);
        let angle = skill as f64 * 2.4;
        let radius = 0.35 + 0.09 * skill as f64;
        let (spread, scatter) = if skill < 0 { (0.6, 0.0) } else { (0.13, 1.0) };
        map.x.push(scatter * radius * angle.cos() * 1.5 + spread * normal());
        map.y.push(scatter * radius * angle.sin() + spread * normal());
        map.skill.push(skill);
        map.phase.push(label(&episode.phases));
        map.task.push(episode.task);
        map.dataset.push(0);
        map.episode.push(episode.index);
        map.first_frame.push(first);
        map.end_frame.push(first + 8);
    }
    map
}

fn skills(rng: &mut ChaCha8Rng, episodes: &[Episode]) -> Vec<Skill> {
    let mut skills = Vec::new();
    for (index, (name, phase, displacement, gripper)) in SKILLS.iter().enumerate() {
        let of_skill = |span: &&Span| span.label == index as i64;
        let spans: Vec<(&Episode, &Span)> = episodes
            .iter()
            .flat_map(|episode| episode.skills.iter().filter(of_skill).map(move |span| (episode, span)))
            .collect();
        let length = spans.iter().map(|(_, span)| (span.end - span.first) as f64).sum::<f64>() / spans.len() as f64;
        let examples = spans.iter().take(3).map(|(episode, span)| Example {
            dataset: episode.dataset,
            episode: episode.index,
            first_frame: span.first,
            end_frame: span.end,
            pictures: (0..5)
                .map(|k| scene::picture(episode.index, *displacement, *gripper, f64::from(k) / 4.0))
                .collect(),
        });
        skills.push(Skill {
            name: format!("skill_{index}"),
            readable: Some((*name).to_owned()),
            size: spans.len() as u64,
            mean_length: length,
            purity: Some(rng.random_range(0.62..0.98)),
            main_phase: Some(*phase),
            displacement: Some(*displacement),
            gripper: Some(*gripper),
            examples: examples.collect(),
        });
    }
    skills
}

fn iterations() -> Vec<Iteration> {
    let mut all = Vec::new();
    for t in 0..4_u32 {
        let x = f64::from(t);
        all.push(Iteration {
            t,
            programs_nats: [5204.1, 2310.6, 1702.0, 1588.3][t as usize],
            library_nats: [0.0, 88.2, 171.5, 190.9][t as usize],
            held_out_nats: Some([2611.7, 1240.2, 996.4, 981.0][t as usize]),
            entries: [0, 3, 6, 7][t as usize],
            not_proposed: (t > 0).then_some(61 - 13 * u64::from(t)),
            policy: (t > 0).then(|| IterationPolicy {
                library_entries: [0, 0, 3, 6][t as usize],
                token_accuracy: 0.84 + 0.03 * x,
                exact_match: 0.51 + 0.11 * x - 0.01 * x * x,
                velocity_error: 0.118 - 0.007 * x,
            }),
        });
    }
    all
}

fn training(rng: &mut ChaCha8Rng) -> Vec<TrainingPhase> {
    let mut curve = |start: f64, end: f64, points: u32, noise: f64| {
        let steps: Vec<f64> = (0..points).map(|i| f64::from(i) * 4000.0 / f64::from(points - 1)).collect();
        let values = steps.iter().map(|step| {
            let value = end + (start - end) * (-step / 600.0).exp();
            value * (1.0 + noise * rng.random_range(-1.0..1.0))
        });
        Series { values: values.collect(), steps }
    };
    let mut term = |name: &str, start: f64, end: f64| LossTerm {
        name: name.to_owned(),
        training: curve(start, end, 400, 0.08),
        held_out: curve(start * 1.02, end * 1.15, 17, 0.01),
    };
    let mut all = vec![TrainingPhase {
        name: "World model".into(),
        iteration: None,
        terms: vec![
            term("total", 4.8, 0.61),
            term("recon", 1.0, 0.21),
            term("state", 1.1, 0.012),
            term("kl", 3.2, 1.05),
            term("infonce", 5.5, 1.9),
            term("return", 0.8, 0.09),
        ],
    }];
    for t in 1..4 {
        let x = f64::from(t);
        all.push(TrainingPhase {
            name: "Amortizer".into(),
            iteration: Some(t),
            terms: vec![term("total", 1.4, 0.25 - 0.03 * x), term("distillation", 0.9, 0.11)],
        });
        all.push(TrainingPhase {
            name: "Emitter (TPE)".into(),
            iteration: Some(t),
            terms: vec![term("cross-entropy", 3.1 - 0.4 * x, 0.22 - 0.04 * x)],
        });
        all.push(TrainingPhase {
            name: "Decoder (LCAD)".into(),
            iteration: Some(t),
            terms: vec![term("flow", 1.2, 0.12 - 0.01 * x)],
        });
    }
    all
}

/// Arms of the comparison of policies.
const POLICIES: [&str; 3] = ["with library", "without library", "no programs"];

/// Arms of the comparison of skills.
const CLASSES: [&str; 3] = ["our classes", "actions of the same segments", "raw windows"];

fn arms() -> Vec<Arm> {
    let about = [
        "The policy writes programs with the last library.",
        "The same policy, trained for as many steps on programs without a library.",
        "The decoder sees no program at all.",
        "Segments clustered under the kernel.",
        "KMeans on the actions of the same segments.",
        "KMeans on windows of states and actions, without segmentation.",
    ];
    let arm = |(name, about): (&str, &str)| Arm { name: name.into(), description: about.into() };
    POLICIES.into_iter().chain(CLASSES).zip(about).map(arm).collect()
}

fn metrics() -> Vec<Metric> {
    use Better::{Higher, Lower, Neither};
    // Values and half widths of their intervals, in the order of the arms.
    type Values<'a> = &'a [(f64, f64)];
    let row = |group: &str, name: &str, better, values: Values<'_>, paper: Option<&str>, note: &str| {
        let arms = if group == SKILL_GROUP { CLASSES } else { POLICIES };
        let value = |(arm, (mean, half)): (&str, &(f64, f64))| {
            (arm.to_owned(), Estimate { mean: *mean, low: Some(mean - half), high: Some(mean + half) })
        };
        Metric {
            group: group.into(),
            name: name.into(),
            unit: String::new(),
            better,
            oracle: note.contains("oracle"),
            headline: ["NMI with phases", "exact match", "chunk error"].contains(&name) && !note.contains("oracle"),
            values: arms.into_iter().zip(values).map(value).collect(),
            paper: paper.map(str::to_owned),
            note: note.into(),
        }
    };
    let phases = [(0.64, 0.03), (0.61, 0.03), (0.53, 0.02)];
    vec![
        row(SKILL_GROUP, "NMI with phases", Higher, &phases, None, "frames of 20 episodes"),
        row(SKILL_GROUP, "boundary F1", Higher, &[(0.71, 0.05), (0.71, 0.05)], None, "tolerance of 4 frames"),
        row(SKILL_GROUP, "NMI with tasks", Higher, &[(0.37, 0.02)], Some("0.749"), "the paper trains on task labels"),
        row("emitter (TPE)", "token accuracy", Higher, &[(0.93, 0.02), (0.90, 0.02)], Some("0.900"), ""),
        row("emitter (TPE)", "exact match", Higher, &[(0.75, 0.09), (0.60, 0.10)], None, "20 episodes"),
        row(
            "decoder (LCAD)",
            "velocity error",
            Lower,
            &[(0.097, 0.006), (0.112, 0.007), (0.131, 0.007)],
            Some("0.090–0.113"),
            "oracle programs",
        ),
        row(
            "decoder (LCAD)",
            "chunk error",
            Lower,
            &[(0.201, 0.01), (0.214, 0.01), (0.288, 0.02)],
            None,
            "oracle programs",
        ),
        row(
            "policy (TPE, then LCAD)",
            "chunk error",
            Lower,
            &[(0.243, 0.01), (0.251, 0.01), (0.288, 0.02)],
            None,
            "programs that the policy emits",
        ),
        row("compiler", "programs rewritten", Neither, &[(0.9, 0.0)], Some("256/256"), "share of demonstrations"),
    ]
}
