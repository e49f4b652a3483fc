//! `data inspect`.

use dataset::{Dataset, Explanation, Group, GroupKind, Inspection, Signal, inspect, printable};
use serde_json::json;

use super::{counted, overrides, root};
use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::files;
use crate::table::{Align, table};

/// The widest bar of a share, in letters.
const BAR: usize = 30;

/// The longest task that is shown in full, in letters.
const TASK_WIDTH: usize = 76;

/// The longest line of a sentence, in letters.
const LINE_WIDTH: usize = 96;

/// Shows what a dataset holds.
pub(crate) fn run(options: &InspectArgs) -> Result<(), Failure> {
    let opened = root(&options.dataset)
        .and_then(|root| Ok(Dataset::open(root, &overrides(&options.keys))?))
        .and_then(|dataset| Ok(inspect(&dataset)?));
    match (opened, options.json) {
        (Ok(inspection), true) => files::print(&files::json_bytes(&inspection)?),
        (Ok(inspection), false) => files::print(text(&inspection).as_bytes()),
        (Err(Failure::Faults(faults, _)), true) => {
            let errors: Vec<Explanation> = faults.iter().map(dataset::Fault::explanation).collect();
            files::print(&files::json_bytes(&json!({"errors": errors}))?)?;
            Err(Failure::Told)
        }
        (Err(failure), _) => Err(failure),
    }
}

fn text(inspection: &Inspection) -> String {
    let parts = [heading(inspection), tasks(inspection), features(inspection), signals(inspection), robot(inspection)];
    let parts = parts.into_iter().chain(labels(inspection)).chain(videos(inspection));
    parts.collect::<Vec<_>>().join("\n")
}

fn heading(inspection: &Inspection) -> String {
    let Inspection { episodes, frames, fps, duration_s, lengths, .. } = inspection;
    let robot = inspection.robot_type.as_ref().map_or(String::new(), |robot| format!(", robot {}", printable(robot)));
    let histogram = match lengths.histogram.as_str() {
        "" => String::new(),
        bars => format!("   {} ▕{bars}▏ {}", lengths.min, lengths.max),
    };
    let spread = match lengths.min == lengths.max {
        true => format!("{} frames an episode", lengths.min),
        false => format!("{} to {} frames an episode, {} in the middle", lengths.min, lengths.max, lengths.median),
    };
    format!(
        "{}: LeRobot {}{robot}\n\n  {}, {}, {}\n  {} at {fps} frames per second\n  {spread}{histogram}\n",
        printable(&inspection.dataset),
        printable(&inspection.version),
        counted(*episodes as u64, "episode", "episodes"),
        counted(*frames as u64, "frame", "frames"),
        counted(inspection.tasks.len() as u64, "task", "tasks"),
        duration(*duration_s),
    )
}

fn tasks(inspection: &Inspection) -> String {
    let columns = [("task", Align::Left), ("episodes", Align::Right), ("frames", Align::Right)];
    let row = |task: &dataset::TaskSummary| {
        vec![shortened(&task.task, TASK_WIDTH), task.episodes.to_string(), task.frames.to_string()]
    };
    table(&columns, &inspection.tasks.iter().map(row).collect::<Vec<_>>())
}

fn features(inspection: &Inspection) -> String {
    let columns = [("feature", Align::Left), ("type", Align::Left), ("used as", Align::Left)];
    let row = |feature: &dataset::FeatureSummary| {
        let sides: Vec<String> = feature.shape.iter().map(usize::to_string).collect();
        let shown = match feature.shape[..] {
            [1] => feature.dtype.clone(),
            _ => format!("{} {}", feature.dtype, sides.join("×")),
        };
        vec![feature.key.clone(), shown, feature.role.unwrap_or_default().to_string()]
    };
    table(&columns, &inspection.features.iter().map(row).collect::<Vec<_>>())
}

fn signals(inspection: &Inspection) -> String {
    let columns = [
        ("signal", Align::Left),
        ("", Align::Left),
        ("min", Align::Right),
        ("mean", Align::Right),
        ("max", Align::Right),
        ("std", Align::Right),
        ("mean episode, from start to end", Align::Left),
    ];
    let mut before = "";
    let mut rows = Vec::new();
    for signal in &inspection.signals {
        let Signal { key, dimension, name, min, mean, max, std, sparkline } = signal;
        let again = std::mem::replace(&mut before, key) == key;
        let alone = inspection.signals.iter().filter(|other| other.key == *key).count() == 1;
        let dimension = match name {
            Some(name) => name.clone(),
            None if alone => String::new(),
            None => dimension.to_string(),
        };
        let [min, mean, max, std] = [min, mean, max, std].map(|value| number(*value));
        let key = if again { String::new() } else { shortened(key, 24) };
        rows.push(vec![key, shortened(&dimension, 14), min, mean, max, std, sparkline.clone()]);
    }
    table(&columns, &rows)
}

