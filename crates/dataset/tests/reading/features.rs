//! The feature cache: filled once, resumed where it stopped, never mixed up.

use std::path::Path;

use dataset::features::{FeatureCache, Filling, FrameEncoder, PixelEncoder, find};
use dataset::{CameraId, Dataset, Error, Frame, FrameIndex, FrameOptions, FrameReader, Overrides, Root, embedded};

/// Counts the pictures that it sees, and gives up after some.
struct Counting {
    inner: PixelEncoder,
    seen: usize,
    patience: usize,
}

impl FrameEncoder for Counting {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn fingerprint(&self) -> String {
        self.inner.fingerprint()
    }

    fn width(&self) -> usize {
        self.inner.width()
    }

    fn batch(&self) -> usize {
        self.inner.batch()
    }

    fn encode(&mut self, frames: &[Frame], out: &mut [f32]) -> Result<(), String> {
        self.seen += frames.len();
        if self.seen > self.patience { Err("it is tired".to_string()) } else { self.inner.encode(frames, out) }
    }
}

fn counting(side: usize, patience: usize) -> Counting {
    Counting { inner: PixelEncoder::new(side), seen: 0, patience }
}

fn fill(dataset: &Dataset, encoder: &mut Counting, folder: &Path) -> Result<(FeatureCache, Vec<Filling>), Error> {
    let mut told = Vec::new();
    let options = FrameOptions { cache_bytes: 0, stream_bytes: 4 << 20 };
    let cache = FeatureCache::fill(dataset, CameraId(0), encoder, folder, options, &mut |filling| told.push(filling))?;
    Ok((cache, told))
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let inner = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> =
        inner.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())).collect();
    found.sort();
    found
}

