//! How long a DINOv2 takes for a picture: `cargo run --release -p models --example encode_speed -- WEIGHTS [BATCH] [ROUNDS]`.
//!
//! Prints one line of JSON: the fastest and the median round in milliseconds per picture. Used by
//! `benches/compare_dinov2.py`.
#![expect(clippy::print_stdout, reason = "what it is for")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use models::DeviceChoice;
use models::encoder::{DinoV2, Kind};

/// The side of the pictures in pixels.
const SIDE: usize = 224;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let weights = arguments.get(1).ok_or("which folder of weights?")?;
    let batch: usize = arguments.get(2).map_or(Ok(16), |batch| batch.parse())?;
    let rounds: usize = arguments.get(3).map_or(Ok(5), |rounds| rounds.parse())?;
    let device = arguments.get(4).map_or(Ok(DeviceChoice::Cpu), |device| device.parse())?.open()?;
    let mut model = DinoV2::load(Path::new(weights), &device, DinoV2::default_precision(&device))?;
    let pixels: Vec<u8> = (0..batch * SIDE * SIDE * 3).map(|at| (at * 31 % 251) as u8).collect();
    let mut times = Vec::new();
    for round in 0..=rounds.max(1) {
        let start = Instant::now();
        // Reading the result waits for a GPU.
        let features = model.features(&pixels, (batch, SIDE, SIDE), Kind::Cls)?.to_vec2::<f32>()?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3 / features.len() as f64;
        // The first round warms up.
        if round > 0 {
            times.push(milliseconds);
        }
    }
    times.sort_by(f64::total_cmp);
    let (fastest, median) = (times[0], times[times.len() / 2]);
    println!("{{\"batch\": {batch}, \"fastest_ms\": {fastest:.2}, \"median_ms\": {median:.2}}}");
    Ok(())
}