/// The groups of the robot, why they are what they are, and what is not decided.
fn robot(inspection: &Inspection) -> String {
    let headings = [
        ("group", Align::Left),
        ("kind", Align::Left),
        ("control", Align::Left),
        ("actions", Align::Left),
        ("states", Align::Left),
    ];
    let names = |role: &str| {
        let feature = inspection.features.iter().find(|feature| feature.role == Some(role));
        feature.and_then(|feature| feature.names.as_deref())
    };
    let (actions, states) = (names("action"), names("state"));
    let row = |group: &Group| {
        let kind = match group.kind {
            GroupKind::EndEffector => "end effector",
            GroupKind::Joints => "joints",
            GroupKind::Gripper => "gripper",
            GroupKind::Base => "base",
            GroupKind::Other => "other",
        };
        let control = if group.kind == GroupKind::Other { "" } else { group.control.name() };
        let columns = [named(&group.actions, actions), named(&group.states, states)];
        [group.name.clone(), kind.to_owned(), control.to_owned()].into_iter().chain(columns).collect()
    };
    let mut shown = table(&headings, &inspection.robot.groups.iter().map(row).collect::<Vec<_>>());
    let sections = inspection.robot.groups.iter().map(|group| (format!("Why {}:", group.name), &group.evidence));
    let contradicted = ("Contradicted by the numbers:".to_owned(), &inspection.robot.contradicted);
    let undecided = ("Not decided:".to_owned(), &inspection.robot.undecided);
    for (heading, sentences) in sections.chain([contradicted, undecided]).filter(|(_, sentences)| !sentences.is_empty())
    {
        shown.push_str(&format!("\n  {}\n", printable(&heading)));
        for sentence in sentences {
            shown.push_str(&folded(&printable(sentence)));
        }
    }
    shown
}

/// A sentence over as many lines as it needs, indented.
fn folded(sentence: &str) -> String {
    let mut lines = vec![String::new()];
    for word in sentence.split(' ') {
        let full = lines.last().map_or(0, |line| line.chars().count()) + 1 + word.chars().count() > LINE_WIDTH;
        if full {
            lines.push("  ".to_owned());
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.iter().map(|line| format!("   {line}\n")).collect()
}

/// Columns by their names, or by their numbers if they have none; of many, the first and the last.
fn named(columns: &[usize], names: Option<&[String]>) -> String {
    const MOST: usize = 3;
    let name = |column: &usize| match names.and_then(|names| names.get(*column)) {
        Some(name) => shortened(name, 28),
        None => column.to_string(),
    };
    match columns {
        [first, .., last] if columns.len() > MOST => format!("{} … {} ({})", name(first), name(last), columns.len()),
        _ => columns.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

fn labels(inspection: &Inspection) -> Vec<String> {
    let one = |label: &dataset::Label| {
        let columns = [
            (label.key.as_str(), Align::Right),
            ("", Align::Left),
            ("frames", Align::Right),
            ("share", Align::Right),
            ("", Align::Left),
        ];
        let most = label.values.iter().map(|value| value.frames).max().unwrap_or(1).max(1);
        let row = |value: &dataset::LabelValue| {
            vec![
                value.value.to_string(),
                shortened(value.name.as_deref().unwrap_or_default(), 30),
                value.frames.to_string(),
                format!("{:.1} %", 100.0 * value.frames as f64 / inspection.frames.max(1) as f64),
                "█".repeat((value.frames * BAR).div_ceil(most)),
            ]
        };
        const MOST: usize = 24;
        let mut shown = table(&columns, &label.values.iter().take(MOST).map(row).collect::<Vec<_>>());
        if label.values.len() > MOST {
            shown.push_str(&format!("  … and {} more values\n", label.values.len() - MOST));
        }
        shown
    };
    inspection.labels.iter().map(one).collect()
}

fn videos(inspection: &Inspection) -> Option<String> {
    let columns = [
        ("video", Align::Left),
        ("codec", Align::Left),
        ("size", Align::Left),
        ("files", Align::Right),
        ("pictures", Align::Right),
        ("MB", Align::Right),
    ];
    let row = |video: &dataset::Video| {
        vec![
            video.key.clone(),
            video.codec.clone(),
            format!("{}×{}", video.width, video.height),
            video.files.to_string(),
            video.pictures.to_string(),
            format!("{:.1}", video.bytes as f64 / 1e6),
        ]
    };
    let rows: Vec<Vec<String>> = inspection.videos.iter().map(row).collect();
    (!rows.is_empty()).then(|| table(&columns, &rows))
}

/// With three decimals, or as many as a small or large number needs.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_string(),
        size if size < 0.0005 => format!("{value:.0e}"),
        size if size < 1000.0 => format!("{value:.3}"),
        size if size < 1e7 => format!("{value:.0}"),
        _ => format!("{value:.2e}"),
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        short if short < 10.0 => format!("{short:.1} seconds"),
        short if short < 120.0 => format!("{short:.0} seconds"),
        middle if middle < 7200.0 => format!("{:.1} minutes", middle / 60.0),
        long => format!("{:.1} hours", long / 3600.0),
    }
}

fn shortened(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some(_) => text.chars().take(width - 1).chain(['…']).collect(),
        None => text.to_string(),
    }
}
