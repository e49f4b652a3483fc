//! Decoded pictures against PyAV's, from files that `fixtures/golden/frames/export.py` writes.

use super::*;
use crate::files::Root;

#[test]
fn smoke() {
    let root =
        Root::Directory(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/libero_goal"));
    let name = "videos/observation.images.image/chunk-000/file-000.mp4";
    let video = VideoFile::open(root.open(name).unwrap(), name).unwrap();
    println!("{video:?} {} {} {:?}", video.end(), video.rate(), &video.times()[..4]);
    let mut decoder = Decoder::new();
    let wanted: Vec<usize> = (100..132).collect();
    let started = std::time::Instant::now();
    decoder
        .decode(&video, &wanted, &mut |index, frame| {
            println!("{index} {frame:?} {:?}", &frame.pixels[..6]);
            Ok(())
        })
        .unwrap();
    println!("{:?}", started.elapsed());
}
