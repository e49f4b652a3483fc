//! Power and false-alarm rate of the soundness gate and the return gate, over random linear worlds in which everything is known.
//!
//! `cargo run -p experiments --example gate_power`
//!
//! **Return gate.** A call's actions are replaced by others whose return differs by s·ξ, ξ standard normal and drawn anew for each
//! call, so that the true mean size of the change is s·√(2/π); s is chosen to make it a multiple of ε. Below ε a rejection is a
//! false alarm, above ε it is power, and exactly at ε an admission is the error that the level limits. The last columns repeat
//! ε for two weaker tests: percentile bootstrap without Student's bound, and the t-test that takes every rollout as a call.
//!
//! **Soundness gate.** A candidate merges segments of one class, or a share of its calls is of another class.
//!
//! Rates have Wilson intervals of 95 %.
#![expect(clippy::print_stdout, reason = "this is what it is for")]

#[path = "../tests/gates/linear_world.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod linear_world;

use clustering::{BootstrapConfig, bootstrap_mean};
use experiments::cycle::gates::{Gate as _, GateSettings, Returns, Soundness};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use linear_world::{ACTIONS, BODY, LinearEvidence, Recording, STEPS, candidate, generator, normals};

/// How many worlds.
const WORLDS: u64 = 200;

/// Numbers of calls of a candidate.
const CALLS: [usize; 6] = [2, 3, 6, 12, 24, 48];

/// True changes of return, in multiples of ε.
const CHANGES: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

/// Shares of calls whose first motion is of another class.
const SHARES: [f64; 4] = [0.0, 0.125, 0.25, 0.5];

/// Candidates that a step of the loop may judge.
const JUDGED: usize = 32;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut returns = vec![[0_usize; CHANGES.len()]; CALLS.len()];
    let mut weaker = vec![[0_usize; 2]; CALLS.len()];
    let mut soundness = vec![[0_usize; SHARES.len()]; CALLS.len()];
    for seed in 0..WORLDS {
        for (at, calls) in CALLS.into_iter().enumerate() {
            let recording = Recording::new(seed, (0..2 * calls).flat_map(|pair| [2 * (pair % 2), 1]).collect())?;
            for (column, change) in CHANGES.into_iter().enumerate() {
                let rejected = changes_return(&recording, seed, calls, change)?;
                returns[at][column] += usize::from(rejected.by_gate);
                if change == 1.0 {
                    weaker[at][0] += usize::from(rejected.by_percentile);
                    weaker[at][1] += usize::from(rejected.by_rollouts);
                }
            }
            for (column, share) in SHARES.into_iter().enumerate() {
                soundness[at][column] += usize::from(merges_classes(&recording, calls, share)?);
            }
        }
    }
    let settings = GateSettings::default();
    println!(
        "{WORLDS} random linear worlds; ε = {}, α = {} over {JUDGED} candidates, {} rollouts each\n",
        settings.return_margin, settings.level, settings.rollouts
    );
    println!("Return gate: share of candidates rejected, by true mean size of the change of return\n");
    let heads = CHANGES.map(|change| format!("{change} ε"));
    let heads = heads.into_iter().chain(["1 ε, percentile alone".to_owned(), "1 ε, t-test over rollouts".to_owned()]);
    let rows = returns.iter().zip(&weaker).map(|(own, weaker)| own.iter().chain(weaker).copied().collect());
    print_table(heads.collect(), rows.collect());
    println!(
        "\nSoundness gate: share of candidates rejected, by share of calls of another class, rounded to whole calls\n"
    );
    let heads = SHARES.map(|share| format!("{} %", 100.0 * share)).to_vec();
    print_table(heads, soundness.iter().map(|own| own.to_vec()).collect());
    Ok(())
}

/// Whether a candidate with a known change of return is rejected.
struct Rejected {
    by_gate: bool,
    /// By the bootstrap over calls at the gate's level, without Student's bound.
    by_percentile: bool,
    /// By a t-test at the uncorrected level that takes every rollout as a call.
    by_rollouts: bool,
}

