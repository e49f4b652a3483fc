//! Trainable spatial vision: from the images of all cameras to tokens, learned together with what reads them.
//!
//! A small residual network of convolutions (He et al. 2016, pre-activation, with layer normalisation) looks at patches:
//! 128×128 pixels in patches of 4 are 32×32 places, and each further stage halves the sides and doubles the width, so that
//! three stages end with 8×8 places. All cameras share its weights. An image is given in two ways:
//!
//! - as a grid of tokens, each of several neighbouring places of the last stage: what is where;
//! - as keypoints, the expected places of what learned maps respond to (spatial softmax: Finn et al. 2016, *Deep spatial
//!   autoencoders*), taken before the last halving: precise, and two numbers for each.
//!
//! Nothing is pretrained, so no weights have to be downloaded. Training shifts images by a few pixels and changes their
//! brightness and colour ([`Look`]), each camera by itself. [`EyeConfig::see`] makes the network's input of an image, in training
//! and when a policy is served.

use candle_core::{D, DType, Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::layers::convolution::Convolution;
use crate::layers::{LayerNorm, Linear};
use crate::ops::Form;
use crate::ops::see::see;
use crate::parameters::{Init, Scope};
use crate::widths::Widths;

/// Scores are multiplied by this before the softmax, so that maps are not flat at the start.
const SHARPNESS: f64 = 4.0;

/// The shape of the eye, and how images are varied while it learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EyeConfig {
    /// Pixels on a side; images of other sizes are resampled.
    pub side: usize,
    /// Pixels on a side of a patch; it divides the side.
    pub patch: usize,
    /// Numbers at each place of the first stage.
    pub width: usize,
    /// Stages; the sides of the grid can be halved before each but the first.
    pub stages: usize,
    /// Residual blocks of two convolutions in each stage.
    pub blocks: usize,
    /// Tokens of the grid on a side; they divide the sides of the last stage. None if 0.
    pub grid: usize,
    /// Keypoints of a camera, together one token. None if 0.
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
            stages: 3,
            blocks: 2,
            grid: 4,
            keypoints: 64,
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

    /// Not at all: everything is mid grey.
    pub const HIDDEN: Look = Look { gain: 0.0, ..Look::PLAIN };

    /// As a row of numbers: shift, gain, offsets.
    #[cfg(feature = "cuda")]
    pub(crate) fn numbers(&self) -> [f32; 6] {
        let Look { shift: [right, down], gain, offset: [red, green, blue] } = *self;
        [right as f32, down as f32, gain, red, green, blue]
    }
}

impl EyeConfig {
    /// Tokens of one camera.
    pub fn tokens(&self) -> usize {
        self.grid * self.grid + usize::from(self.keypoints > 0)
    }

    /// Patches on a side.
    fn patches(&self) -> usize {
        self.side / self.patch.max(1)
    }

    /// Places on a side of a stage.
    fn places(&self, stage: usize) -> usize {
        self.patches() >> stage
    }

    /// Numbers at each place of a stage.
    fn width_of(&self, stage: usize) -> usize {
        self.width << stage
    }

    /// The stage that keypoints are taken from: the last but one, if there are two.
    fn keypoint_stage(&self) -> usize {
        self.stages.saturating_sub(2)
    }

