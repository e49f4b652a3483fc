//! A report as a run might write it: plausible, random, always the same. It is what the page is looked at with.

mod programs;
mod scene;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use report::{
    Better, ClusterMap, DatasetInfo, Episode, Estimate, Example, Iteration, LossTerm, Metric, Report, Run, SCHEMA,
    Series, Skill, Span, TrainingPhase,
};

const PHASES: [&str; 7] = ["reach", "descend", "grasp", "lift", "carry", "lower", "release"];

/// Skills: name, main phase, displacement in metres, change of the gripper in metres.
const SKILLS: [(&str, i64, [f64; 3], f64); 14] = [
    ("reach forward", 0, [0.182, -0.031, -0.020], 0.001),
    ("reach left", 0, [0.090, 0.164, -0.015], 0.0),
    ("straight down", 1, [0.004, 0.002, -0.141], 0.0),
    ("close", 2, [0.0, 0.001, -0.002], -0.061),
    ("lift", 3, [0.003, -0.004, 0.152], 0.0),
    ("carry right", 4, [0.021, -0.210, 0.012], 0.0),
    ("carry back", 4, [-0.155, 0.034, 0.020], 0.0),
    ("lower", 5, [0.010, 0.001, -0.083], 0.0),
    ("open", 6, [0.001, 0.0, 0.004], 0.064),
    ("pull the drawer", 4, [-0.171, 0.005, 0.001], 0.0),
    ("push", 4, [0.143, 0.011, -0.004], 0.0),
    ("turn the knob", 4, [0.012, 0.022, -0.006], -0.004),
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

/// The sample: 60 episodes of 10 tasks, 14 skills, 2000 fragments, three iterations.
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
        episodes,
        library: programs::library(),
        candidates: programs::candidates(),
        metrics: metrics(),
        notes: vec![
            "Sixty scripted episodes are few: intervals are wide, and the figures are not those of the paper.".into(),
            "The return gate used 32 imagined rollouts for each candidate; the world model's own error enters it."
                .into(),
            "Skill 12 (turn the knob) has few stretches and mixes two phases; read its purity with care.".into(),
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
    report.library.clear();
    report.candidates.clear();
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
        revision: Some("028f0e9".into()),
        device: "cpu, 2 threads".into(),
        started: Some("2026-11-16 09:12 UTC".into()),
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
    let method = "the first two principal components of k_χ, which hold 58 % of the variance".to_owned();
    let mut map = ClusterMap {
        method,
        x: vec![],
        y: vec![],
        skill: vec![],
        phase: vec![],
        task: vec![],
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
            episode: episode.index,
            first_frame: span.first,
            end_frame: span.end,
            pictures: (0..5)
                .map(|k| scene::picture(episode.index, *displacement, *gripper, f64::from(k) / 4.0))
                .collect(),
        });
        skills.push(Skill {
            name: (*name).to_owned(),
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
        let later = |value: f64| (t > 0).then_some(value);
        all.push(Iteration {
            t,
            programs_nats: [5204.1, 2310.6, 1702.0, 1588.3][t as usize],
            library_nats: [0.0, 88.2, 171.5, 190.9][t as usize],
            entries: [0, 3, 6, 7][t as usize],
            skills: later(11.0 + x).map(|skills| skills as u64),
            nmi_task: later(0.31 + 0.02 * x),
            ari_task: later(0.12 + 0.01 * x),
            nmi_phase: later(0.55 + 0.06 * x - 0.01 * x * x),
            ari_phase: later(0.38 + 0.05 * x),
            tpe_token_accuracy: later(0.84 + 0.03 * x),
            tpe_exact_match: later(0.51 + 0.11 * x - 0.01 * x * x),
            lcad_error_with_library: later(0.118 - 0.007 * x),
            lcad_error_without_library: later(0.121 - 0.003 * x),
            seconds: later(790.0 + 40.0 * x),
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

fn metrics() -> Vec<Metric> {
    let estimate = |mean: f64, half: f64| Some(Estimate { mean, low: Some(mean - half), high: Some(mean + half) });
    let row = |group: &str, name: &str, better, with, without, paper: Option<&str>, note: &str| Metric {
        group: group.into(),
        name: name.into(),
        unit: String::new(),
        better,
        with_library: with,
        without_library: without,
        paper: paper.map(str::to_owned),
        note: note.into(),
    };
    use Better::{Higher, Lower, Neither};
    vec![
        row("Skills", "NMI with phases", Higher, estimate(0.64, 0.03), None, None, "1024 fragments of 20 episodes"),
        row("Skills", "boundary F1", Higher, estimate(0.71, 0.05), None, None, "tolerance of 2 frames"),
        row(
            "Skills",
            "NMI with tasks",
            Higher,
            estimate(0.37, 0.02),
            None,
            Some("0.749"),
            "the paper trains for tasks",
        ),
        row("Emitter", "token accuracy", Higher, estimate(0.93, 0.02), estimate(0.90, 0.02), Some("0.900"), ""),
        row("Emitter", "exact match", Higher, estimate(0.75, 0.09), estimate(0.60, 0.10), None, "20 episodes"),
        row(
            "Decoder",
            "velocity error",
            Lower,
            estimate(0.097, 0.006),
            estimate(0.112, 0.007),
            Some("0.090–0.113"),
            "",
        ),
        row(
            "Compiler",
            "programs rewritten",
            Neither,
            estimate(0.9, 0.0),
            None,
            Some("256/256"),
            "share of demonstrations",
        ),
    ]
}
