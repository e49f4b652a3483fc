//! Windows of an image, and how far what they show has moved in another image.
//!
//! A window is aligned with the other image by Gauss–Newton steps over its displacement (Lucas and Kanade 1981), so that
//! displacements are found to a fraction of a pixel. Brightness may differ by a constant for each colour.

use dataset::Frame;
use models::encoder::resized;

/// Pixels on a side of the images that are compared.
pub(super) const SIDE: usize = 128;

/// Pixels on a side of a window.
const SIZE: usize = 16;

/// Pixels between neighbouring windows.
const STRIDE: usize = 4;

/// Windows on a side of an image.
const ACROSS: usize = (SIDE - SIZE) / STRIDE + 1;

/// Windows of an image.
pub(super) const WINDOWS: usize = ACROSS * ACROSS;

/// The most pixels from a first guess to where a window is found.
const FARTHEST: f32 = 5.0;

/// Gauss–Newton steps.
const STEPS: usize = 6;

/// What is added to the squared gradients of a window, for each of its pixels: where nothing is to be seen, nothing moves.
const FLATNESS: f32 = 3e-4;

/// Weights of the blur that comes first, in pixels from the middle: a deviation of one pixel.
const BLUR: [f32; 4] = [0.399, 0.242, 0.054, 0.0045];

/// An image at one resolution, slightly blurred, with values from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
struct Level {
    side: usize,
    pixels: Vec<f32>,
}

impl Level {
    fn new(sharp: &[f32], side: usize) -> Level {
        Level { side, pixels: blurred(&blurred(sharp, 3, side), 3 * side, side) }
    }

    /// The same with half as many pixels on a side, each the mean of four.
    fn halved(&self) -> Level {
        let (side, row) = (self.side / 2, self.side * 3);
        let mean = |at: usize| {
            let (x, y, colour) = (at / 3 % side, at / 3 / side, at % 3);
            let corner = 2 * y * row + 6 * x + colour;
            (self.pixels[corner] + self.pixels[corner + 3] + self.pixels[corner + row] + self.pixels[corner + row + 3])
                / 4.0
        };
        Level::new(&(0..side * side * 3).map(mean).collect::<Vec<f32>>(), side)
    }

    /// The colour at a place between pixels; beyond the edge it is that of the edge.
    fn at(&self, x: f32, y: f32) -> [f32; 3] {
        let most = self.side as f32 - 1.001;
        let (x, y) = (x.clamp(0.0, most), y.clamp(0.0, most));
        let (left, top) = (x as usize, y as usize);
        let (right, down) = (x - left as f32, y - top as f32);
        let corner = (top * self.side + left) * 3;
        let row = &self.pixels[corner..corner + 6];
        let below = &self.pixels[corner + self.side * 3..corner + self.side * 3 + 6];
        std::array::from_fn(|colour| {
            let along = |row: &[f32]| row[colour] + right * (row[colour + 3] - row[colour]);
            let (upper, lower) = (along(row), along(below));
            upper + down * (lower - upper)
        })
    }
}

/// An image of [`SIDE`] pixels on a side, and the same with half as many.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Picture([Level; 2]);

impl Picture {
    /// A camera's image as bytes, [`SIDE`] pixels on a side.
    pub(super) fn of(frame: &Frame) -> Vec<u8> {
        resized(frame, SIDE, SIDE)
    }

    /// An image that [`Picture::of`] made.
    pub(super) fn new(bytes: &[u8]) -> Picture {
        let sharp: Vec<f32> = bytes.iter().map(|level| f32::from(*level) / 255.0).collect();
        let whole = Level::new(&sharp, SIDE);
        Picture([whole.halved(), whole])
    }

    /// The same for bytes of a file; `None` if they are of another size.
    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Picture> {
        (bytes.len() == SIDE * SIDE * 3).then(|| Picture::new(bytes))
    }
}

/// Blurs along one direction, in which neighbours are `step` numbers apart.
fn blurred(values: &[f32], step: usize, side: usize) -> Vec<f32> {
    let line = step * side;
    let sum: f32 = BLUR[0] + 2.0 * BLUR[1..].iter().sum::<f32>();
    let mut out = vec![0.0; values.len()];
    for (at, out) in out.iter_mut().enumerate() {
        let (first, place) = (at / line * line + at % step, at % line / step);
        let value = |place: usize| values[first + place * step];
        *out = BLUR[0] / sum * value(place);
        for (off, weight) in BLUR.iter().enumerate().skip(1) {
            *out += weight / sum * (value(place.saturating_sub(off)) + value((place + off).min(side - 1)));
        }
    }
    out
}