    /// Places of the last stage in a token of the grid.
    fn places_of_token(&self) -> usize {
        (self.places(self.stages.max(1) - 1) / self.grid.max(1)).pow(2)
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
            ("eye.stages", self.stages),
            ("eye.cameras", self.cameras),
        ];
        let mut wrong: Vec<String> =
            counts.iter().filter(|(_, count)| *count == 0).map(|(name, _)| format!("`{name}` is 0")).collect();
        if !wrong.is_empty() {
            return wrong;
        }
        let halvings = (self.stages - 1).min(30);
        if !self.side.is_multiple_of(self.patch) || !self.patches().is_multiple_of(1 << halvings) {
            wrong.push(format!(
                "patches of {} pixels do not divide a side of {} into a number that can be halved {halvings} times",
                self.patch, self.side
            ));
        } else if self.grid > 0 && !self.places(halvings).is_multiple_of(self.grid) {
            wrong.push(format!(
                "{} tokens on a side do not divide the {} places of the last stage",
                self.grid,
                self.places(halvings)
            ));
        }
        if self.tokens() == 0 {
            wrong.push("`eye.grid` and `eye.keypoints` are both 0, so nothing is seen".to_owned());
        }
        wrong
    }

    /// How many numbers an eye with these settings learns, for tokens of some width.
    pub fn parameters(&self, width: usize) -> usize {
        let linear = |inputs: usize, outputs: usize| inputs * outputs + outputs;
        let mut sum = linear(self.patch * self.patch * 3, self.width);
        for stage in 0..self.stages {
            let own = self.width_of(stage);
            sum += self.blocks * (2 * own + 2 * Convolution::parameters(own, own));
            if stage > 0 {
                sum += own + Convolution::parameters(own / 2, own);
            }
        }
        if self.grid > 0 {
            let own = self.width_of(self.stages - 1);
            sum += 2 * own + linear(self.places_of_token() * own, width);
        }
        if self.keypoints > 0 {
            let own = self.width_of(self.keypoint_stage());
            sum += 2 * own + linear(own, self.keypoints) + linear(2 * self.keypoints, width);
        }
        sum
    }

    /// A varied way of looking.
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
        let (side, patch, grid) = (self.side, self.patch, self.patches());
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
        Ok(Tensor::from_vec(seen, self.shape(samples), &Device::Cpu)?.to_device(device)?)
    }

    /// The same of some images of a dataset, each under its own look, in the precision of products.
    ///
    /// # Shapes
    /// `pixels`: `[images, side · side · 3]` u8; `images` and `looks`: one for each camera of each of the samples.
    pub fn images(&self, pixels: &Tensor, images: &[u32], looks: &[Look], dtype: DType) -> Result<Tensor> {
        Ok(see(pixels, images, looks, self, dtype)?.reshape(self.shape(images.len() / self.cameras.max(1)))?)
    }

    fn shape(&self, samples: usize) -> (usize, usize, usize, usize) {
        (samples, self.cameras, self.patches() * self.patches(), self.patch * self.patch * 3)
    }
}

/// How many visual tokens a model has, and how many numbers it reads of cached features for each: the eye's tokens, or cached
/// features cut into `feature_tokens` parts.
pub(crate) fn visual_tokens(eye: Option<EyeConfig>, feature_tokens: usize, widths: Widths) -> (usize, usize) {
    match eye {
        Some(eye) => (eye.cameras * eye.tokens(), 0),
        None if widths.features > 0 => (feature_tokens, widths.features / feature_tokens.max(1)),
        None => (0, 0),
    }
}

/// The eye of a model.
#[derive(Clone, Debug)]
pub(crate) struct Eye {
    config: EyeConfig,
    patches: Linear,
    stages: Vec<Stage>,
    grid: Option<(LayerNorm, Linear)>,
    keypoints: Option<Keypoints>,
    dtype: DType,
}

/// Convolutions over a grid of one size.
#[derive(Clone, Debug)]
struct Stage {
    /// Halves the sides of the stage before.
    halved: Option<(LayerNorm, Convolution)>,
    blocks: Vec<(LayerNorm, [Convolution; 2])>,
}

/// Maps over a grid, and what reads the expected places of what they respond to.
#[derive(Clone, Debug)]
struct Keypoints {
    norm: LayerNorm,
    maps: Linear,
    /// `[places, 2]`, each in [−1, 1].
    coordinates: Tensor,
    out: Linear,
}

