//! Accuracy of names against the true phases of datasets: frame-level labels, labels with objects, boundaries.
//!
//! `label_accuracy FIRST..LAST DATASET… [--show EPISODE]`: rounds from FIRST to LAST (exclusive, from 0) of each dataset.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for developers")]

use dataset::{Dataset, Overrides, RobotLayout, Root};
use skills::{SegmentConfig, segment_scored};
use subtasks::robot::{action_layout, episode};
use subtasks::{NameSource, Namer};

/// Seconds that a boundary may be off.
const TOLERANCE: f64 = 0.2;

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "--steps") {
        for text in &words[1..] {
            match language::instruction::partial(text) {
                Ok(partial) => {
                    println!("{text}\n  {}", partial.plan);
                    for step in subtasks::steps::steps(&partial.plan, false, 2) {
                        println!(
                            "    {:9} {:.2} {} [{:?} {}]",
                            step.phase, step.skip, step.name, step.arm, step.handling
                        );
                    }
                }
                Err(error) => println!("{text}\n  {error}"),
            }
        }
        return;
    }
    let mut show = None;
    if let Some(at) = words.iter().position(|word| word == "--show") {
        show = Some(words[at + 1].parse::<usize>().unwrap());
        words.drain(at..at + 2);
    }
    let (first, last) =
        words.remove(0).split_once("..").map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).unwrap();
    for place in words {
        evaluate(&place, first..last, show);
    }
}

