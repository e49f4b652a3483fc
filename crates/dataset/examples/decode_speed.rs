//! How long a picture takes: `cargo run --release -p dataset --example decode_speed -- VIDEO [WINDOW] [WINDOWS]`.
//!
//! Decodes windows of consecutive pictures from random places on one thread, and prints milliseconds per picture.

use std::path::Path;
use std::time::Instant;

use dataset::Root;
use dataset::video::{Decoder, VideoFile};
use rand::{Rng, SeedableRng};

#[expect(clippy::print_stdout, reason = "a bench prints")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = Path::new(arguments.first().ok_or("which video?")?);
    let number = |at: usize, default| arguments.get(at).map_or(Ok(default), |text| text.parse::<usize>());
    let (window, windows) = (number(1, 16)?, number(2, 100)?);
    let folder = path.parent().ok_or("which folder?")?.to_path_buf();
    let name = path.file_name().ok_or("which file?")?.to_string_lossy().into_owned();
    let started = Instant::now();
    let video = VideoFile::open(Root::Directory(folder).open(&name)?, &name)?;
    println!("{video:?} opened in {:.2} ms", started.elapsed().as_secs_f64() * 1e3);

    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(0);
    let mut decoder = Decoder::new();
    for (what, colours) in [("planes", false), ("red, green, blue", true)] {
        let started = Instant::now();
        let mut pictures = 0;
        for _ in 0..windows {
            let from = random.random_range(0..=video.frames().saturating_sub(window));
            let wanted: Vec<usize> = (from..(from + window).min(video.frames())).collect();
            pictures += wanted.len();
            if colours {
                decoder.decode(&video, &wanted, &mut |_, _| Ok(()))?;
            } else {
                decoder.decode_planes(&video, &wanted, &mut |_, _| Ok(()))?;
            }
        }
        let taken = started.elapsed().as_secs_f64() * 1e3;
        println!("{what}: {:.3} ms per picture, {:.1} ms per window", taken / pictures as f64, taken / windows as f64);
    }
    Ok(())
}
