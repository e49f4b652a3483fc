//! The form of D_φ that segments are compared by: what has to be trained for it, and the distances that it gives.
//!
//! | form | trained before the loop | of each segment |
//! |---|---|---|
//! | `amortized` | k_χ on D_φ ([`crate::amortizer_phase`]) | one pass |
//! | `separable` | V and f on D_φ ([`crate::separable_phase`]) | one pass of the world model |
//! | `monte_carlo` | nothing | `starts · samples` rollouts |

use std::path::Path;

use candle_core::Device;
use models::FragmentTable;
use models::amortizer::{Amortizer, AmortizerConfig, Supervision};
use models::kernel::{KernelConfig, KernelForm, Separable, Signatures, euclidean};
use models::training::Outcome;

use super::classes::ClassSettings;
use crate::amortizer_phase::{Teacher, train_amortizer};
use crate::embeddings::{Embeddings, amortized_windows};
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::reference::Reference;
use crate::separable_phase::{SeparableSettings, SeparableShape, separable_signatures, train_separable};
use crate::settings::AmortizerSettings;
use crate::trained::{Launch, Loaded, load_amortizer, load_separable};
use crate::windows::Windows;

/// A form of D_φ with the models that it needs.
pub enum SegmentKernel {
    /// k_χ, trained on D_φ.
    Amortized(Box<Loaded<Amortizer, AmortizerConfig>>),
    /// V and f.
    Separable(Box<Loaded<Separable, SeparableShape>>),
    /// The world model alone.
    MonteCarlo,
}

impl SegmentKernel {
    /// The name of a form's directory in that of a run; none where nothing has to be trained.
    pub fn folder(form: KernelForm) -> Option<&'static str> {
        match form {
            KernelForm::Amortized => Some("amortizer"),
            KernelForm::Separable => Some("separable"),
            KernelForm::MonteCarlo => None,
        }
    }

    /// Trains what a form needs into its directory, from the newest checkpoint if there is one. The D_φ is that of
    /// `teacher.distances`. `None` where nothing has to be trained.
    ///
    /// # Errors
    /// On `amortized` with an amortizer that is to learn something other than D_φ.
    pub fn train(
        prepared: &Prepared,
        form: KernelForm,
        amortizer: &AmortizerSettings,
        teacher: &Teacher,
        launch: Launch<'_>,
    ) -> Result<Option<Outcome>> {
        check_supervision(form, amortizer)?;
        match form {
            KernelForm::Amortized => train_amortizer(prepared, amortizer, Some(teacher), launch).map(Some),
            KernelForm::Separable => {
                let discount = teacher.loaded.record.model.discount;
                let kernel = teacher.distances.classes.kernel_config(discount, launch.seed);
                train_separable(prepared, &SeparableSettings::from(amortizer), teacher, kernel, launch).map(Some)
            }
            KernelForm::MonteCarlo => Ok(None),
        }
    }

    /// Loads what [`SegmentKernel::train`] has written.
    pub fn load(form: KernelForm, run: &Path, device: &Device) -> Result<SegmentKernel> {
        Ok(match form {
            KernelForm::Amortized => SegmentKernel::Amortized(Box::new(load_amortizer(run, device)?)),
            KernelForm::Separable => SegmentKernel::Separable(Box::new(load_separable(run, device)?)),
            KernelForm::MonteCarlo => SegmentKernel::MonteCarlo,
        })
    }

    /// Which form it is.
    pub fn form(&self) -> KernelForm {
        match self {
            SegmentKernel::Amortized(_) => KernelForm::Amortized,
            SegmentKernel::Separable(_) => KernelForm::Separable,
            SegmentKernel::MonteCarlo => KernelForm::MonteCarlo,
        }
    }

    /// The D_φ that it stands for, with the starts and the noise that it learned from. Refuses a model of another world model
    /// or of another D_φ than the settings describe.
    pub(super) fn kernel(&self, teacher: &Teacher, settings: &ClassSettings, seed: u64) -> Result<KernelConfig> {
        let wanted = settings.kernel_config(teacher.loaded.record.model.discount, seed);
        let learned = match self {
            SegmentKernel::Amortized(loaded) => {
                teacher.check_student(&loaded.record)?;
                let metric = loaded.model.config().metric.ok_or_else(|| {
                    Error::Mismatch(
                        "the amortizer was not trained on D_φ, so its distances are not those of D_φ; train it with \
                         `supervision = \"kernel\"`"
                            .to_owned(),
                    )
                })?;
                metric.kernel
            }
            SegmentKernel::Separable(loaded) => {
                teacher.check_student(&loaded.record)?;
                loaded.record.model.kernel
            }
            SegmentKernel::MonteCarlo => return Ok(wanted),
        };
        if !learned.is_same(&KernelConfig { seed: learned.seed, ..wanted }) {
            return Err(Error::Mismatch(format!(
                "the {} form was trained on another D_φ than `cycle.classes` describes: {learned:?}, wanted {wanted:?}; train \
                 it again",
                self.form().name()
            )));
        }
        Ok(learned)
    }

    /// Distances between windows of segments.
    pub(super) fn distances(
        &self,
        reference: &Reference<'_>,
        teacher: &Teacher,
        windows: &Windows,
        table: &FragmentTable,
    ) -> Result<SegmentDistances> {
        let KernelConfig { w_r, w_e, horizon, .. } = reference.kernel();
        let signatures = match self {
            SegmentKernel::Amortized(loaded) => {
                return Ok(SegmentDistances::Embedded(amortized_windows(&loaded.model, windows, table)?));
            }
            SegmentKernel::Separable(loaded) => {
                separable_signatures(&loaded.model, &teacher.loaded.model, windows, table, horizon)?
            }
            SegmentKernel::MonteCarlo => reference.signatures(windows)?,
        };
        Ok(SegmentDistances::Imagined { signatures, w_r, w_e })
    }
}

