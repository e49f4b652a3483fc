//! RecursivePour: the error of imagined returns, where the true returns are known (SPEC §10).
//!
//! ```text
//! η_d = sup over s, τ of |R̂(s, τ) − R(s, τ)| ,   s and τ from evaluation demos of depth d;   η_sup = max over d of η_d
//! ```
//! R̂ is the sum of the rewards that M_φ imagines for the four actions of τ from s, and R is the return that the world itself
//! gives. M_φ is trained on demos of seed 11 and evaluated on demos of seed 999. There are no images: the whole state is
//! observed, so the standardised state takes the place of features as well.
//!
//! | figure | s | τ | pairs |
//! |---|---|---|---|
//! | `demonstrated`, the paper's | the first state of τ itself | all fragments of the evaluation demos | 1400 |
//! | `crossed`, ours | any state of a demo of the same depth | a fragment of any such demo | [`PourOptions::pairs`] a depth |
//!
//! Lemma 1 speaks of all s and τ, and a library puts fragments where they were not demonstrated: `crossed` is what it needs.
//! Most of its pairs are far from any demo, so it measures how far M_φ can be trusted there, not how well it was trained.
//!
//! η has the unit of rewards, which the paper leaves open ([`RewardScale`]). The report therefore also has the errors of
//! demonstrated pairs in litres, and it lists the fragments with the largest errors.

mod errors;
mod pairs;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use candle_core::Device;
use clustering::{KMeansConfig, Points, kmeans};
use dataset::recursive_pour::{
    self, Demo, Depth, FRAGMENT_STEPS, FRAGMENT_STRIDE, LABELS, RewardScale, SEED_EVAL, SEED_TRAIN,
};
use dataset::{Dataset, EpisodeId, FragmentIndex, Overrides, Root};
use models::training::distributed::Alone;
use models::training::{Options, Outcome, Progress, train};
use models::world_model::ContrastMode;
use models::{FragmentTable, Parameters, Scales, TableOptions, WorldModel};
use serde::{Deserialize, Serialize};

pub use self::errors::{Errors, WorstFragment};
use self::errors::{errors, imagined, worst};
use self::pairs::{Judged, Pair, constant, crossed, demonstrated};
use crate::embeddings::latents;
use crate::error::{Error, Result};
use crate::matrix::{Statistic, statistic};
use crate::scores::{Agreement, agreement};
use crate::settings::WorldModelSettings;
use crate::world_model_phase::{WorldModelObjective, resolved};

/// The paper's η_1 … η_4.
pub const PAPER_BY_DEPTH: [f64; 4] = [0.111, 0.146, 0.146, 0.205];

/// The paper's η_sup: mean and deviation over five seeds.
pub const PAPER_SUP: (f64, f64) = (0.205, 0.039);

/// How the experiment is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PourOptions {
    /// How many seeds of the model.
    pub seeds: u64,
    /// The first of them.
    pub first_seed: u64,
    /// Demos of each depth and seed for evaluation (paper: 50).
    pub demos: usize,
    /// Demos of each depth for training (paper: 50).
    pub training_demos: usize,
    /// Crossed pairs of states and fragments of each depth.
    pub pairs: usize,
    /// The seeds of the demos on which it is evaluated (paper: 999). Settings are chosen on other seeds.
    pub judged_on: Vec<u64>,
    /// The unit of rewards, for training and for errors.
    pub reward_scale: RewardScale,
    /// How many of the worst fragments of each seed are listed.
    pub worst: usize,
}

impl Default for PourOptions {
    fn default() -> Self {
        PourOptions {
            seeds: 5,
            first_seed: 0,
            demos: recursive_pour::DEMOS_PER_DEPTH,
            training_demos: recursive_pour::DEMOS_PER_DEPTH,
            pairs: 4096,
            judged_on: vec![SEED_EVAL],
            reward_scale: RewardScale::default(),
            worst: 10,
        }
    }
}

