//! `eval …`: experiments, each a table and JSON.

mod args;
mod motor_library;
mod phase_c;
mod returns;

use experiments::amortizer_phase::Teacher;
use experiments::kernel_agreement::{FormScores, KernelOptions, KernelReport, kernel_agreement};
use experiments::matrix::Statistic;
use experiments::recursive_pour::{PAPER_BY_DEPTH, PAPER_SUP, PourOptions, PourReport, recursive_pour};
use experiments::run::load_amortizer;
use experiments::{WorldModelSettings, resolve};
use models::kernel::KernelConfig;

pub(crate) use self::args::EvalCommand;
use self::args::{KernelArgs, PourArgs};
use crate::failure::{Failure, Problem};
use crate::files;
use crate::table::{Align, table};
use crate::train::{prepared, stop_flag, training};

/// Runs one of the commands.
pub(crate) fn run(command: &EvalCommand) -> Result<(), Failure> {
    match command {
        EvalCommand::PhaseC(options) => phase_c::run(options),
        EvalCommand::Kernel(options) => kernel(options),
        EvalCommand::RecursivePour(options) => pour(options),
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

fn pour(options: &PourArgs) -> Result<(), Failure> {
    let settings: WorldModelSettings = resolve(&options.preset, &options.sets)?;
    let device = options.compute.device.open()?;
    let stop = stop_flag()?;
    let wanted = PourOptions {
        seeds: options.seeds,
        demos: options.demos as usize,
        pairs: options.pairs as usize,
        judged_on: options.judged_on,
    };
    let report = training("recursive pour", settings.train.steps * options.seeds, |progress| {
        recursive_pour(&settings, wanted, &device, Some(stop), &mut |seed, told| {
            let mut told = told.clone();
            told.step += seed * told.steps;
            told.eta_seconds *= 1.0 + (options.seeds - 1 - seed) as f64;
            progress(&told);
        })
    })?;
    let report = report.ok_or_else(stopped)?;
    match options.compute.json {
        true => files::print(&files::json_bytes(&report)?),
        false => files::print(pour_text(&report).as_bytes()),
    }
}

fn pour_text(report: &PourReport) -> String {
    let columns =
        [("|R̂ − R|", Align::Left), ("demonstrated", Align::Right), ("paper", Align::Right), ("crossed", Align::Right)];
    let shown = |it: &Statistic| match it.std {
        None => format!("{:.3}", it.mean),
        Some(std) => format!("{:.3} ± {std:.3}", it.mean),
    };
    let PourReport { demonstrated, crossed, pairs, largest_return, .. } = report;
    let depths = demonstrated.by_depth.iter().zip(PAPER_BY_DEPTH).zip(&crossed.by_depth).enumerate();
    let mut rows: Vec<Vec<String>> = depths
        .map(|(at, ((own, paper), other))| {
            vec![format!("η_{}", at + 1), shown(own), format!("{paper:.3}"), shown(other)]
        })
        .collect();
    let paper = format!("{:.3} ± {:.3}", PAPER_SUP.0, PAPER_SUP.1);
    rows.push(vec!["η_sup".to_owned(), shown(&demonstrated.sup), paper, shown(&crossed.sup)]);
    rows.push(vec!["mean".to_owned(), shown(&demonstrated.mean), "-".to_owned(), shown(&crossed.mean)]);
    let nmi = report.seeds.iter().map(|seed| seed.clustering.nmi).sum::<f64>() / report.seeds.len().max(1) as f64;
    format!(
        "{}\nover {} seeds; {} demonstrated pairs with returns up to {:.3}, {} crossed ones with returns up to {:.3}; NMI of z_T \
         against role × depth, k = 16: {nmi:.3}\n",
        table(&columns, &rows),
        report.seeds.len(),
        pairs.0,
        largest_return.0,
        pairs.1,
        largest_return.1,
    )
}

fn stopped() -> Failure {
    Problem::new("stopped before there was a result").hint("run the same command again").into()
}
