//! `eval …`: experiments, each a table and JSON.

mod annotate;
mod args;
mod closed_loop;
mod motor_library;
mod paper;
mod phase_c;
mod pour;
mod returns;

use experiments::amortizer_phase::Teacher;
use experiments::kernel_agreement::{FormScores, KernelOptions, KernelReport, kernel_agreement};
use experiments::trained::load_amortizer;
use models::kernel::KernelConfig;

pub(crate) use self::args::EvalCommand;
use self::args::KernelArgs;
use crate::failure::{Failure, Problem};
use crate::files;
use crate::table::{Align, table};
use crate::train::{prepared, stop_flag, training};

/// Runs one of the commands.
pub(crate) fn run(command: &EvalCommand) -> Result<(), Failure> {
    match command {
        EvalCommand::Annotate(options) => annotate::run(options),
        EvalCommand::ClosedLoop(options) => closed_loop::run(options),
        EvalCommand::Paper(command) => paper::run(command),
        EvalCommand::PhaseC(options) => phase_c::run(options),
        EvalCommand::Kernel(options) => kernel(options),
        EvalCommand::RecursivePour(options) => pour::run(options),
        EvalCommand::MotorLibrary(options) => motor_library::run(options),
        EvalCommand::Returns(options) => returns::run(options),
    }
}

fn kernel(options: &KernelArgs) -> Result<(), Failure> {
    let device = options.compute.device.open()?;
    let teacher = Teacher::load(&options.world_model, &device)?;
    let amortizers =
        options.amortizers.iter().map(|run| load_amortizer(run, &device)).collect::<experiments::Result<Vec<_>>>()?;
    let prepared = prepared(&options.data, &options.keys, teacher.loaded.record.model.horizon)?;
    let kernel = KernelConfig::default();
    let settings = KernelOptions {
        fragments: options.fragments as usize,
        lessons: options.lessons as usize,
        steps: options.steps,
        kernel: KernelConfig {
            horizon: options.horizon.map_or(prepared.training.length().min(kernel.horizon), |horizon| horizon as usize),
            starts: options.starts.map_or(kernel.starts, |starts| starts as usize),
            samples: options.samples.map_or(kernel.samples, |samples| samples as usize),
            ..kernel
        },
    };
    let trained_on = amortizers.iter().any(|amortizer| amortizer.model.config().metric.is_some());
    if trained_on && (options.horizon.is_some() || options.starts.is_some() || options.samples.is_some()) {
        return Err(Problem::new(
            "`--horizon`, `--starts` and `--samples` are those that the amortizer was trained on",
        )
        .hint("leave them out")
        .into());
    }
    let stop = stop_flag()?;
    let report = training("separable kernel", options.steps, |progress| {
        kernel_agreement(&prepared, &teacher, &amortizers, settings, &device, Some(stop), progress)
    })?;
    let report = report.ok_or_else(stopped)?;
    match options.compute.json {
        true => files::print(&files::json_bytes(&report)?),
        false => files::print(kernel_text(&report).as_bytes()),
    }
}

fn kernel_text(report: &KernelReport) -> String {
    let columns = [
        ("form", Align::Left),
        ("Spearman with mc", Align::Right),
        ("NMI task", Align::Right),
        ("NMI phase", Align::Right),
        ("µs per pair", Align::Right),
        ("mc / form", Align::Right),
    ];
    let maybe = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    let reference = report.forms.first().map_or(0.0, |form| form.seconds_per_pair);
    let row = |form: &FormScores| {
        vec![
            form.form.clone(),
            maybe(form.spearman),
            format!("{:.3}", form.nmi_task),
            maybe(form.nmi_phase),
            format!("{:.2}", form.seconds_per_pair * 1e6),
            format!("{:.0}×", reference / form.seconds_per_pair.max(f64::MIN_POSITIVE)),
        ]
    };
    let KernelReport { horizon, starts, samples, parts: (value, rollout), .. } = report;
    format!(
        "{}: {} held-out fragments, {} pairs; D_φ over {horizon} actions, {starts} starts, {samples} rollouts from each; mean \
         |ΔV| {value:.4}, mean W₂ {rollout:.4}\n\n{}",
        report.dataset,
        report.fragments,
        report.pairs,
        table(&columns, &report.forms.iter().map(row).collect::<Vec<_>>())
    )
}

fn stopped() -> Failure {
    Problem::new("stopped before there was a result").hint("run the same command again").into()
}
