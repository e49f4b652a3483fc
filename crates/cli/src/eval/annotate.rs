//! `eval annotate`: segments and named subtasks against true phases, next to baselines.

use dataset::{Overrides, printable};
use experiments::annotate_eval::noise::Level;
use experiments::annotate_eval::scores::Figure;
use experiments::annotate_eval::shuffled::{FallbackRow, Share, ShuffledReport, evaluate_shuffled};
use experiments::annotate_eval::truth::ObjectOrder;
use experiments::annotate_eval::{AnnotateOptions, AnnotateReport, CutterReport, evaluate_annotation, noise_plot};
use experiments::{Prepared, Source};

use super::args::AnnotateEvalArgs;
use crate::data::overrides;
use crate::failure::{Failure, Problem};
use crate::files::{self, Destination};
use crate::table::{Align, table};

/// Splits need fragments of some length; those of one row leave no episode out.
const ROWS: usize = 1;

/// Scores each dataset, prints all results, and writes files if asked to.
pub(super) fn run(options: &AnnotateEvalArgs) -> Result<(), Failure> {
    let output = options.output.as_deref().map(|path| Destination::new(path, "annotate.json")).transpose()?;
    let plot = options.plot.as_deref().map(|path| Destination::new(path, "noise.svg")).transpose()?;
    let wanted = AnnotateOptions {
        peers: options.peer.clone(),
        order: options.objects.as_deref().map(ObjectOrder::read).transpose()?.unwrap_or_default(),
        levels: if options.noise { Level::ALL.to_vec() } else { Vec::new() },
        seed: options.seed,
    };
    // Pictures play no part, so their files need not be there.
    let blind = Overrides { cameras: Some(Vec::new()), ..overrides(&options.keys) };
    let prepare = |written: &String| -> Result<Prepared, Failure> {
        let source = Source::without_features(written, &blind)?;
        Ok(Prepared::new(source, options.hold_out.map(|count| count as usize), ROWS)?)
    };
    if options.shuffled {
        let prepared = options.datasets.iter().map(prepare).collect::<Result<Vec<_>, Failure>>()?;
        let report = evaluate_shuffled(&prepared, &wanted.levels, options.seed)?;
        let bytes = files::json_bytes(&report)?;
        if let Some(output) = output {
            output.write(&bytes)?;
        }
        return files::print(&if options.json { bytes } else { shuffled(&report).into_bytes() });
    }
    let mut reports = Vec::new();
    for written in &options.datasets {
        reports.push(evaluate_annotation(&prepare(written)?, &wanted)?);
    }
    if let Some(output) = output {
        // In one line: segments of all episodes are many numbers.
        let mut bytes =
            serde_json::to_vec(&reports).map_err(|error| Problem::new(format!("cannot write JSON: {error}")))?;
        bytes.push(b'\n');
        output.write(&bytes)?;
    }
    if let (Some(plot), Some(drawn)) = (plot, noise_plot(&reports)) {
        plot.write(drawn.as_bytes())?;
    }
    match options.json {
        true => files::print(&files::json_bytes(&reports)?),
        false => {
            let texts: Vec<String> = reports.iter().map(text).collect();
            files::print(texts.join("\n").as_bytes())
        }
    }
}

/// How often names fall back to the motion.
fn shuffled(report: &ShuffledReport) -> String {
    let columns = [
        ("dataset", Align::Left),
        ("episodes", Align::Left),
        ("right instruction", Align::Right),
        ("same steps", Align::Right),
        ("other steps", Align::Right),
        ("not understood", Align::Right),
    ];
    let shown = |share: Share| match share.all {
        0 => "-".to_owned(),
        all => format!("{:.1} % of {all}", 100.0 * share.by_motion as f64 / all as f64),
    };
    let row = |one: &FallbackRow| {
        let shares = [one.right, one.same_steps, one.other_steps, one.nonsense].map(shown);
        [vec![printable(&one.dataset).to_string(), one.level.clone()], shares.to_vec()].concat()
    };
    let rows = |rows: &[FallbackRow]| table(&columns, &rows.iter().map(row).collect::<Vec<_>>());
    let mut text = format!(
        "Episodes that are named by their motion, because the instruction does not fit it\n\nheld-out episodes\n\n{}\ntraining \
         episodes\n\n{}",
        rows(&report.held_out),
        rows(&report.training),
    );
    for one in &report.kinds {
        text += &format!(
            "\nRobots that are moved by {}: an alignment is used if its score is {} or more; {} is the largest threshold that \
             gives up at most 1 % of the right instructions of training episodes.\n",
            one.robots, one.used, one.chosen_on_training
        );
    }
    text
}

fn text(report: &AnnotateReport) -> String {
    let mut text = format!(
        "{}: {} held-out episodes with {:.1} true segments each; settings chosen on {} training episodes\n\n{}",
        printable(&report.dataset),
        report.held_out_episodes,
        report.true_segments,
        report.training_episodes,
        scores(&report.recorded)
    );
    for level in &report.disturbed {
        text += &format!("\n{}, {} operator\n\n{}", printable(&report.dataset), level.level, scores(&level.cutters));
    }
    for note in &report.notes {
        text += &format!("note: {}\n", printable(note));
    }
    text
}

fn scores(cutters: &[CutterReport]) -> String {
    let columns = [
        ("method", Align::Left),
        ("segments", Align::Right),
        ("boundary F1 ±0.2 s", Align::Right),
        ("±0.5 s", Align::Right),
        ("segment F1 IoU 0.5", Align::Right),
        ("0.75", Align::Right),
        ("phase", Align::Right),
        ("with object", Align::Right),
        ("setting", Align::Left),
    ];
    let row = |one: &CutterReport| {
        let Figure { mean, low, high, .. } = one.boundary_02;
        vec![
            one.name.clone(),
            format!("{:.1}", one.segments),
            format!("{mean:.3} ({low:.3} to {high:.3})"),
            format!("{:.3}", one.boundary_05.mean),
            format!("{:.3}", one.segment_50.mean),
            format!("{:.3}", one.segment_75.mean),
            format!("{:.3}", one.phase.mean),
            format!("{:.3}", one.phase_object.mean),
            one.setting.clone().unwrap_or_default(),
        ]
    };
    table(&columns, &cutters.iter().map(row).collect::<Vec<_>>())
}
