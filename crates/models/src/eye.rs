//! Trainable spatial vision: from the images of all cameras to a few places in each, learned together with what uses them.
//!
//! Each camera has a small convolutional stem over a grid of patches (128×128 pixels in patches of 4: 32×32, then 16×16). A
//! softmax over the grid turns each of its maps into one *keypoint*, the expected place of what the map responds to (spatial
//! softmax: Finn et al. 2016, *Deep spatial autoencoders*). A keypoint is two numbers in [−1, 1]: an image becomes a few
//! precise places instead of one vector about everything. Nothing is pretrained, so no weights have to be downloaded.
//!
//! Training shifts images by a few pixels and changes their brightness and colour ([`Look`]). [`EyeConfig::see`] makes the
//! network's input of an image, in training and when a policy is served.

use candle_core::{D, DType, Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::layers::{LayerNorm, Linear};
use crate::ops::Form;
use crate::ops::unfold::Unfold;
use crate::parameters::{Init, Scope};
use crate::widths::Widths;

/// Convolutions after the stride of two: neighbours at these distances.
const DILATIONS: [usize; 2] = [1, 2];

/// Scores are multiplied by this before the softmax, so that maps are not flat at the start.
const SHARPNESS: f64 = 4.0;

/// The shape of the eye, and how images are varied while it learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EyeConfig {
    /// Pixels on a side; images of other sizes are resampled.
    pub side: usize,
    /// Pixels on a side of a patch; it divides the side into an even number of patches.
    pub patch: usize,
    /// Numbers at each place of the grid.
    pub width: usize,
    /// Keypoints of a camera.
    pub keypoints: usize,
    /// Images are shifted by up to this many pixels in training.
    pub shift: usize,
    /// Brightness and colour vary by about this many percent in training.
    pub jitter: usize,
    /// Cameras; set from the dataset when a model is made.
    pub cameras: usize,
    /// Fused or composed operations.
    pub form: Form,
}

impl Default for EyeConfig {
    fn default() -> Self {
        EyeConfig {
            side: 128,
            patch: 4,
            width: 64,
            keypoints: 32,
            shift: 6,
            jitter: 20,
            cameras: 1,
            form: Form::default(),
        }
    }
}

/// How an image is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Pixels to the right and down; edges are repeated.
    pub shift: [isize; 2],
    /// Factor of the brightness, around mid grey.
    pub gain: f32,
    /// What is added to red, green and blue, of a range of 1.
    pub offset: [f32; 3],
}

impl Look {
    /// As it is.
    pub const PLAIN: Look = Look { shift: [0, 0], gain: 1.0, offset: [0.0; 3] };
}

impl EyeConfig {
    /// Numbers that are seen by one camera.
    pub fn numbers(&self) -> usize {
        2 * self.keypoints
    }

    /// Patches on a side.
    fn grid(&self) -> usize {
        self.side / self.patch.max(1)
    }

    /// Bytes of an image.
    pub fn bytes(&self) -> usize {
        self.side * self.side * 3
    }

    /// All settings that are invalid.
    pub fn violations(&self) -> Vec<String> {
        let counts = [
            ("eye.side", self.side),
            ("eye.patch", self.patch),
            ("eye.width", self.width),
            ("eye.keypoints", self.keypoints),
            ("eye.cameras", self.cameras),
        ];
        let mut wrong: Vec<String> =
            counts.iter().filter(|(_, count)| *count == 0).map(|(name, _)| format!("`{name}` is 0")).collect();
        if self.patch > 0 && (!self.side.is_multiple_of(self.patch) || !self.grid().is_multiple_of(2)) {
            wrong.push(format!(
                "patches of {} pixels do not divide a side of {} into an even number",
                self.patch, self.side
            ));
        }
        wrong
    }

    /// How many numbers an eye with these settings learns.
    pub fn parameters(&self) -> usize {
        let (linear, norm) = (|inputs: usize, outputs: usize| inputs * outputs + outputs, 2 * self.width);
        let convolution = linear(9 * self.width, self.width);
        let stem = linear(self.patch * self.patch * 3, self.width)
            + (1 + DILATIONS.len()) * (convolution + norm)
            + norm
            + linear(self.width, self.keypoints);
        self.cameras * stem
    }