/// The result of one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PourSeed {
    /// The seed.
    pub seed: u64,
    /// Over the fragments of the evaluation demos, each from its own first state.
    pub demonstrated: Errors<f64>,
    /// The same in litres.
    pub litres: Errors<f64>,
    /// Over states and fragments of different demos.
    pub crossed: Errors<f64>,
    /// z_T of evaluation fragments, clustered (k = 16), against role × depth.
    pub clustering: Agreement,
    /// The demonstrated fragments with the largest errors, the largest first: the error of the first is η_sup.
    pub worst: Vec<WorstFragment>,
}

/// The results of all seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PourReport {
    /// The seeds of the demos on which it was evaluated.
    pub judged_on: Vec<u64>,
    /// The demos of each depth on which it was trained.
    pub training_demos: usize,
    /// The unit of rewards, and so of all errors that are not in litres.
    pub reward_scale: RewardScale,
    /// The settings of model and training.
    pub settings: WorldModelSettings,
    /// The paper's figure.
    pub demonstrated: Errors<Statistic>,
    /// The same in litres, which do not depend on the reward scale.
    pub litres: Errors<Statistic>,
    /// Demonstrated pairs without a model: the mean return of training fragments of the same depth and first step.
    pub constant: Errors<f64>,
    /// The stricter figure.
    pub crossed: Errors<Statistic>,
    /// How many pairs are demonstrated, and how many crossed.
    pub pairs: (usize, usize),
    /// The largest |R| among demonstrated and among crossed pairs, for comparison with η.
    pub largest_return: (f64, f64),
    /// Each seed.
    pub seeds: Vec<PourSeed>,
}

/// Trains on demos of seed 11 and evaluates on others, for each seed of the model. `None` if it was interrupted.
pub fn recursive_pour(
    settings: &WorldModelSettings,
    options: &PourOptions,
    device: &Device,
    stop: Option<&AtomicBool>,
    progress: &mut dyn FnMut(u64, &Progress),
) -> Result<Option<PourReport>> {
    let scale = options.reward_scale;
    let folder = tempfile::tempdir().map_err(Error::write(&std::env::temp_dir()))?;
    let open = |name: &str, demos: &[Demo]| -> Result<Dataset> {
        let place = folder.path().join(name);
        recursive_pour::write_demos(&place, demos)?;
        Ok(Dataset::open(Root::Directory(place), &Overrides::default())?)
    };
    let in_scale = |demos: Vec<Demo>| demos.into_iter().map(|demo| demo.in_scale(scale)).collect::<Vec<_>>();
    let judged = judged(options.demos, &options.judged_on);
    let shown = in_scale(recursive_pour::demos(options.training_demos, SEED_TRAIN));
    let training = open("train", &shown)?;
    let evaluation = open("eval", &in_scale(judged.iter().map(|one| one.demo.clone()).collect()))?;
    let all: Vec<EpisodeId> = (0..training.episodes().len() as u32).map(EpisodeId).collect();
    let scales = Scales::over(&training, &[], &all)?;
    let index = FragmentIndex::of_all(training.spans(), FRAGMENT_STEPS, FRAGMENT_STRIDE)?;

    let mut config = resolved(settings, &training, &all);
    (config.horizon, config.returns, config.contrast) = (FRAGMENT_STEPS, true, ContrastMode::None);
    let precision = settings.precision.on(device);
    let place = TableOptions { device: device.clone(), precision, discount: config.discount };
    let table = |dataset: &Dataset| -> Result<FragmentTable> {
        let bare = FragmentTable::new(dataset, &[], scales.clone(), &place)?;
        Ok(bare.with_states_as_features(precision)?)
    };
    let seen = table(&evaluation)?;
    let (demonstrated, crossed) = (demonstrated(&judged, scale)?, crossed(&judged, options.pairs, scale)?);

    let mut seeds = Vec::new();
    for seed in options.first_seed..options.first_seed.saturating_add(options.seeds) {
        let run = folder.path().join(format!("seed-{seed}"));
        let parameters = Parameters::new(device, precision, seed);
        let (batch, training) = (settings.batch.0, table(&training)?);
        let objective = WorldModelObjective::new(&config, batch, seed, training, index.clone(), None, parameters)?
            .in_order(settings.batches)?;
        let outcome = train(
            &objective,
            &settings.train,
            &run,
            Options {
                resume: false,
                transport: Arc::new(Alone::default()),
                progress: &mut |event| progress(seed, event),
                stop,
                metadata: serde_json::Value::Null,
            },
        )?;
        if matches!(outcome, Outcome::Stopped(_)) {
            return Ok(None);
        }
        let model = objective.model();
        let found = imagined(model, &scales, &demonstrated, device)?;
        seeds.push(PourSeed {
            seed,
            demonstrated: errors(&demonstrated, &found, |_| 1.0),
            litres: errors(&demonstrated, &found, |depth| f64::from(scale.litres(depth))),
            crossed: errors(&crossed, &imagined(model, &scales, &crossed, device)?, |_| 1.0),
            clustering: clusters(model, &seen, &evaluation, &judged)?,
            worst: worst(&demonstrated, &found, options.worst, scale),
        });
    }
    let largest = |pairs: &[Pair]| pairs.iter().map(|pair| pair.truth.abs()).fold(0.0, f64::max);
    Ok(Some(PourReport {
        judged_on: options.judged_on.clone(),
        training_demos: options.training_demos,
        reward_scale: scale,
        settings: settings.clone(),
        demonstrated: over(&seeds, |seed| &seed.demonstrated)?,
        litres: over(&seeds, |seed| &seed.litres)?,
        constant: errors(&demonstrated, &constant(&shown, &demonstrated), |_| 1.0),
        crossed: over(&seeds, |seed| &seed.crossed)?,
        pairs: (demonstrated.len(), crossed.len()),
        largest_return: (largest(&demonstrated), largest(&crossed)),
        seeds,
    }))
}

