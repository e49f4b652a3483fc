//! `eval …`: experiments, each a table and JSON.

mod args;
mod motor_library;
mod phase_c;
mod pour;

use experiments::amortizer_phase::Teacher;
use experiments::kernel_agreement::{KernelOptions, KernelReport, kernel_agreement};
use experiments::run::load_amortizer;
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
        EvalCommand::PhaseC(options) => phase_c::run(options),
        EvalCommand::Kernel(options) => kernel(options),
        EvalCommand::RecursivePour(options) => pour::run(options),
        EvalCommand::MotorLibrary(options) => motor_library::run(options),
    }
}

fn kernel(options: &KernelArgs) -> Result<(), Failure> {
    let device = options.compute.device.open()?;
    let (teacher, amortizer) =
        (Teacher::load(&options.world_model, &device)?, load_amortizer(&options.amortizer, &device)?);
    let prepared = prepared(&options.data, &options.keys, teacher.loaded.record.model.horizon)?;
    let settings = KernelOptions {
        fragments: options.fragments as usize,
        lessons: options.lessons as usize,
        steps: options.steps,
        kernel: KernelConfig {
            horizon: options.horizon as usize,
            starts: options.starts as usize,
            ..KernelConfig::default()
        },
    };
    let stop = stop_flag()?;
    let report = training("separable kernel", options.steps, |progress| {
        kernel_agreement(&prepared, &teacher, &amortizer, settings, &device, Some(stop), progress)
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
    ];
    let maybe = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    let row = |form: &experiments::kernel_agreement::FormScores| {
        vec![form.form.clone(), maybe(form.spearman), format!("{:.3}", form.nmi_task), maybe(form.nmi_phase)]
    };
    let (value, rollout) = report.parts;
    format!(
        "{}: {} held-out fragments, {} pairs; mean |ΔV| {value:.4}, mean W₂ {rollout:.4}\n\n{}",
        report.dataset,
        report.fragments,
        report.pairs,
        table(&columns, &report.forms.iter().map(row).collect::<Vec<_>>())
    )
}

fn stopped() -> Failure {
    Problem::new("stopped before there was a result").hint("run the same command again").into()
}