    /// A varied way of looking, the same for all images of an observation but for colours.
    pub fn varied(&self, generator: &mut impl Rng) -> Look {
        let mut centred = |range: f32| (generator.random::<f32>() * 2.0 - 1.0) * range;
        let (shift, jitter) = (self.shift as f32 + 0.499, self.jitter as f32 / 100.0);
        Look {
            shift: [0; 2].map(|_| centred(shift).round() as isize),
            gain: 1.0 + centred(jitter),
            offset: [0; 3].map(|_| centred(jitter / 3.0)),
        }
    }

    /// The network's input of one image: its patches row by row, each `patch × patch × 3` numbers around zero.
    ///
    /// # Shapes
    /// `pixels`: `side × side × 3` bytes; `out`: as many numbers.
    pub fn see(&self, pixels: &[u8], look: &Look, out: &mut [f32]) {
        let (side, patch, grid) = (self.side, self.patch, self.grid());
        let limit = side as isize - 1;
        let scale = look.gain / 255.0;
        let bias = look.offset.map(|offset| offset - 0.5 * look.gain);
        let columns: Vec<usize> =
            (0..side as isize).map(|x| (x - look.shift[0]).clamp(0, limit) as usize * 3).collect();
        for (place, out) in out.chunks_exact_mut((patch * patch * 3).max(1)).enumerate() {
            let (top, left) = (place / grid.max(1) * patch, place % grid.max(1) * patch);
            for (down, out) in out.chunks_exact_mut(patch * 3).enumerate() {
                let row = ((top + down) as isize - look.shift[1]).clamp(0, limit) as usize * side * 3;
                for (column, out) in columns[left..left + patch].iter().zip(out.chunks_exact_mut(3)) {
                    let pixel = &pixels[row + column..row + column + 3];
                    for ((out, value), bias) in out.iter_mut().zip(pixel).zip(bias) {
                        *out = f32::from(*value) * scale + bias;
                    }
                }
            }
        }
    }

    /// Inputs of [`see`](EyeConfig::see) as a condition has them: `[B, cameras, patches, numbers]`.
    pub fn tensor(&self, seen: Vec<f32>, samples: usize, device: &Device) -> Result<Tensor> {
        let shape = (samples, self.cameras, self.grid() * self.grid(), self.patch * self.patch * 3);
        Ok(Tensor::from_vec(seen, shape, &Device::Cpu)?.to_device(device)?)
    }
}

/// How many visual tokens a model has and how many numbers are in each: keypoints of each camera, or cached features cut
/// into `feature_tokens` parts.
pub(crate) fn visual_tokens(eye: Option<EyeConfig>, feature_tokens: usize, widths: Widths) -> (usize, usize) {
    match eye {
        Some(eye) => (eye.cameras, eye.numbers()),
        None if widths.features > 0 => (feature_tokens, widths.features / feature_tokens.max(1)),
        None => (0, 0),
    }
}

/// The eye of a model.
#[derive(Clone, Debug)]
pub(crate) struct Eye {
    config: EyeConfig,
    stems: Vec<Stem>,
    halved: Unfold,
    around: Vec<Unfold>,
    /// `[places, 2]`
    coordinates: Tensor,
    dtype: DType,
}

/// The weights of one camera.
#[derive(Clone, Debug)]
struct Stem {
    patches: Linear,
    halved: (LayerNorm, Linear),
    blocks: Vec<(LayerNorm, Linear)>,
    norm: LayerNorm,
    maps: Linear,
}