/// The middle of a window, in pixels.
pub(super) fn middle(number: usize) -> [f32; 2] {
    [number % ACROSS, number / ACROSS].map(|place| (place * STRIDE + SIZE / 2) as f32 - 0.5)
}

/// A window of a reference image: in its middle at full resolution, and around that at half of it.
pub(super) struct Window([Patch; 2]);

/// A window at one resolution.
struct Patch {
    /// The middle, in pixels of the resolution.
    middle: [f32; 2],
    /// The colours of its pixels, and their gradients to the right and down, which have a mean of zero.
    pixels: Vec<[f32; 3]>,
    gradients: Vec<[[f32; 3]; 2]>,
    /// The inverse of the squared gradients.
    inverse: [[f32; 2]; 2],
    /// How much its colours differ.
    contrast: f32,
}

/// How a window is found in another image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    /// By how many pixels it has moved, to the right and down.
    pub(super) shift: [f32; 2],
    /// What is different after all, as a share of the window's contrast.
    pub(super) left: f32,
}

impl Found {
    /// How different a window looks: what is left of its contrast, and the share of the farthest displacement.
    pub(super) fn unlike(&self) -> f64 {
        let square: f32 = self.shift.iter().map(|shift| (shift / FARTHEST).powi(2)).sum();
        f64::from(self.left.min(1.0) + square)
    }
}

/// For each pixel of a window its place relative to the middle, and what it counts.
fn places() -> impl Iterator<Item = ([f32; 2], f32)> {
    let middle = SIZE as f32 / 2.0 - 0.5;
    let width = SIZE as f32 / 3.0;
    (0..SIZE * SIZE).map(move |at| {
        let place = [(at % SIZE) as f32 - middle, (at / SIZE) as f32 - middle];
        (place, (-(place[0] * place[0] + place[1] * place[1]) / (2.0 * width * width)).exp())
    })
}

/// Takes off the mean of each colour.
fn centred(colours: &mut [[f32; 3]], weights: &[f32]) {
    let all: f32 = weights.iter().sum();
    for colour in 0..3 {
        let mean = colours.iter().zip(weights).map(|(value, weight)| weight * value[colour]).sum::<f32>() / all;
        colours.iter_mut().for_each(|value| value[colour] -= mean);
    }
}

fn dot(one: &[f32; 3], other: &[f32; 3]) -> f32 {
    one[0] * other[0] + one[1] * other[1] + one[2] * other[2]
}

impl Window {
    /// A window of a reference image, by its number below [`WINDOWS`].
    pub(super) fn new(reference: &Picture, number: usize) -> Window {
        let whole = middle(number);
        // The middle of a pixel of half the resolution is between four.
        let half = whole.map(|place| (place - 0.5) / 2.0);
        let [coarse, fine] = &reference.0;
        Window([Patch::new(coarse, half), Patch::new(fine, whole)])
    }

    /// Where it is in another image: near its own place, or near where its surroundings are, whichever looks more alike.
    pub(super) fn find(&self, picture: &Picture) -> Found {
        let ([coarse, fine], Window([around, own])) = (&picture.0, self);
        let far = around.find(coarse, [0.0; 2]).shift.map(|pixels| 2.0 * pixels);
        let (near, other) = (own.find(fine, [0.0; 2]), own.find(fine, far));
        if other.left < near.left { other } else { near }
    }
}

impl Patch {
    fn new(reference: &Level, middle: [f32; 2]) -> Patch {
        let weights: Vec<f32> = places().map(|(_, weight)| weight).collect();
        let seen = |right: f32, down: f32| -> Vec<[f32; 3]> {
            places().map(|([x, y], _)| reference.at(middle[0] + x + right, middle[1] + y + down)).collect()
        };
        let slope = |before: Vec<[f32; 3]>, after: Vec<[f32; 3]>| {
            let pairs = before.iter().zip(&after);
            let mut slope: Vec<[f32; 3]> =
                pairs.map(|(before, after)| std::array::from_fn(|at| (after[at] - before[at]) / 2.0)).collect();
            centred(&mut slope, &weights);
            slope
        };
        let across = slope(seen(-1.0, 0.0), seen(1.0, 0.0));
        let down = slope(seen(0.0, -1.0), seen(0.0, 1.0));
        let sum = |one: &[[f32; 3]], other: &[[f32; 3]]| -> f32 {
            one.iter().zip(other).zip(&weights).map(|((one, other), weight)| weight * dot(one, other)).sum()
        };
        let flat = FLATNESS * weights.iter().sum::<f32>();
        let (xx, xy, yy) = (sum(&across, &across) + flat, sum(&across, &down), sum(&down, &down) + flat);
        let determinant = xx * yy - xy * xy;
        let inverse = [[yy / determinant, -xy / determinant], [-xy / determinant, xx / determinant]];
        let pixels = seen(0.0, 0.0);
        let mut own = pixels.clone();
        centred(&mut own, &weights);
        let gradients = across.into_iter().zip(down).map(|(across, down)| [across, down]).collect();
        Patch { middle, pixels, gradients, inverse, contrast: sum(&own, &own) + flat }
    }

