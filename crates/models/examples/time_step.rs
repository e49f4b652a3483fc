//! Times one training step of the world model: loss, backward pass, AdamW. Prints one JSON object.
//!
//! `time_step --preset m188 --batch 256 --device cuda:0 --precision bf16 --form fused --steps 50`
//!
//! The data are random numbers already on the device, as in `benches/step_peer.py`, which times the PyTorch twin.

#![expect(clippy::print_stdout, reason = "this is what it is for")]

use std::collections::BTreeMap;
use std::time::Instant;

use candle_core::{Device, Tensor};
use models::ops::Form;
use models::training::{AdamW, AdamWConfig};
use models::world_model::ContrastMode;
use models::{DeviceChoice, FragmentBatch, Parameters, Precision, Result, Widths, WorldModel, WorldModelConfig, noise};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    models::prepare_process();
    // As the trainer does: on a thread of the pool, so that no operation has to wake one up first.
    rayon::scope(|_| measure().map_err(|error| error.to_string()))?;
    Ok(())
}

fn measure() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let given: BTreeMap<&str, &str> = words.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
    let get = |name: &str, default: &'static str| given.get(name).copied().unwrap_or(default).to_owned();
    let device = get("--device", "cpu").parse::<DeviceChoice>()?.open()?;
    let precision = if get("--precision", "f32") == "bf16" { Precision::Bf16 } else { Precision::F32 };
    let form = if get("--form", "fused") == "composed" { Form::Composed } else { Form::Fused };
    let (batch, steps): (usize, usize) = (get("--batch", "32").parse()?, get("--steps", "20").parse()?);
    let warmup: usize = get("--warmup", "5").parse()?;
    let preset = get("--preset", "small");
    let config = WorldModelConfig { form, contrast: ContrastMode::None, ..WorldModelConfig::preset(&preset)? };
    let widths = Widths { features: 768, states: 8, actions: 7 };
    let mut parameters = Parameters::new(&device, precision, 0);
    let model = WorldModel::new(&mut parameters.root(), &config, widths)?;
    let mut optimizer = AdamW::new(&parameters, AdamWConfig { form, ..AdamWConfig::default() })?;
    let (data, noise) = random(batch, &config, widths, &device, precision)?;

    let mut times = Vec::new();
    let mut parts = [Vec::new(), Vec::new(), Vec::new()];
    let mut last = 0.0;
    for step in 0..warmup + steps {
        let start = Instant::now();
        let loss = model.loss(&data, &noise, &[])?.total;
        let forward = wait(&device, step % 2 == 1, start)?;
        let found = loss.backward()?;
        let gradients = parameters.gradients(&found)?;
        let backward = wait(&device, step % 2 == 1, start)?;
        optimizer.step(&parameters, &gradients, 3e-4)?;
        drop((gradients, found));
        device.synchronize()?;
        let whole = start.elapsed().as_secs_f64() * 1e3;
        last = f64::from(loss.to_scalar::<f32>()?);
        if step >= warmup {
            // Every second step waits in between, to see its parts; the others are the figure.
            match (forward, backward) {
                (Some(forward), Some(backward)) => {
                    [forward, backward - forward, whole - backward]
                        .iter()
                        .zip(&mut parts)
                        .for_each(|(ms, part)| part.push(*ms));
                }
                _ => times.push(whole),
            }
        }
    }
    // Back to back, as training runs: the host may be ahead of the device.
    let start = Instant::now();
    for _ in 0..steps {
        let loss = model.loss(&data, &noise, &[])?.total;
        let gradients = parameters.gradients(&loss.backward()?)?;
        optimizer.step(&parameters, &gradients, 3e-4)?;
    }
    device.synchronize()?;
    let streamed = start.elapsed().as_secs_f64() * 1e3 / steps as f64;
    let tokens = (batch * config.horizon * 3) as f64;
    let [forward, backward, update] = parts.map(|mut part| median(&mut part));
    println!(
        "{{\"side\": \"ours\", \"preset\": \"{preset}\", \"batch\": {batch}, \"form\": \"{form:?}\", \"precision\": \"{precision:?}\", \
         \"parameters\": {}, \"ms\": {streamed:.3}, \"ms_with_wait\": {:.3}, \"forward_ms\": {forward:.3}, \"backward_ms\": {backward:.3}, \
         \"update_ms\": {update:.3}, \"tokens_per_second\": {:.0}, \"teraflops\": {:.2}, \"loss\": {last}}}",
        parameters.count(),
        median(&mut times),
        tokens / streamed * 1e3,
        flops(&config, batch) / streamed * 1e-9,
    );
    Ok(())
}

/// Milliseconds since the start, after waiting for the device, if wanted.
fn wait(device: &Device, wanted: bool, start: Instant) -> Result<Option<f64>> {
    if !wanted {
        return Ok(None);
    }
    device.synchronize()?;
    Ok(Some(start.elapsed().as_secs_f64() * 1e3))
}

fn random(
    batch: usize,
    config: &WorldModelConfig,
    widths: Widths,
    device: &Device,
    precision: Precision,
) -> Result<(FragmentBatch, Tensor)> {
    let mut generator = ChaCha8Rng::seed_from_u64(1);
    let mut draw = |width: usize| -> Result<Tensor> {
        let values = noise::normal(&mut generator, batch * config.horizon * width);
        Ok(Tensor::from_vec(values, (batch, config.horizon, width), &Device::Cpu)?.to_device(device)?)
    };
    let (features, states, actions) = (draw(widths.features)?, draw(widths.states)?, draw(widths.actions)?);
    let noise = draw(config.latent)?;
    Ok((
        FragmentBatch {
            features: features.to_dtype(precision.dtype())?,
            states,
            actions,
            rewards: None,
            returns: None,
        },
        noise,
    ))
}

/// Of the Transformer's products and attention, forward and backward.
fn flops(config: &WorldModelConfig, batch: usize) -> f64 {
    let (width, tokens) = (config.width as f64, (config.horizon * 3) as f64);
    let products = 12.0 * width * width;
    let attention = 2.0 * tokens * width;
    6.0 * config.layers as f64 * (products + attention) * tokens * batch as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