fn evaluate(place: &str, rounds: std::ops::Range<usize>, show: Option<usize>) {
    let blind = Overrides { cameras: Some(Vec::new()), ..Overrides::default() };
    let dataset = Dataset::open(Root::Directory(place.into()), &blind).unwrap();
    let layout = action_layout(&dataset, &RobotLayout::of(&dataset)).unwrap();
    let names = dataset.label_names("phase").unwrap();
    let phases = &dataset.columns().labels["phase"];
    let tasks = dataset.tasks().len();
    let set = |name: &str, value: f64| std::env::var(name).map_or(value, |text| text.parse().unwrap());
    let own = subtasks::NamerConfig::default();
    let namer = Namer::new(subtasks::NamerConfig {
        least_score: set("LEAST_SCORE", own.least_score),
        least_score_joints: set("LEAST_SCORE_JOINTS", own.least_score_joints),
        split: set("SPLIT", own.split),
        doubt: set("DOUBT", own.doubt),
        retry: set("RETRY", own.retry),
        least: set("LEAST", own.least),
        blend: set("BLEND", own.blend),
    });
    let (mut frames, mut right, mut with_object) = (0, 0, 0);
    let (mut matched, mut found, mut wanted, mut raw_matched, mut raw_found) = (0, 0, 0, 0, 0);
    let (mut by_motion, mut episodes) = (0, 0);
    let mut confusion = std::collections::BTreeMap::<(String, String), usize>::new();
    let mut wrong_scores = Vec::new();
    let mut worst = Vec::new();
    let mut missed = std::collections::BTreeMap::<String, usize>::new();
    let mut scores = Vec::new();
    let spans = dataset.spans();
    let start = std::time::Instant::now();
    for (at, span) in spans.iter().enumerate().filter(|(at, _)| rounds.contains(&(at / tasks))) {
        let instruction = &dataset.tasks()[span.task.at()];
        let own = episode(&dataset, &span.frames, &layout).unwrap();
        let segments = segment_scored(&own, &layout, &SegmentConfig::subtasks()).unwrap();
        let named = namer.name(instruction, &own, &layout, &segments);
        let kinds = |text: &str| -> Vec<subtasks::steps::Kind> {
            let plan = language::instruction::partial(text).map(|partial| partial.plan);
            plan.map(|plan| subtasks::steps::steps(&plan, false, 1).iter().map(|step| step.kind).collect())
                .unwrap_or_default()
        };
        // Instructions with the same kinds of steps cannot be told apart without looking.
        for other in dataset.tasks().iter().filter(|other| kinds(other) != kinds(instruction)) {
            wrong_scores.push(namer.name(other, &own, &layout, &segments).score);
        }
        let truth: Vec<&str> =
            phases[span.frames.clone()].iter().map(|phase| names[*phase as usize].as_str()).collect();
        // The object that is handled in each row: a new one with every reach after something was released.
        let mut objects = Vec::new();
        let (mut handled, mut released) = (0, false);
        for (row, phase) in truth.iter().enumerate() {
            released |= phase.contains("retreat") || phase.contains("release");
            if phase.contains("reach") && released && truth[row - 1] != *phase {
                handled += 1;
                released = false;
            }
            objects.push(handled);
        }
        let mut seen: Vec<String> = Vec::new();
        let right_before = right;
        for (subtask, step) in named.subtasks.iter().zip(&named.steps) {
            if let Some(object) = step.as_ref().and_then(|step| step.object.clone()).filter(|one| !seen.contains(one)) {
                seen.push(object);
            }
            for row in subtask.rows.clone() {
                frames += 1;
                let label = step.as_ref().map_or("-", |step| step.phase.as_str());
                let same = step.as_ref().is_some_and(|step| same_phase(truth[row], &step.phase, step.arm.as_deref()));
                right += usize::from(same);
                with_object += usize::from(same && seen.len().saturating_sub(1) == objects[row]);
                if !same {
                    *confusion.entry((truth[row].to_owned(), label.to_owned())).or_default() += 1;
                }
            }
        }
        let cuts =
            |labels: &[&str]| (1..labels.len()).filter(|row| labels[*row] != labels[row - 1]).collect::<Vec<_>>();
        let tolerance = (TOLERANCE * layout.fps).round() as usize;
        let truth_cuts = cuts(&truth);
        let starts: Vec<usize> = named.subtasks.iter().skip(1).map(|one| one.rows.start).collect();
        let raw: Vec<usize> = segments.iter().skip(1).map(|one| one.rows.start).collect();
        for cut in truth_cuts.iter().filter(|cut| !starts.iter().any(|start| start.abs_diff(**cut) <= tolerance)) {
            *missed.entry(format!("{} > {}", truth[cut - 1], truth[*cut])).or_default() += 1;
        }
        matched += matches(&truth_cuts, &starts, tolerance);
        raw_matched += matches(&truth_cuts, &raw, tolerance);
        (found, wanted, raw_found) = (found + starts.len(), wanted + truth_cuts.len(), raw_found + raw.len());
        by_motion += usize::from(named.subtasks.iter().any(|one| one.named_by == NameSource::Motion));
        episodes += 1;
        scores.push(named.score);
        worst.push(((right - right_before) as f64 / truth.len() as f64, at, named.score));
        if show == Some(at) {
            println!("{instruction}: {:.2}", named.score);
            let mut row = 0;
            for cut in truth_cuts.iter().copied().chain([truth.len()]) {
                println!("   true {row:4}..{cut:4} {}", truth[row]);
                row = cut;
            }
            for segment in &segments {
                println!("   cut  {:4}..{:4} {:.2}", segment.rows.start, segment.rows.end, segment.confidence);
            }
            for one in &named.subtasks {
                println!("   name {:4}..{:4} {:.2} {}", one.rows.start, one.rows.end, one.name_confidence, one.name);
            }
        }
    }
    let f1 = |matched: usize, found: usize| 2.0 * matched as f64 / (found + wanted).max(1) as f64;
    let share = |count: usize| count as f64 / frames.max(1) as f64;
    scores.sort_by(f64::total_cmp);
    wrong_scores.sort_by(f64::total_cmp);
    let quantiles = |scores: &[f64]| {
        [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0]
            .map(|share| scores.get((share * scores.len().saturating_sub(1) as f64) as usize).copied().unwrap_or(0.0))
            .map(|score| format!("{score:.2}"))
            .join(" ")
    };
    println!(
        "{place}: phase {:.3} object {:.3} F1 {:.3} (segments {:.3}) by motion {by_motion}/{episodes}; {:.1} s\n    scores {} of other instructions {}",
        share(right),
        share(with_object),
        f1(matched, found),
        f1(raw_matched, raw_found),
        start.elapsed().as_secs_f64(),
        quantiles(&scores),
        quantiles(&wrong_scores),
    );
    worst.sort_by(|one, other| one.0.total_cmp(&other.0));
    let worst: Vec<String> =
        worst.iter().take(6).map(|(right, at, score)| format!("{at}: {right:.2} ({score:.2})")).collect();
    println!("    worst episodes {}", worst.join(", "));
    println!("    missed boundaries {missed:?}");
    let mut confusion: Vec<_> = confusion.into_iter().collect();
    confusion.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for ((truth, label), count) in confusion.iter().take(8) {
        println!("    {truth} named {label}: {:.3}", *count as f64 / frames as f64);
    }
}

/// Whether a true phase such as `open_drawer` or `left_reach` is what a step is called.
fn same_phase(truth: &str, phase: &str, arm: Option<&str>) -> bool {
    let (side, truth) = match truth.split_once('_') {
        Some((side @ ("left" | "right" | "both"), truth)) => (Some(side), truth),
        _ => (None, truth),
    };
    let arm_fits = side.is_none_or(|side| arm.is_some_and(|arm| arm.starts_with(side)));
    arm_fits && (truth == phase || truth.split('_').next() == Some(phase))
}

/// How many true boundaries have one near them, each used once.
fn matches(truth: &[usize], found: &[usize], tolerance: usize) -> usize {
    let mut used = vec![false; found.len()];
    let mut count = 0;
    for cut in truth {
        let near = (0..found.len()).filter(|at| !used[*at] && found[*at].abs_diff(*cut) <= tolerance);
        if let Some(at) = near.min_by_key(|at| found[*at]) {
            used[at] = true;
            count += 1;
        }
    }
    count
}
