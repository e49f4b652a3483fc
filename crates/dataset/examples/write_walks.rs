//! Writes a large dataset of state and action alone, for `benches/dataset_growth.py`.
//!
//! ```text
//! cargo run --release -p dataset --example write_walks -- <out> <datasets>
//! ```
//! One dataset's worth is 140 random walks of 150 frames, in the shape of LIBERO (8 numbers of state, 7 of action, reward,
//! phase). A function of the count alone.
#![expect(clippy::print_stdout, reason = "a command of its own")]

use std::error::Error;
use std::path::Path;

use dataset::write::{ColumnData, EpisodeData, WriteOptions, Writer};
use dataset::{Dtype, Feature};

const EPISODES: u64 = 140;
const FRAMES: usize = 150;
const TASKS: u64 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, datasets] = arguments.as_slice() else {
        return Err("wanted a directory and a number of datasets".into());
    };
    let number = |dtype: Dtype, width: usize| Feature::new(dtype, &[width]);
    let features = [
        ("observation.state", number(Dtype::Float32, 8)),
        ("action", number(Dtype::Float32, 7)),
        ("next.reward", number(Dtype::Float32, 1)),
        ("next.done", number(Dtype::Bool, 1)),
        ("phase", number(Dtype::Int(64), 1)),
    ];
    let features = features.map(|(key, feature)| (key.to_string(), feature)).to_vec();
    let mut writer = Writer::create(Path::new(out), WriteOptions::new(20, features))?;
    let mut random = Random(1);
    for episode in 0..datasets.parse::<u64>()? * EPISODES {
        let actions: Vec<f32> = (0..FRAMES * 7).map(|_| random.next()).collect();
        let mut state = [0.0_f32; 8];
        let mut states = Vec::with_capacity(FRAMES * 8);
        for action in actions.chunks_exact(7) {
            states.extend_from_slice(&state);
            state.iter_mut().zip(action).for_each(|(state, step)| *state += 0.05 * step);
        }
        let last = |row: usize| row + 1 == FRAMES;
        let rewards: Vec<f32> = (0..FRAMES).map(|row| f32::from(last(row))).collect();
        let done: Vec<bool> = (0..FRAMES).map(last).collect();
        let phases: Vec<i64> = (0..FRAMES as i64).map(|row| row / 25).collect();
        let columns = [
            ("observation.state", ColumnData::F32(&states)),
            ("action", ColumnData::F32(&actions)),
            ("next.reward", ColumnData::F32(&rewards)),
            ("next.done", ColumnData::Bool(&done)),
            ("phase", ColumnData::I64(&phases)),
        ];
        writer.add_episode(&EpisodeData { task: &format!("walk number {}", episode % TASKS), columns: &columns })?;
    }
    println!("{:?}", writer.finish()?);
    Ok(())
}

/// Numbers in [-1, 1) from a linear congruence: walks need no better ones.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }
}