/// So many demonstrations of each depth for each of the seeds.
fn judged(per_depth: usize, seeds: &[u64]) -> Vec<Judged> {
    let of = |seed: u64| recursive_pour::demos(per_depth, seed).into_iter().enumerate();
    seeds.iter().flat_map(|&seed| of(seed).map(move |(episode, demo)| Judged { seed, episode, demo })).collect()
}

/// Errors as statistics over seeds.
fn over(seeds: &[PourSeed], of: impl Fn(&PourSeed) -> &Errors<f64>) -> Result<Errors<Statistic>> {
    let all =
        |value: &dyn Fn(&Errors<f64>) -> f64| statistic(&seeds.iter().map(|seed| value(of(seed))).collect::<Vec<_>>());
    Ok(Errors {
        by_depth: (0..Depth::ALL.len()).map(|at| all(&|errors| errors.by_depth[at])).collect::<Result<_>>()?,
        sup: all(&|errors| errors.sup)?,
        mean: all(&|errors| errors.mean)?,
    })
}

/// KMeans with k = 16 on z_T of all evaluation fragments, against role × depth.
fn clusters(model: &WorldModel, table: &FragmentTable, evaluation: &Dataset, judged: &[Judged]) -> Result<Agreement> {
    let index = FragmentIndex::of_all(evaluation.spans(), FRAGMENT_STEPS, FRAGMENT_STRIDE)?;
    let demos: Vec<Demo> = judged.iter().map(|one| one.demo.clone()).collect();
    let truth: Vec<i64> =
        recursive_pour::fragment_labels(&demos, &index).into_iter().map(|label| label as i64).collect();
    let starts: Vec<usize> = index.iter().map(|(_, fragment)| fragment.frames.start).collect();
    let found = latents(model, table, &starts, FRAGMENT_STEPS)?;
    let config = KMeansConfig { clusters: LABELS, ..KMeansConfig::default() };
    agreement(&truth, &kmeans(Points::new(&found.values, found.width)?, &config)?.labels)
}

#[cfg(test)]
mod tests {
    use models::training::{Objective as _, Part};

    use super::*;
    use crate::settings::{BatchOrder, resolve};

    const WHOLE: Part = Part { index: 0, count: 1 };

    fn settings(sets: &[&str]) -> WorldModelSettings {
        let few = ["model.width=8", "model.heads=2", "model.layers=1", "model.latent=4", "batch=8", "train.steps=3"];
        let sets: Vec<String> =
            few.iter().chain(&["train.warmup=1"]).chain(sets).map(|set| (*set).to_owned()).collect();
        resolve("pour", &sets).unwrap()
    }