fn changes_return(
    recording: &Recording,
    seed: u64,
    calls: usize,
    change: f64,
) -> Result<Rejected, Box<dyn std::error::Error>> {
    // Only ε limits the change here, not the control, so that the true limit is known.
    let settings = GateSettings { control_share: 0.0, ..GateSettings::default() };
    let scale = change * settings.return_margin * recording.largest_return() / (2.0 / std::f64::consts::PI).sqrt();
    let sensitivity = recording.world.sensitivity();
    let square: f64 = sensitivity.iter().map(|one| one * one).sum();
    let mut random = generator(seed, format!("changes {calls} {change}").as_bytes());
    let drawn: Vec<f64> = (0..calls).map(|_| normals::<1>(&mut random)[0]).collect();
    let instead = |call: usize, first: usize| {
        let mut rows = recording.rows(first..first + BODY).to_vec();
        for row in rows.chunks_exact_mut(ACTIONS) {
            for (value, own) in row.iter_mut().zip(sensitivity) {
                *value += (scale * drawn[call] * own / square) as f32;
            }
        }
        rows
    };
    let evidence = LinearEvidence { recording, instead: Box::new(instead) };
    let scene = evidence.scene();
    let gate = Returns::new(&settings, JUDGED, seed);
    let figure = gate.judge(&candidate(&of_class(recording, 0, calls), 40.0), &scene)?;

    // Noise cancels in a linear world, so that each rollout of a call gives its exact change.
    let sizes: Vec<f64> = drawn.iter().map(|one| (scale * one / recording.largest_return()).abs()).collect();
    let level = settings.level / JUDGED as f64;
    let config = BootstrapConfig { resamples: 10_000, confidence: 1.0 - 2.0 * level, seed };
    let percentile = bootstrap_mean(&sizes, &config)?.high;
    let rollouts: Vec<f64> = (0..settings.rollouts)
        .map(|at| sizes[if calls >= settings.rollouts { at * calls / settings.rollouts } else { at % calls }])
        .collect();
    let count = rollouts.len() as f64;
    let mean = rollouts.iter().sum::<f64>() / count;
    let variance = rollouts.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let quantile = StudentsT::new(0.0, 1.0, count - 1.0)?.inverse_cdf(1.0 - settings.level);
    Ok(Rejected {
        by_gate: figure.rejects(),
        by_percentile: percentile >= settings.return_margin,
        by_rollouts: mean + quantile * (variance / count).sqrt() >= settings.return_margin,
    })
}

/// Whether a candidate is rejected, a share of whose calls begins with a motion of another class.
fn merges_classes(recording: &Recording, calls: usize, share: f64) -> Result<bool, Box<dyn std::error::Error>> {
    let others = (share * calls as f64).round() as usize;
    let mut firsts = of_class(recording, 0, calls - others);
    firsts.extend(of_class(recording, 2, others));
    let instead = |_: usize, first: usize| recording.motion(&recording.classes[first..first + BODY]);
    let evidence = LinearEvidence { recording, instead: Box::new(instead) };
    Ok(Soundness.judge(&candidate(&firsts, 40.0), &evidence.scene())?.rejects())
}

/// The first segments of some pairs that begin with a class.
fn of_class(recording: &Recording, class: usize, count: usize) -> Vec<usize> {
    let first = |at: &usize| recording.classes[*at] == class;
    debug_assert!(recording.rows(0..1).len() == STEPS * ACTIONS, "a segment has {STEPS} steps");
    (0..recording.classes.len()).step_by(BODY).filter(first).take(count).collect()
}

fn print_table(heads: Vec<String>, rows: Vec<Vec<usize>>) {
    println!("| calls | {} |", heads.join(" | "));
    println!("|---:|{}", "---:|".repeat(heads.len()));
    for (calls, row) in CALLS.into_iter().zip(rows) {
        println!("| {calls} | {} |", row.into_iter().map(rate).collect::<Vec<_>>().join(" | "));
    }
}

/// A share of the worlds in percent, with its Wilson interval.
fn rate(count: usize) -> String {
    let share = count as f64 / WORLDS as f64;
    let (low, high) = clustering::wilson_interval(count as u64, WORLDS);
    format!("{:.1} ({:.1}–{:.1})", 100.0 * share, 100.0 * low, 100.0 * high)
}