#[test]
fn features_are_computed_once_and_found_again() {
    let dataset = Dataset::open(embedded("libero_goal_mini").unwrap(), &Overrides::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let root = Root::Directory(folder.path().to_path_buf());
    let mut encoder = counting(4, usize::MAX);
    assert!(FeatureCache::open(&dataset, CameraId(0), &encoder, &root).unwrap().is_none());
    let (cache, told) = fill(&dataset, &mut encoder, folder.path()).unwrap();
    assert_eq!((encoder.seen, cache.frames(), cache.width()), (2226, 2226, 48));
    assert!(told.is_sorted_by_key(|filling| filling.done) && told.last().unwrap().done == 2226);

    // The rows are those of the pictures, to half precision.
    let reader = FrameReader::new(&dataset, FrameOptions::default());
    let frames = 1000..1016;
    let keys: Vec<_> = frames.clone().map(|frame| (CameraId(0), FrameIndex(frame))).collect();
    let mut expected = vec![0.0; 16 * 48];
    encoder.encode(&reader.read(&keys).unwrap(), &mut expected).unwrap();
    let mut read = vec![0.0; 16 * 48];
    cache.read(frames, &mut read).unwrap();
    assert!(expected.iter().zip(&read).all(|(wanted, found)| (wanted - found).abs() < 1e-3));
    assert!(cache.read(2220..2227, &mut [0.0; 7 * 48]).is_err());

    // A second run computes nothing; another encoder or camera has nothing yet.
    let mut again = counting(4, 0);
    fill(&dataset, &mut again, folder.path()).unwrap();
    assert_eq!(again.seen, 0);
    assert!(FeatureCache::open(&dataset, CameraId(0), &again, &root).unwrap().is_some());
    assert!(FeatureCache::open(&dataset, CameraId(1), &again, &root).unwrap().is_none());
    assert!(FeatureCache::open(&dataset, CameraId(0), &counting(5, 0), &root).unwrap().is_none());
}

#[test]
fn filling_that_stopped_goes_on_with_the_file_that_it_was_at() {
    let dataset = Dataset::open(embedded("libero_goal_mini").unwrap(), &Overrides::default()).unwrap();
    let (whole, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fill(&dataset, &mut counting(2, usize::MAX), whole.path()).unwrap();
    let error = fill(&dataset, &mut counting(2, 1500), folder.path()).unwrap_err();
    assert!(error.to_string().contains("it is tired"), "{error}");
    assert_eq!(files(folder.path()).len(), 2, "two files of 512 frames are whole, the third is not there");
    let mut encoder = counting(2, usize::MAX);
    let (cache, told) = fill(&dataset, &mut encoder, folder.path()).unwrap();
    assert_eq!((encoder.seen, cache.encoded()), (2226 - 1024, 2226 - 1024));
    assert_eq!(told[0].done, 512);
    let content = |folder: &Path| files(folder).iter().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>();
    assert_eq!(content(folder.path()), content(whole.path()), "the same bytes as without a stop");
    // A stretch over the border of two files.
    let mut read = [vec![0.0; 20 * 12], vec![0.0; 20 * 12]];
    cache.read(500..520, &mut read[0]).unwrap();
    cache.read(500..512, &mut read[1][..12 * 12]).unwrap();
    cache.read(512..520, &mut read[1][12 * 12..]).unwrap();
    assert_eq!(read[0], read[1]);
}

#[test]
fn damaged_files_are_made_again() {
    let dataset = Dataset::open(embedded("libero_goal_mini").unwrap(), &Overrides::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fill(&dataset, &mut counting(2, usize::MAX), folder.path()).unwrap();
    let file = files(folder.path()).remove(1);
    let whole = std::fs::read(&file).unwrap();
    for damaged in [&whole[..whole.len() - 1], &whole[..20], b""] {
        std::fs::write(&file, damaged).unwrap();
        let mut encoder = counting(2, usize::MAX);
        fill(&dataset, &mut encoder, folder.path()).unwrap();
        assert_eq!(encoder.seen, 512);
        assert_eq!(std::fs::read(&file).unwrap(), whole, "the same bytes as before");
    }
}

#[test]
fn a_few_changed_bytes_of_a_video_are_other_pictures() {
    let Some(Root::Memory { name, files }) = embedded("libero_goal_mini") else { panic!("it is in memory") };
    let fingerprint_of = |files| {
        let root = Root::Memory { name: name.clone(), files: std::sync::Arc::new(files) };
        let dataset = Dataset::open(root, &Overrides::default()).unwrap();
        [0, 1].map(|camera| dataset::features::fingerprint(&dataset, CameraId(camera)).unwrap())
    };
    let before = fingerprint_of((*files).clone());
    let mut changed = (*files).clone();
    let video = changed.get_mut("videos/observation.images.image/chunk-000/file-000.mp4").unwrap();
    let mut content = video.to_vec();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    *video = content.into();
    let after = fingerprint_of(changed);
    assert!(before[0] != after[0] && before[1] == after[1] && before[0] != before[1]);
}

#[test]
fn features_are_found_without_pictures_but_not_for_other_numbers_or_pictures() {
    let Some(Root::Memory { name, files }) = embedded("libero_goal_mini") else { panic!("it is in memory") };
    let with = |change: &dyn Fn(&mut std::collections::BTreeMap<String, bytes::Bytes>)| {
        let mut files = (*files).clone();
        change(&mut files);
        let root = Root::Memory { name: name.clone(), files: std::sync::Arc::new(files) };
        Dataset::open(root, &Overrides::default()).unwrap()
    };
    let dataset = with(&|_| {});
    let folder = tempfile::tempdir().unwrap();
    let cache = Root::Directory(folder.path().to_path_buf());
    assert!(find(&dataset, CameraId(0), &cache).is_empty());
    let (filled, _) = fill(&dataset, &mut counting(3, usize::MAX), folder.path()).unwrap();
    fill(&dataset, &mut counting(2, usize::MAX), folder.path()).unwrap();

    let bare = with(&|files| files.retain(|file, _| !file.starts_with("videos/")));
    let found = find(&bare, CameraId(0), &cache);
    assert_eq!(found.iter().map(|(it, _)| it.encoder.as_str()).collect::<Vec<_>>(), ["pixels 2×2", "pixels 3×3"]);
    assert_eq!(found[1].0.width, 27);
    let mut rows = [vec![0.0; 40 * 27], vec![0.0; 40 * 27]];
    filled.read(500..540, &mut rows[0]).unwrap();
    found[1].1.read(500..540, &mut rows[1]).unwrap();
    assert_eq!(rows[0], rows[1]);
    assert!(find(&bare, CameraId(1), &cache).is_empty(), "another camera");

    let video = "videos/observation.images.image/chunk-000/file-000.mp4";
    let other = with(&|files| {
        let mut content = files[video].to_vec();
        let middle = content.len() / 2;
        content[middle] ^= 1;
        files.insert(video.to_owned(), content.into());
    });
    assert!(find(&other, CameraId(0), &cache).is_empty(), "other pictures");
}
