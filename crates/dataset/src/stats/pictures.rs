//! Which pictures of an episode are looked at for statistics, and at which of their pixels.
//!
//! As lerobot 0.4.4 has it: `n^¾` frames of `n`, at least 100 and at most 10 000, evenly spread; of pictures with a
//! side of 300 pixels or more every k-th row and column, so that about 150 remain.

use super::Running;
use crate::frame::Frame;

/// The frames of an episode of this many that are looked at, in order.
pub fn sampled_frames(length: usize) -> Vec<usize> {
    const LEAST: usize = 100;
    const MOST: usize = 10_000;
    let number = ((length as f64).powf(0.75) as usize).min(MOST).max(LEAST.min(length));
    match number {
        0 => Vec::new(),
        1 => vec![0],
        number => {
            let step = (length - 1) as f64 / (number - 1) as f64;
            (0..number).map(|at| ((at as f64 * step).round_ties_even() as usize).min(length - 1)).collect()
        }
    }
}

/// Every how many rows and columns of a picture are looked at.
pub fn pixel_step(width: usize, height: usize) -> usize {
    const LARGE: usize = 300;
    const TARGET: usize = 150;
    if width.max(height) < LARGE { 1 } else { width.max(height) / TARGET }
}

/// Adds the sampled pictures of an episode to statistics of width 3.
pub fn add_pictures(running: &mut Running, episode: &[Frame]) {
    let mut numbers = vec![[0u64; 3]; 256];
    let sampled = sampled_frames(episode.len());
    for frame in sampled.iter().map(|at| &episode[*at]) {
        let step = pixel_step(frame.width, frame.height);
        for row in frame.pixels.chunks_exact(frame.width.max(1) * 3).step_by(step) {
            for pixel in row.chunks_exact(3).step_by(step) {
                for (colour, value) in pixel.iter().enumerate() {
                    numbers[usize::from(*value)][colour] += 1;
                }
            }
        }
    }
    let values: Vec<f64> = (0..=255u8).map(|value| f64::from(value) / 255.0).collect();
    running.add_counted(sampled.len() as u64, &values, |value, colour| numbers[value][colour]);
}