impl Eye {
    /// Adds its weights to a scope: `patches`, `stage_N.{halved, block_M}`, `grid` and `keypoints`. Its tokens have `width`
    /// numbers.
    pub(crate) fn new(scope: &mut Scope<'_>, config: &EyeConfig, width: usize) -> Result<Eye> {
        let wrong = config.violations();
        if !wrong.is_empty() {
            return Err(Error::Config(format!("invalid settings of the eye: {}", wrong.join("; "))));
        }
        let form = config.form;
        let linear = |scope: &mut Scope<'_>, name: &str, inputs: usize, outputs: usize| {
            Linear::with_init(&mut scope.enter(name), inputs, outputs, Init::FanIn(inputs), form)
        };
        let patches = linear(scope, "patches", config.patch * config.patch * 3, config.width)?;
        let stage = |scope: &mut Scope<'_>, at: usize| -> Result<Stage> {
            let (side, own) = (config.places(at), config.width_of(at));
            let halved = match at {
                0 => None,
                _ => {
                    let mut scope = scope.enter("halved");
                    let norm = LayerNorm::new(&mut scope.enter("norm"), own / 2, form)?;
                    Some((norm, Convolution::new(&mut scope, config.places(at - 1), 2, (own / 2, own), form)?))
                }
            };
            let block = |scope: &mut Scope<'_>| -> Result<(LayerNorm, [Convolution; 2])> {
                let mut convolution = |name: &str| Convolution::new(&mut scope.enter(name), side, 1, (own, own), form);
                let both = [convolution("first")?, convolution("second")?];
                Ok((LayerNorm::new(&mut scope.enter("norm"), own, form)?, both))
            };
            let blocks = (0..config.blocks).map(|at| block(&mut scope.enter(format!("block_{at}"))));
            Ok(Stage { halved, blocks: blocks.collect::<Result<_>>()? })
        };
        let stages: Vec<Stage> =
            (0..config.stages).map(|at| stage(&mut scope.enter(format!("stage_{at}")), at)).collect::<Result<_>>()?;
        let grid = match config.grid {
            0 => None,
            _ => {
                let (own, mut scope) = (config.width_of(config.stages - 1), scope.enter("grid"));
                let norm = LayerNorm::new(&mut scope.enter("norm"), own, form)?;
                Some((norm, linear(&mut scope, "out", config.places_of_token() * own, width)?))
            }
        };
        let keypoints = match config.keypoints {
            0 => None,
            count => {
                let (stage, mut scope) = (config.keypoint_stage(), scope.enter("keypoints"));
                let (side, own) = (config.places(stage), config.width_of(stage));
                let at = |place: usize| (2 * place + 1) as f32 / side as f32 - 1.0;
                let coordinates: Vec<f32> =
                    (0..side * side).flat_map(|place| [at(place % side), at(place / side)]).collect();
                let device = patches.weight.master().device().clone();
                Some(Keypoints {
                    norm: LayerNorm::new(&mut scope.enter("norm"), own, form)?,
                    maps: linear(&mut scope, "maps", own, count)?,
                    coordinates: Tensor::from_vec(coordinates, (side * side, 2), &device)?,
                    out: linear(&mut scope, "out", 2 * count, width)?,
                })
            }
        };
        let dtype = patches.weight.dtype();
        Ok(Eye { config: *config, patches, stages, grid, keypoints, dtype })
    }

    /// What is seen by all cameras.
    ///
    /// # Shapes
    /// `images`: `[B, cameras, patches, patch · patch · 3]`; gives `[B, cameras · tokens, width]` in the precision of products.
    pub(crate) fn forward(&self, images: Option<&Tensor>) -> Result<Tensor> {
        let (_, cameras, patches, numbers) = self.config.shape(0);
        let images =
            images.filter(|images| images.dims().len() == 4 && images.dims()[1..] == [cameras, patches, numbers]);
        let Some(images) = images else {
            return Err(Error::Config(format!(
                "a model with an eye expects images as [B, {cameras}, {patches}, {numbers}]"
            )));
        };
        let samples = images.dims()[0];
        let all = images.to_dtype(self.dtype)?.contiguous()?.reshape((samples * cameras, patches, numbers))?;
        let mut x = self.patches.forward_gelu(&all)?; // [B · cameras, places, width], as below
        let mut tokens = Vec::new();
        for (at, stage) in self.stages.iter().enumerate() {
            if let Some((norm, convolution)) = &stage.halved {
                x = convolution.forward_gelu(&norm.forward(&x)?)?;
            }
            for (norm, [first, second]) in &stage.blocks {
                x = (&x + second.forward_gelu(&first.forward_gelu(&norm.forward(&x)?)?)?)?;
            }
            if let Some(keypoints) = self.keypoints.as_ref().filter(|_| at == self.config.keypoint_stage()) {
                tokens.push(keypoints.forward(&x, self.dtype)?);
            }
        }
        if let Some((norm, out)) = &self.grid {
            tokens.push(out.forward(&self.merged(&norm.forward(&x)?)?)?);
        }
        let tokens = Tensor::cat(&tokens, 1)?; // [B · cameras, tokens, width]
        let (_, count, width) = tokens.dims3()?;
        Ok(tokens.reshape((samples, cameras * count, width))?)
    }

    /// Neighbouring places of the last stage as one row.
    ///
    /// # Shapes
    /// `x`: `[images, places, width]`; gives `[images, tokens, places of a token · width]`.
    fn merged(&self, x: &Tensor) -> Result<Tensor> {
        let (images, places, width) = x.dims3()?;
        let grid = self.config.grid;
        let own = places.isqrt() / grid;
        let x = x.reshape((images, grid, own, grid, own * width))?;
        Ok(x.transpose(2, 3)?.contiguous()?.reshape((images, grid * grid, own * own * width))?)
    }
}