impl Eye {
    /// Adds its weights to a scope: for each camera `camera_N.{patches, halved, block_N, norm, maps}`.
    pub(crate) fn new(scope: &mut Scope<'_>, config: &EyeConfig) -> Result<Eye> {
        let wrong = config.violations();
        if !wrong.is_empty() {
            return Err(Error::Config(format!("invalid settings of the eye: {}", wrong.join("; "))));
        }
        let &EyeConfig { patch, width, keypoints, form, .. } = config;
        let stem = |scope: &mut Scope<'_>| -> Result<Stem> {
            let mut linear = |name: &str, inputs: usize, outputs: usize| {
                Linear::with_init(&mut scope.enter(name), inputs, outputs, Init::FanIn(inputs), form)
            };
            let patches = linear("patches", patch * patch * 3, width)?;
            let maps = linear("maps", width, keypoints)?;
            let mut block = |name: &str| -> Result<(LayerNorm, Linear)> {
                let mut scope = scope.enter(name);
                let norm = LayerNorm::new(&mut scope.enter("norm"), width, form)?;
                let inputs = 9 * width;
                Ok((norm, Linear::with_init(&mut scope.enter("linear"), inputs, width, Init::FanIn(inputs), form)?))
            };
            let halved = block("halved")?;
            let blocks = (0..DILATIONS.len()).map(|at| block(&format!("block_{at}"))).collect::<Result<_>>()?;
            Ok(Stem { patches, halved, blocks, norm: LayerNorm::new(&mut scope.enter("norm"), width, form)?, maps })
        };
        let stems: Vec<Stem> =
            (0..config.cameras).map(|at| stem(&mut scope.enter(format!("camera_{at}")))).collect::<Result<_>>()?;
        let weight = &stems[0].patches.weight;
        let (device, dtype) = (weight.master().device().clone(), weight.dtype());
        let halved = Unfold::new(config.grid(), 3, 2, 1, &device)?;
        let around: Vec<Unfold> = DILATIONS
            .iter()
            .map(|dilation| Unfold::new(halved.side, 3, 1, *dilation, &device))
            .collect::<Result<_>>()?;
        let places = halved.side;
        let at = |place: usize| (2 * place + 1) as f32 / places as f32 - 1.0;
        let coordinates: Vec<f32> =
            (0..places * places).flat_map(|place| [at(place % places), at(place / places)]).collect();
        let coordinates = Tensor::from_vec(coordinates, (places * places, 2), &device)?;
        Ok(Eye { config: *config, stems, halved, around, coordinates, dtype })
    }

    /// The keypoints of all cameras.
    ///
    /// # Shapes
    /// `images`: `[B, cameras, patches, patch · patch · 3]`; gives `[B, cameras · 2 · keypoints]`, f32.
    pub(crate) fn forward(&self, images: Option<&Tensor>) -> Result<Tensor> {
        let EyeConfig { cameras, patch, .. } = self.config;
        let (patches, numbers) = (self.config.grid() * self.config.grid(), patch * patch * 3);
        let images =
            images.filter(|images| images.dims().len() == 4 && images.dims()[1..] == [cameras, patches, numbers]);
        let Some(images) = images else {
            return Err(Error::Config(format!(
                "a model with an eye expects images as [B, {cameras}, {patches}, {numbers}]"
            )));
        };
        let samples = images.dims()[0];
        let mut seen = Vec::with_capacity(cameras);
        for (camera, stem) in self.stems.iter().enumerate() {
            let own = images.narrow(1, camera, 1)?.squeeze(1)?.to_dtype(self.dtype)?.contiguous()?;
            seen.push(self.keypoints(stem, &own)?.reshape((samples, self.config.numbers()))?);
        }
        Ok(Tensor::cat(&seen, 1)?)
    }

    /// # Shapes
    /// `x`: `[B, patches, numbers]`; gives `[B · keypoints, 2]`, f32.
    fn keypoints(&self, stem: &Stem, x: &Tensor) -> Result<Tensor> {
        let x = stem.patches.forward_gelu(x)?; // [B, patches, width]
        let (norm, linear) = &stem.halved;
        let mut x = linear.forward_gelu(&self.halved.forward(&norm.forward(&x)?)?)?; // [B, places, width]
        for ((norm, linear), around) in stem.blocks.iter().zip(&self.around) {
            x = (&x + linear.forward_gelu(&around.forward(&norm.forward(&x)?)?)?)?;
        }
        let maps = stem.maps.forward(&stem.norm.forward(&x)?)?.to_dtype(DType::F32)?;
        let (samples, places, keypoints) = maps.dims3()?;
        let maps = (maps.transpose(1, 2)?.contiguous()?.reshape((samples * keypoints, places))? * SHARPNESS)?;
        let weights = maps.broadcast_sub(&maps.max_keepdim(D::Minus1)?.detach())?.exp()?;
        let expected = weights.matmul(&self.coordinates)?; // [B · keypoints, 2]
        Ok(expected.broadcast_div(&weights.sum_keepdim(D::Minus1)?)?)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::parameters::{Parameters, Precision};

    const SMALL: EyeConfig =
        EyeConfig { side: 32, patch: 4, width: 8, keypoints: 4, shift: 3, jitter: 20, cameras: 2, form: Form::Fused };

    /// A grey image with a white square whose corner is at the given pixel.
    fn square(left: usize, top: usize) -> Vec<u8> {
        let mut pixels = vec![128; SMALL.bytes()];
        for (y, x) in (top..top + 4).flat_map(|y| (left..left + 4).map(move |x| (y, x))) {
            pixels[(y * SMALL.side + x) * 3..][..3].fill(255);
        }
        pixels
    }

    fn seen(pixels: &[u8], look: &Look) -> Vec<f32> {
        let mut out = vec![0.0; SMALL.bytes()];
        SMALL.see(pixels, look, &mut out);
        out
    }

    #[test]
    fn patches_have_every_pixel_once() {
        let pixels: Vec<u8> = (0..SMALL.bytes()).map(|at| (at % 251) as u8).collect();
        let mut values = seen(&pixels, &Look::PLAIN);
        let mut wanted: Vec<f32> = pixels.iter().map(|value| f32::from(*value) / 255.0 - 0.5).collect();
        // The first patch is the first four pixels of the first four rows.
        assert!(values[..12].iter().zip(&wanted[..12]).all(|(a, b)| (a - b).abs() < 1e-6));
        assert!(values[12..24].iter().zip(&wanted[96..108]).all(|(a, b)| (a - b).abs() < 1e-6));
        values.sort_by(f32::total_cmp);
        wanted.sort_by(f32::total_cmp);
        assert!(values.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-6));
    }

    #[test]
    fn a_shifted_look_sees_a_shifted_image() {
        let look = Look { shift: [3, -2], ..Look::PLAIN };
        assert_eq!(seen(&square(10, 12), &look), seen(&square(13, 10), &Look::PLAIN));
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..100 {
            let Look { shift, gain, offset } = SMALL.varied(&mut generator);
            assert!(shift.iter().all(|pixels| pixels.abs() <= 3) && (gain - 1.0).abs() <= 0.2);
            assert!(offset.iter().all(|offset| offset.abs() <= 0.07));
        }
    }

    #[test]
    fn the_number_of_weights_is_what_the_settings_say() {
        let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 0);
        Eye::new(&mut parameters.root(), &SMALL).unwrap();
        let count: usize = parameters.masters().values().map(Tensor::elem_count).sum();
        assert_eq!(count, SMALL.parameters());
        let wrong = EyeConfig { patch: 5, keypoints: 0, ..SMALL };
        let error = Eye::new(&mut parameters.root(), &wrong).unwrap_err().to_string();
        assert!(error.contains("`eye.keypoints` is 0") && error.contains("patches of 5 pixels"), "{error}");
    }

    #[test]
    fn keypoints_learn_where_a_square_is() {
        // A linear read-out of the keypoints is trained with the eye by plain gradient descent on the place of the square.
        use crate::training::adamw::{AdamW, AdamWConfig};
        let config = EyeConfig { cameras: 1, ..SMALL };
        let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 3);
        let eye = Eye::new(&mut parameters.root().enter("eye"), &config).unwrap();
        let out = Linear::new(&mut parameters.root().enter("out"), config.numbers(), 2, Form::Fused).unwrap();
        let places: Vec<(usize, usize)> =
            (0..28).step_by(4).flat_map(|y| (0..28).step_by(4).map(move |x| (x, y))).collect();
        let batch = |shift: usize| {
            let moved = |at: usize| (at + shift).min(28);
            let images = places.iter().flat_map(|(x, y)| seen(&square(moved(*x), moved(*y)), &Look::PLAIN)).collect();
            let wanted: Vec<f32> =
                places.iter().flat_map(|(x, y)| [moved(*x), moved(*y)].map(|at| at as f32 / 14.0 - 1.0)).collect();
            let images = config.tensor(images, places.len(), &Device::Cpu).unwrap();
            (images, Tensor::from_vec(wanted, (places.len(), 2), &Device::Cpu).unwrap())
        };
        let loss = |shift: usize| {
            let (images, wanted) = batch(shift);
            let found = out.forward(&eye.forward(Some(&images)).unwrap()).unwrap();
            (found - wanted).unwrap().sqr().unwrap().mean_all().unwrap()
        };
        let error = |shift: usize| f64::from(loss(shift).to_scalar::<f32>().unwrap()).sqrt();
        let before = error(2);
        let mut optimizer = AdamW::new(&parameters, AdamWConfig::default()).unwrap();
        for step in 0..150 {
            let found = loss([0, 1, 3][step % 3]).backward().unwrap();
            let gradients = parameters.gradients(&found).unwrap();
            optimizer.step(&parameters, &gradients, 1e-2).unwrap();
            parameters.clear_gradients();
        }
        // Places in between were never seen in training.
        assert!(error(2) < 0.15 * before, "{before} before, {} after", error(2));
    }
}
