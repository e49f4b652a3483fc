//! Writes a large dataset of demonstrations without images, to measure how `annotate` grows.
//!
//! ```text
//! cargo run --release -p dataset --example write_demonstrations -- <out> <episodes> [<robot> [<most frames of an episode>]]
//! ```
//! A robot is `so101`, `aloha`, `humanoid`, `mobile` or `state-only`.
//!
//! States and actions are those of a synthetic robot's demonstrations, over and over, each time a little slower or faster and
//! with other noise, so that no two episodes are alike. A function of the arguments alone.
#![expect(clippy::print_stdout, reason = "a command of its own")]

use std::error::Error;
use std::path::Path;

use dataset::synthetic::{Noise, Options, Synthetic};
use dataset::write::{ColumnData, EpisodeData, WriteOptions, Writer};
use dataset::{Dataset, Dtype, Overrides, Root};

/// Demonstrations of each task that are repeated.
const DEMONSTRATIONS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (out, episodes, robot, most) = match &arguments[..] {
        [out, episodes] => (out, episodes, "state-only", usize::MAX),
        [out, episodes, robot] => (out, episodes, robot.as_str(), usize::MAX),
        [out, episodes, robot, most] => (out, episodes, robot.as_str(), most.parse()?),
        _ => return Err("wanted a directory, a number of episodes, and perhaps a robot and a number of frames".into()),
    };
    let episodes: usize = episodes.parse()?;
    let robot = Synthetic::ALL.into_iter().find(|known| known.name() == robot).ok_or("there is no such robot")?;
    let folder = Path::new(out).with_extension("seed");
    let options = Options { per_task: DEMONSTRATIONS, seed: 11, noise: Noise::level(1).unwrap_or_default() };
    dataset::synthetic::write(&folder, robot, &options)?;
    let seed = Dataset::open(Root::Directory(folder.clone()), &Overrides::default())?;
    std::fs::remove_dir_all(&folder)?;

    let roles = seed.roles();
    let wanted = [&roles.state, &roles.action];
    let features =
        seed.info().features.iter().filter(|(key, feature)| wanted.contains(&key) && feature.dtype == Dtype::Float32);
    let mut writer =
        Writer::create(Path::new(out), WriteOptions::new(seed.info().fps as u32, features.cloned().collect()))?;
    let mut random = Random(1);
    let columns = seed.columns();
    for episode in 0..episodes {
        let span = &seed.spans()[episode % seed.spans().len()];
        // From 0.8 to 1.25 of the length.
        let pace = 0.8 + 0.45 * f64::from(random.next() + 1.0) / 2.0;
        let rows = ((span.frames.len() as f64 * pace) as usize).max(2);
        let written = rows.min(most.max(2));
        let mut resampled = |matrix: &dataset::Matrix| -> Vec<f32> {
            let frames = matrix.rows(span.frames.clone());
            let last = span.frames.len() - 1;
            (0..written * matrix.width)
                .map(|at| {
                    let (row, column) = (at / matrix.width, at % matrix.width);
                    let place = row as f64 / (rows - 1) as f64 * last as f64;
                    let (below, share) = (place.floor() as usize, place.fract() as f32);
                    let value = |row: usize| frames[row.min(last) * matrix.width + column];
                    value(below) * (1.0 - share) + value(below + 1) * share + 1e-4 * random.next()
                })
                .collect()
        };
        let (states, actions) = (resampled(&columns.states), resampled(&columns.actions));
        let task = &seed.tasks()[span.task.at()];
        let data =
            [(roles.state.as_str(), ColumnData::F32(&states)), (roles.action.as_str(), ColumnData::F32(&actions))];
        writer.add_episode(&EpisodeData { task, columns: &data })?;
    }
    println!("{:?}", writer.finish()?);
    Ok(())
}

/// Numbers in [-1, 1) from a linear congruence: noise needs no better ones.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }
}
