//! The grid of targets: steps that fit the range of a robot's motions.

use crate::alphabet::AlphabetConfig;
use crate::episode::Motion;
use crate::layout::{ActionLayout, Space};

/// For each group and each of its coordinates the step of the grid.
pub(crate) fn grids(layout: &ActionLayout, segments: &[Motion<'_>], config: &AlphabetConfig) -> Vec<Vec<f64>> {
    let of = |(at, group): (usize, &crate::layout::Group)| {
        let mut range = vec![[f64::INFINITY, f64::NEG_INFINITY]; group.dims()];
        for motion in segments {
            // Positions of a group that is not anchored begin anew in every episode, and only distances are written.
            let values = if group.anchored() { motion.end().swap_remove(at) } else { motion.displacement(at) };
            for ([least, most], value) in range.iter_mut().zip(values) {
                (*least, *most) = (least.min(value), most.max(value));
            }
        }
        let step = |dim: usize| {
            let spans = range[group.block(dim)].iter().map(|[least, most]| most - least);
            let step = spans.fold(0.0, f64::max) * config.grid;
            match group.space {
                Space::Pose(Some(_)) if dim >= 3 && config.grid > 0.0 => round_below(step.max(config.least_turn)),
                _ => round_below(step),
            }
        };
        (0..group.dims()).map(step).collect()
    };
    layout.groups.iter().enumerate().map(of).collect()
}

/// The largest 1, 2 or 5 times a power of ten that is not above a number; 0 for what is not a positive number.
fn round_below(value: f64) -> f64 {
    if !(value.is_finite() && value > 1e-12) {
        return 0.0;
    }
    let power = value.log10().floor() as i32;
    let step =
        |factor: f64, power: i32| if power < 0 { factor / 10f64.powi(-power) } else { factor * 10f64.powi(power) };
    // Rounding of the logarithm may be off by one at powers of ten.
    let steps = (power - 1..=power + 1).flat_map(|power| [1.0, 2.0, 5.0].map(|factor| step(factor, power)));
    steps.filter(|step| *step <= value * (1.0 + 1e-9)).fold(0.0, f64::max)
}

/// The nearest multiple of the grid; as it is with a grid of 0. There is one zero.
pub(crate) fn snapped(value: f64, grid: f64) -> f64 {
    if grid == 0.0 {
        return value + 0.0;
    }
    let count = (value / grid).round();
    // Dividing by a whole number gives the double nearest to the decimal, so that 0.3 is written `0.3`.
    let whole = (1.0 / grid).round();
    let exact = (whole * grid - 1.0).abs() < 1e-12;
    (if exact { count / whole } else { count * grid }) + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_has_one_zero_and_writes_decimals() {
        assert_eq!(snapped(0.31, 0.1).to_string(), "0.3");
        assert_eq!(snapped(-0.04, 0.1).to_bits(), 0.0f64.to_bits());
        assert_eq!((snapped(0.7, 0.0), snapped(1.3, 0.5), snapped(5.0, 3.0)), (0.7, 1.5, 6.0));
    }

    #[test]
    fn steps_are_round_numbers() {
        let found = [0.0199, 0.02, 0.05, 0.9, 1.0, 7.3, 120.0, 0.0, f64::NAN].map(round_below);
        assert_eq!(found, [0.01, 0.02, 0.05, 0.5, 1.0, 5.0, 100.0, 0.0, 0.0]);
    }
}