    /// The first frames of the fragments of the first batches, and their depths.
    fn batches(order: BatchOrder) -> Vec<(Vec<usize>, Vec<i64>)> {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("pour");
        recursive_pour::write(&place, 4, SEED_TRAIN).unwrap();
        let dataset = Dataset::open(Root::Directory(place), &Overrides::default()).unwrap();
        let all: Vec<EpisodeId> = (0..dataset.episodes().len() as u32).map(EpisodeId).collect();
        let scales = Scales::over(&dataset, &[], &all).unwrap();
        let index = FragmentIndex::of_all(dataset.spans(), FRAGMENT_STEPS, FRAGMENT_STRIDE).unwrap();
        let mut config = resolved(&settings(&[]), &dataset, &all);
        (config.horizon, config.contrast) = (FRAGMENT_STEPS, ContrastMode::None);
        let precision = models::Precision::F32;
        let options = TableOptions { device: Device::Cpu, precision, discount: config.discount };
        let table =
            FragmentTable::new(&dataset, &[], scales, &options).unwrap().with_states_as_features(precision).unwrap();
        let parameters = Parameters::new(&Device::Cpu, precision, 0);
        let objective = WorldModelObjective::new(&config, 8, 0, table, index, None, parameters).unwrap();
        let objective = objective.in_order(order).unwrap();
        let drawn = (0..6).map(|step| objective.prepare(step, WHOLE).unwrap().starts);
        drawn.map(|starts| (starts.clone(), objective.table().labels(&starts))).collect()
    }

    #[test]
    fn batches_by_task_hold_every_depth_equally_often() {
        for (_, depths) in batches(BatchOrder::ByTask) {
            let counts: Vec<usize> =
                (0..4).map(|depth| depths.iter().filter(|found| **found == depth).count()).collect();
            assert_eq!(counts, [2, 2, 2, 2]);
        }
    }

    #[test]
    fn by_default_batches_are_epochs_in_which_depth_1_is_rare() {
        assert_eq!(WorldModelSettings::default().batches, BatchOrder::Auto);
        let drawn = batches(BatchOrder::default());
        // 4 demos of each depth have 4·28 fragments, so the first 48 of an epoch are all different.
        let starts: std::collections::BTreeSet<usize> = drawn.iter().flat_map(|(starts, _)| starts.clone()).collect();
        assert_eq!(starts.len(), 48);
        let of_depth_1 = drawn.iter().flat_map(|(_, depths)| depths).filter(|depth| **depth == 0).count();
        assert!(of_depth_1 <= 4, "there are only four");
    }

    #[test]
    fn the_report_is_consistent_and_its_defaults_are_the_papers() {
        let defaults = PourOptions::default();
        assert_eq!((defaults.reward_scale, &defaults.judged_on[..]), (RewardScale::Depth, &[SEED_EVAL][..]));
        assert_eq!((defaults.demos, defaults.training_demos, defaults.seeds), (50, 50, 5));
        let run = |scale: RewardScale| {
            let options = PourOptions {
                seeds: 2,
                first_seed: 0,
                demos: 2,
                training_demos: 3,
                pairs: 8,
                judged_on: vec![12, 13],
                reward_scale: scale,
                worst: 4,
            };
            recursive_pour(&settings(&["batches=by_task"]), &options, &Device::Cpu, None, &mut |_, _| {})
                .unwrap()
                .unwrap()
        };
        for report in RewardScale::ALL.map(run) {
            assert_eq!(report.pairs, (2 * 2 * 28, 4 * 8));
            for seed in &report.seeds {
                assert_eq!((seed.worst.len(), seed.worst[0].error), (4, seed.demonstrated.sup));
                assert!(seed.worst.is_sorted_by(|one, next| one.error >= next.error));
                for (depth, (own, litres)) in
                    Depth::ALL.iter().zip(seed.demonstrated.by_depth.iter().zip(&seed.litres.by_depth))
                {
                    assert!((own * f64::from(report.reward_scale.litres(*depth)) - litres).abs() < 1e-9);
                }
                assert_eq!(seed.demonstrated.sup, seed.demonstrated.by_depth.iter().copied().fold(0.0, f64::max));
            }
        }
    }
}