/// Refuses an amortizer that learns something other than D_φ where its distances are to be those of D_φ.
pub fn check_supervision(form: KernelForm, amortizer: &AmortizerSettings) -> Result<()> {
    if form == KernelForm::Amortized && amortizer.supervision != Supervision::Kernel {
        return Err(Error::Settings(vec![
            "`cycle.classes.kernel` is `amortized`, and `amortizer.supervision` is not `kernel`: embedded distances would not \
             be those of D_φ; set `amortizer.supervision` to `kernel`, or `cycle.classes.kernel` to `separable` or \
             `monte_carlo`"
                .to_owned(),
        ]));
    }
    Ok(())
}

/// Distances between segments, in any form.
#[derive(Clone, Debug)]
pub enum SegmentDistances {
    /// By what follows from each.
    Imagined {
        /// Of all segments.
        signatures: Signatures,
        /// w_R.
        w_r: f64,
        /// w_E.
        w_e: f64,
    },
    /// By points whose Euclidean distances are in units of D_φ.
    Embedded(Embeddings),
}

impl SegmentDistances {
    /// D_φ of two segments, by their places.
    pub fn between(&self, one: usize, other: usize) -> f64 {
        match self {
            SegmentDistances::Imagined { signatures, w_r, w_e } => signatures.distance((one, other), *w_r, *w_e),
            SegmentDistances::Embedded(points) => euclidean(points.row(one), points.row(other)),
        }
    }

    /// Coordinates for KMeans and for maps: Euclidean distances between them stand for D_φ. Those of embeddings are the
    /// distances themselves, those of rollouts bound them ([`Signatures::coordinates`]).
    pub fn coordinates(&self) -> Result<Embeddings> {
        match self {
            SegmentDistances::Imagined { signatures, w_r, w_e } => {
                let (values, width) = signatures.coordinates(*w_r, *w_e)?;
                Ok(Embeddings { values, width })
            }
            SegmentDistances::Embedded(points) => Ok(points.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_have_the_distances_that_are_said() {
        // From one start, values all equal: both forms are the same three points.
        let points = Embeddings { values: vec![0.0, 0.0, 3.0, 4.0, 0.0, 8.0], width: 2 };
        let mut signatures = Signatures::new(1, 1, 2).unwrap();
        signatures.push(&[1.0; 3], &points.values).unwrap();
        let forms = [SegmentDistances::Embedded(points), SegmentDistances::Imagined { signatures, w_r: 1.0, w_e: 1.0 }];
        for form in forms {
            assert_eq!([form.between(0, 1), form.between(0, 2), form.between(1, 2)], [5.0, 8.0, 5.0]);
            let coordinates = form.coordinates().unwrap();
            assert_eq!(euclidean(coordinates.row(0), coordinates.row(1)), 5.0);
        }
    }

    #[test]
    fn an_amortizer_that_learns_something_else_is_refused() {
        let with = |supervision| AmortizerSettings { supervision, ..AmortizerSettings::default() };
        let error = check_supervision(KernelForm::Amortized, &with(Supervision::Distillation)).unwrap_err().to_string();
        assert!(error.contains("`amortizer.supervision`") && error.contains("`monte_carlo`"), "{error}");
        assert!(check_supervision(KernelForm::Amortized, &with(Supervision::Kernel)).is_ok());
        assert!(check_supervision(KernelForm::MonteCarlo, &with(Supervision::Distillation)).is_ok());
    }
}