    /// Where it is in another image, not far from a first guess.
    fn find(&self, picture: &Level, guess: [f32; 2]) -> Found {
        let places: Vec<([f32; 2], f32)> = places().collect();
        let weights: Vec<f32> = places.iter().map(|(_, weight)| *weight).collect();
        let off = |shift: [f32; 2]| {
            let mut off: Vec<[f32; 3]> = places
                .iter()
                .zip(&self.pixels)
                .map(|(([x, y], _), own)| {
                    let seen = picture.at(self.middle[0] + x + shift[0], self.middle[1] + y + shift[1]);
                    std::array::from_fn(|colour| seen[colour] - own[colour])
                })
                .collect();
            centred(&mut off, &weights);
            off
        };
        let mut shift = guess;
        for _ in 0..STEPS {
            let mut slope = [0.0_f32; 2];
            for ((off, gradients), weight) in off(shift).iter().zip(&self.gradients).zip(&weights) {
                for (slope, gradient) in slope.iter_mut().zip(gradients) {
                    *slope += weight * dot(off, gradient);
                }
            }
            for ((shift, guess), row) in shift.iter_mut().zip(guess).zip(&self.inverse) {
                *shift = (*shift - row[0] * slope[0] - row[1] * slope[1]).clamp(guess - FARTHEST, guess + FARTHEST);
            }
        }
        let left: f32 = off(shift).iter().zip(&weights).map(|(off, weight)| weight * dot(off, off)).sum();
        Found { shift, left: left / self.contrast }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn picture(frame: &Frame) -> Picture {
        Picture::new(&Picture::of(frame))
    }

    /// An image with blobs of some colours at some places.
    pub(in super::super) fn scene(blobs: &[([f32; 2], [f32; 3])]) -> Frame {
        let mut pixels = vec![0_u8; SIDE * SIDE * 3];
        for (at, pixel) in pixels.chunks_exact_mut(3).enumerate() {
            let (x, y) = ((at % SIDE) as f32, (at / SIDE) as f32);
            for (colour, pixel) in pixel.iter_mut().enumerate() {
                // A floor that gets brighter to one side, so that edges of blobs are not all that is seen.
                let mut level = 90.0 + 0.2 * x;
                for ([left, top], colours) in blobs {
                    let square = ((x - left).powi(2) + (y - top).powi(2)) / 18.0;
                    level += (colours[colour] - 90.0) * (-square).exp();
                }
                *pixel = level.clamp(0.0, 255.0).round() as u8;
            }
        }
        Frame { width: SIDE, height: SIDE, pixels: pixels.into() }
    }

    #[test]
    fn a_blob_that_moved_is_found_to_a_fraction_of_a_pixel() {
        let red = [220.0, 30.0, 30.0];
        let reference = picture(&scene(&[([61.0, 50.0], red)]));
        let number = (50 - SIZE / 2) / STRIDE * ACROSS + (61 - SIZE / 2) / STRIDE;
        let window = Window::new(&reference, number);
        assert!(middle(number).iter().zip([61.0, 50.0]).all(|(middle, blob)| (middle - blob).abs() <= 4.0));
        for shift in [[0.0, 0.0], [1.3, -0.6], [-2.5, 2.0]] {
            let moved = picture(&scene(&[([61.0 + shift[0], 50.0 + shift[1]], red)]));
            let found = window.find(&moved);
            assert!((found.shift[0] - shift[0]).abs() < 0.1 && (found.shift[1] - shift[1]).abs() < 0.1, "{found:?}");
            assert!(found.left < 0.02, "{found:?}");
        }
        // An image without the blob is recognised as different.
        assert!(window.find(&picture(&scene(&[]))).left > 0.5);
    }

    #[test]
    fn nothing_moves_where_nothing_is_to_be_seen() {
        let picture = picture(&scene(&[]));
        let found = Window::new(&picture, 0).find(&picture);
        assert_eq!(found.shift, [0.0, 0.0]);
        assert!(Picture::of_bytes(&[0; 12]).is_none());
    }
}
