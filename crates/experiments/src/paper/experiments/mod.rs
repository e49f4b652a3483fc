//! The experiments, one file each. To add one, write its file and name it in [`EXPERIMENTS`].

mod ablate;
mod capacity;
mod clusterer;
mod cross_provider;
mod dynamics;
mod eta;
mod lang;
mod library;
mod matrix;
mod mechanisms;
mod programs;
mod theory;
mod wake;
mod windows;

use super::Experiment;

/// All of them, in the order in which `eval all` runs them: what trains the models that others use comes first.
pub static EXPERIMENTS: [&'static dyn Experiment; 11] = [
    &matrix::Matrix,
    &mechanisms::Mechanisms,
    &clusterer::ClustererSensitivity,
    &ablate::Ablate,
    &windows::ContrastWindows,
    &cross_provider::CrossProvider,
    &capacity::Capacity,
    &library::LibraryLearning,
    &wake::Wake,
    &eta::Eta,
    &theory::Theory,
];
