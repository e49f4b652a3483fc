//! How fast a robot moves when it moves fast: the unit in which motions are cut.

use crate::episode::Episode;
use crate::layout::{ActionLayout, Control};

/// The share of samples that are slower.
const QUANTILE: f64 = 0.99;

/// Samples per second of velocities of commanded positions; faster changes are noise.
const SAMPLES: f64 = 10.0;

impl ActionLayout {
    /// Measures the velocities of fast motions over some episodes: for commanded positions the largest change of each kind of
    /// coordinate in a second, for velocities the largest of each coordinate, and for changes the largest of each kind of
    /// coordinate, drawn half-way to that of the group; each but for one in a hundred samples.
    pub fn measure_fast(&mut self, episodes: &[Episode]) {
        let fps = self.fps;
        for (at, group) in self.groups.iter_mut().enumerate() {
            let dims = group.dims();
            let (stride, rate) = match group.control {
                Control::Absolute => (((fps / SAMPLES).round() as usize).max(1), fps),
                Control::Relative | Control::Velocity => (1, 1.0),
            };
            let velocities = |dim: usize| {
                episodes.iter().flat_map(move |episode| {
                    let commands = episode.commands(at, dim);
                    let mean = |rows: &[f64]| (rows.iter().sum::<f64>() / rows.len() as f64 * rate).abs();
                    commands.chunks(stride).map(mean).collect::<Vec<f64>>()
                })
            };
            let mut dim = 0;
            let mut fast = vec![0.0; dims];
            while dim < dims {
                // Places and rotations have a unit each. Velocities are those of a base, whose columns have units of their own.
                let block = match group.control {
                    Control::Absolute | Control::Relative => group.block(dim),
                    Control::Velocity => dim..dim + 1,
                };
                let mut largest: Vec<f64> = velocities(block.start).collect();
                for other in block.start + 1..block.end {
                    largest.iter_mut().zip(velocities(other)).for_each(|(most, one)| *most = most.max(one));
                }
                fast[block.clone()].fill(quantile(&mut largest));
                dim = block.end;
            }
            if group.control == Control::Relative {
                // Controllers take changes in a common scale or in the units of places and rotations. Half-way between, a
                // hand that turns slowly is neither still nor fast.
                let most = fast.iter().copied().fold(0.0, f64::max);
                fast.iter_mut().for_each(|one| *one = (*one * most).sqrt());
            }
            group.fast = fast;
        }
    }
}

fn quantile(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let place = ((values.len() - 1) as f64 * QUANTILE).round() as usize;
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use clustering::Points;

    use super::*;

    #[test]
    fn places_rotations_and_the_columns_of_a_base_have_scales_of_their_own() {
        let mut layout = ActionLayout::libero();
        layout.groups[0].states.clear();
        let rows: Vec<f32> =
            (0..200).flat_map(|row| [0.5, 0.01, 0.0, 0.2, 0.0, 0.0, 1.0].map(|one| one * row as f32 / 200.0)).collect();
        let read = |layout: &ActionLayout| Episode::new(layout, Points::new(&rows, 7).unwrap(), None).unwrap();
        layout.measure_fast(&[read(&layout)]);
        let fast = layout.groups[0].fast.clone();
        // 0.2 of a turn is drawn half-way to the 0.5 of the place.
        let turn = (0.4925_f64 * 0.197).sqrt();
        assert!(fast[..3].iter().all(|one| (one - 0.4925).abs() < 1e-6), "{fast:?}");
        assert!(fast[3..].iter().all(|one| (one - turn).abs() < 1e-6), "{fast:?}");
        layout.groups[0].control = Control::Velocity;
        layout.measure_fast(&[read(&layout)]);
        let fast = &layout.groups[0].fast;
        assert!((fast[1] - 0.00985).abs() < 1e-6 && fast[2] == 0.0, "{fast:?}");
        // As positions: half a unit in ten seconds, and a turn of a fifth of a radian.
        layout.groups[0].control = Control::Absolute;
        layout.measure_fast(&[read(&layout)]);
        let fast = &layout.groups[0].fast;
        assert!((fast[1] - 0.05).abs() < 1e-3 && (fast[4] - 0.02).abs() < 1e-2 && fast[3] == fast[5], "{fast:?}");
    }
}