impl Keypoints {
    /// # Shapes
    /// `x`: `[images, places, numbers]`; gives `[images, 1, width]`.
    fn forward(&self, x: &Tensor, dtype: DType) -> Result<Tensor> {
        let maps = self.maps.forward(&self.norm.forward(x)?)?.to_dtype(DType::F32)?;
        let (images, places, count) = maps.dims3()?;
        let maps = (maps.transpose(1, 2)?.contiguous()?.reshape((images * count, places))? * SHARPNESS)?;
        let weights = maps.broadcast_sub(&maps.max_keepdim(D::Minus1)?.detach())?.exp()?;
        let expected = weights.matmul(&self.coordinates)?; // [images · keypoints, 2]
        let expected = expected.broadcast_div(&weights.sum_keepdim(D::Minus1)?)?;
        self.out.forward(&expected.reshape((images, 1, 2 * count))?.to_dtype(dtype)?)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::parameters::{Parameters, Precision};

    const SMALL: EyeConfig = EyeConfig {
        side: 32,
        patch: 4,
        width: 8,
        stages: 2,
        blocks: 1,
        grid: 2,
        keypoints: 4,
        shift: 3,
        jitter: 20,
        cameras: 2,
        form: Form::Fused,
    };

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
    fn a_hidden_image_is_mid_grey_everywhere() {
        assert!(seen(&square(10, 12), &Look::HIDDEN).iter().all(|value| *value == 0.0));
    }

    #[test]
    fn the_number_of_weights_is_what_the_settings_say() {
        for config in [SMALL, EyeConfig { keypoints: 0, ..SMALL }, EyeConfig { grid: 0, stages: 1, ..SMALL }] {
            let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 0);
            Eye::new(&mut parameters.root(), &config, 12).unwrap();
            let count: usize = parameters.masters().values().map(Tensor::elem_count).sum();
            assert_eq!(count, config.parameters(12));
        }
        let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 0);
        let mut refused = |config: EyeConfig| Eye::new(&mut parameters.root(), &config, 12).unwrap_err().to_string();
        let error = refused(EyeConfig { patch: 5, keypoints: 0, grid: 0, ..SMALL });
        assert!(error.contains("nothing is seen") && error.contains("patches of 5 pixels"), "{error}");
        let error = refused(EyeConfig { grid: 3, ..SMALL });
        assert!(error.contains("3 tokens on a side do not divide the 4 places"), "{error}");
    }

    #[test]
    fn images_of_a_dataset_are_seen_as_single_ones_are() {
        let images = [square(10, 12), square(3, 20), vec![7; SMALL.bytes()]];
        let pixels = Tensor::from_vec(images.concat(), (3, SMALL.bytes()), &Device::Cpu).unwrap();
        let look = Look { shift: [-2, 1], gain: 1.1, offset: [0.0, 0.1, -0.1] };
        let found = SMALL.images(&pixels, &[2, 1], &[Look::PLAIN, look], DType::F32).unwrap();
        let wanted = [seen(&images[2], &Look::PLAIN), seen(&images[1], &look)].concat();
        assert_eq!(found.dims(), [1, 2, 64, 48]);
        assert_eq!(found.flatten_all().unwrap().to_vec1::<f32>().unwrap(), wanted);
        assert!(SMALL.images(&pixels, &[3, 1], &[Look::PLAIN, look], DType::F32).is_err());
    }

    #[test]
    fn a_token_of_the_grid_has_neighbouring_places() {
        let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 0);
        let eye = Eye::new(&mut parameters.root(), &SMALL, 12).unwrap();
        // 4×4 places with one number each, their own.
        let x = Tensor::arange(0_f32, 16.0, &Device::Cpu).unwrap().reshape((1, 16, 1)).unwrap();
        let merged = eye.merged(&x).unwrap().to_vec3::<f32>().unwrap();
        assert_eq!(merged[0][0], [0.0, 1.0, 4.0, 5.0]);
        assert_eq!(merged[0][3], [10.0, 11.0, 14.0, 15.0]);
    }

    #[test]
    fn an_eye_learns_where_a_square_is() {
        // A linear read-out of the tokens is trained with the eye by plain gradient descent on the place of the square.
        use crate::training::adamw::{AdamW, AdamWConfig};
        for config in [EyeConfig { cameras: 1, grid: 0, ..SMALL }, EyeConfig { cameras: 1, keypoints: 0, ..SMALL }] {
            let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 3);
            let eye = Eye::new(&mut parameters.root().enter("eye"), &config, 16).unwrap();
            let inputs = 16 * config.tokens();
            let out = Linear::new(&mut parameters.root().enter("out"), inputs, 2, Form::Fused).unwrap();
            let places: Vec<(usize, usize)> =
                (0..28).step_by(4).flat_map(|y| (0..28).step_by(4).map(move |x| (x, y))).collect();
            let batch = |shift: usize| {
                let moved = |at: usize| (at + shift).min(28);
                let images =
                    places.iter().flat_map(|(x, y)| seen(&square(moved(*x), moved(*y)), &Look::PLAIN)).collect();
                let wanted: Vec<f32> =
                    places.iter().flat_map(|(x, y)| [moved(*x), moved(*y)].map(|at| at as f32 / 14.0 - 1.0)).collect();
                let images = config.tensor(images, places.len(), &Device::Cpu).unwrap();
                (images, Tensor::from_vec(wanted, (places.len(), 2), &Device::Cpu).unwrap())
            };
            let loss = |shift: usize| {
                let (images, wanted) = batch(shift);
                let tokens = eye.forward(Some(&images)).unwrap().reshape((places.len(), inputs)).unwrap();
                (out.forward(&tokens).unwrap() - wanted).unwrap().sqr().unwrap().mean_all().unwrap()
            };
            let error = |shift: usize| f64::from(loss(shift).to_scalar::<f32>().unwrap()).sqrt();
            let before = error(2);
            let mut optimizer = AdamW::new(&parameters, AdamWConfig::default()).unwrap();
            for step in 0..150 {
                let found = loss([0, 1, 3][step % 3]).backward().unwrap();
                let gradients = parameters.gradients(&found).unwrap();
                optimizer.step(&parameters, &gradients, 3e-3).unwrap();
                parameters.clear_gradients();
            }
            // Places in between were never seen in training.
            assert!(error(2) < 0.2 * before, "{config:?}: {before} before, {} after", error(2));
        }
    }
}
