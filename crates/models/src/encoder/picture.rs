//! From pictures to rows of patches.
//!
//! A picture of any size becomes 224×224 by bicubic resampling, the way Pillow and with it Hugging Face's processor does it:
//! a kernel with A = −0.5 that grows with the step when the picture becomes smaller, so that nothing aliases, and a result
//! of whole levels from 0 to 255. Departure from that processor: it scales the shorter side to 256 and cuts out the middle
//! 224×224. Grippers and objects at the edge of a robot's camera matter, so the whole picture is kept here, and one that is
//! not square is squeezed. Like Pillow, first across, then down, with whole levels in between; its weights are integers and
//! ours are not, which is at most one level apart.

use dataset::Frame;
use rayon::prelude::*;

/// Means of red, green and blue over ImageNet, of values in [0, 1].
const MEAN: [f64; 3] = [0.485, 0.456, 0.406];

/// Standard deviations of the same.
const DEVIATION: [f64; 3] = [0.229, 0.224, 0.225];

/// The sharpness of Pillow's kernel.
const A: f64 = -0.5;

/// A picture with another size.
///
/// # Shapes
/// The result: `[height, width, 3]`.
pub fn resized(frame: &Frame, height: usize, width: usize) -> Vec<u8> {
    if (frame.height, frame.width) == (height, width) {
        return frame.pixels.to_vec();
    }
    let across = resampling(frame.width, width);
    let down = resampling(frame.height, height);
    let mut narrow = vec![0.0_f32; frame.height * width * 3];
    for (line, out) in frame.pixels.chunks_exact(frame.width * 3).zip(narrow.chunks_exact_mut(width * 3)) {
        for ((first, weights), out) in across.iter().zip(out.chunks_exact_mut(3)) {
            for (weight, pixel) in weights.iter().zip(line[first * 3..].chunks_exact(3)) {
                out.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += weight * f32::from(*value));
            }
            out.iter_mut().for_each(|sum| *sum = level(*sum));
        }
    }
    let mut pixels = Vec::with_capacity(height * width * 3);
    let mut sums = vec![0.0_f32; width * 3];
    for (first, weights) in &down {
        sums.fill(0.0);
        for (weight, line) in weights.iter().zip(narrow[first * width * 3..].chunks_exact(width * 3)) {
            sums.iter_mut().zip(line).for_each(|(sum, value)| *sum += weight * value);
        }
        pixels.extend(sums.iter().map(|sum| level(*sum) as u8));
    }
    pixels
}

/// Pictures, normalised by [`MEAN`] and [`DEVIATION`] and cut into patches.
///
/// # Shapes
/// `pixels`: `[pictures, height, width, 3]`, height and width multiples of `patch`; the result: `[pictures · P, 3 · patch²]`
/// with P = height/patch · width/patch, each row in the order of a convolution's weights: colour, line, column.
pub(super) fn patches(pixels: &[u8], width: usize, patch: usize) -> Vec<f32> {
    let levels: [[f32; 256]; 3] = std::array::from_fn(|colour| {
        std::array::from_fn(|level| ((level as f64 / 255.0 - MEAN[colour]) / DEVIATION[colour]) as f32)
    });
    let row = 3 * patch * patch;
    let columns = width / patch;
    let mut out = vec![0.0; pixels.len()];
    let bands = out.par_chunks_exact_mut(columns * row).zip(pixels.par_chunks_exact(patch * width * 3));
    bands.for_each(|(out, band)| {
        for (at, out) in out.chunks_exact_mut(row).enumerate() {
            for (colour, out) in out.chunks_exact_mut(patch * patch).enumerate() {
                for (line, out) in out.chunks_exact_mut(patch).enumerate() {
                    let line = &band[(line * width + at * patch) * 3..][..patch * 3];
                    for (value, pixel) in out.iter_mut().zip(line.chunks_exact(3)) {
                        *value = levels[colour][usize::from(pixel[colour])];
                    }
                }
            }
        }
    });
    out
}

/// For each new cell, the first old one that it is made of, and the weights of that one and those after it.
fn resampling(from: usize, to: usize) -> Vec<(usize, Vec<f32>)> {
    let step = from as f64 / to as f64;
    let stretch = step.max(1.0);
    let cell = |at: usize| {
        let centre = (at as f64 + 0.5) * step;
        let first = (centre - 2.0 * stretch + 0.5).max(0.0) as usize;
        let end = ((centre + 2.0 * stretch + 0.5) as usize).min(from);
        let weights: Vec<f64> = (first..end).map(|old| kernel((old as f64 + 0.5 - centre) / stretch)).collect();
        let sum: f64 = weights.iter().sum();
        (first, weights.iter().map(|weight| (weight / sum) as f32).collect())
    };
    (0..to).map(cell).collect()
}

/// The nearest whole level: the kernel overshoots at edges.
fn level(value: f32) -> f32 {
    (value + 0.5).floor().clamp(0.0, 255.0)
}

fn kernel(x: f64) -> f64 {
    match x.abs() {
        x if x < 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
        x if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * A,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_are_in_the_order_of_a_convolution() {
        // Two pictures of 2×4 in patches of 2: the level of a colour tells the picture, the line and the column.
        let level = |picture: u8, line: u8, column: u8, colour: u8| picture * 100 + line * 40 + column * 10 + colour;
        let mut pixels = Vec::new();
        let mut expected = Vec::new();
        for picture in 0..2_u8 {
            for (line, column) in (0..2).flat_map(|line| (0..4).map(move |column| (line, column))) {
                pixels.extend((0..3).map(|colour| level(picture, line, column, colour)));
            }
            for (patch, colour) in (0..2).flat_map(|patch| (0..3).map(move |colour| (patch, colour))) {
                for (line, column) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    expected.push((colour, level(picture, line, patch * 2 + column, colour as u8)));
                }
            }
        }
        let found = patches(&pixels, 4, 2);
        assert_eq!(found.len(), expected.len());
        for (value, (colour, level)) in found.iter().zip(expected) {
            let wanted = (f64::from(level) / 255.0 - MEAN[colour]) / DEVIATION[colour];
            assert!((f64::from(*value) - wanted).abs() < 1e-6);
        }
    }

    #[test]
    fn a_flat_picture_stays_flat() {
        let frame = Frame { width: 9, height: 5, pixels: [7, 255, 0].repeat(45).into() };
        assert_eq!(resized(&frame, 14, 4), [7, 255, 0].repeat(56));
    }
}
