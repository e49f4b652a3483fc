//! Pictures that lie in data files as PNG or JPEG.

use std::io::Cursor;

use image::{ImageReader, Limits};

use crate::fault::{Error, Fault};
use crate::frame::Frame;
use crate::guard::guarded;

/// No picture is wider or higher, in pixels.
const MAX_SIDE: u32 = 8192;

/// No picture needs more memory while it is decoded, in bytes.
const MAX_BYTES: u64 = 512 << 20;

/// How many bytes one encoded byte can stand for: deflate reaches 1032, a blank JPEG about 1536.
const MAX_EXPANSION: u64 = 2048;

/// What decoders need besides, whatever the picture.
const SLACK_BYTES: u64 = 1 << 20;

/// Decodes a picture; `file` and `picture` say in messages which it is. Grey becomes colour, alpha is dropped, 16 bits
/// become 8.
pub fn decode_picture(bytes: &[u8], file: &str, picture: &str) -> Result<Frame, Error> {
    let bad = |reason: String| Fault::BadPicture { file: file.to_string(), picture: picture.to_string(), reason };
    let decoded = guarded(|| decode(bytes)).and_then(|decoded| decoded).map_err(bad)?;
    let (width, height) = (decoded.width() as usize, decoded.height() as usize);
    Ok(Frame { width, height, pixels: decoded.into_raw().into() })
}

fn decode(bytes: &[u8]) -> Result<image::RgbImage, String> {
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|error| error.to_string())?;
    if reader.format().is_none() {
        return Err("it is neither PNG nor JPEG".to_string());
    }
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_BYTES.min(bytes.len() as u64 * MAX_EXPANSION + SLACK_BYTES));
    reader.limits(limits);
    Ok(reader.decode().map_err(|error| error.to_string())?.into_rgb8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> Vec<u8> {
        std::fs::read(format!("{}/fixtures/golden/frames/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    #[test]
    fn pictures_are_those_of_pillow() {
        let golden: serde_json::Value = serde_json::from_slice(&fixture("golden.json")).unwrap();
        for (name, wanted) in golden["images"].as_object().unwrap() {
            let frame = decode_picture(&fixture(name), name, "0").unwrap();
            assert_eq!((frame.width, frame.height, frame.pixels.len()), (40, 30, 3600), "{name}");
            if name.ends_with(".png") {
                assert_eq!(blake3::hash(&frame.pixels).to_hex()[..32], *wanted["rgb"].as_str().unwrap(), "{name}");
            }
            // Decoders of JPEG may round differently: a level on average is their tolerance.
            for (channel, mean) in wanted["means"].as_array().unwrap().iter().enumerate() {
                let sum: u64 = frame.pixels.iter().skip(channel).step_by(3).map(|&level| u64::from(level)).sum();
                assert!((sum as f64 / 1200.0 - mean.as_f64().unwrap()).abs() < 1.0, "{name} {channel}");
            }
        }
    }

    #[test]
    fn pictures_of_the_tiny_set_are_those_of_pillow() {
        use arrow_array::cast::AsArray;
        let path = "../../../shared/data/libero_object_image_tiny/data/chunk-000/file-000.parquet";
        let Ok(file) = std::fs::File::open(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)) else {
            eprintln!("skipped: there is no {path}");
            return;
        };
        let golden: serde_json::Value = serde_json::from_slice(&fixture("golden.json")).unwrap();
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let batch = reader.with_batch_size(1 << 20).build().unwrap().next().unwrap().unwrap();
        for (camera, hashes) in golden["tiny"].as_object().unwrap() {
            let pictures = batch.column_by_name(camera).unwrap().as_struct();
            let bytes = pictures.column_by_name("bytes").unwrap().as_binary::<i32>();
            for (row, hash) in hashes.as_object().unwrap() {
                let frame = decode_picture(bytes.value(row.parse().unwrap()), path, row).unwrap();
                assert_eq!(blake3::hash(&frame.pixels).to_hex()[..32], *hash.as_str().unwrap(), "{camera} {row}");
            }
        }
    }

    #[test]
    fn sixteen_bits_become_eight() {
        let deep = image::ImageBuffer::<image::Luma<u16>, _>::from_raw(3, 1, vec![0u16, 0x8080, 0xffff]).unwrap();
        let mut bytes = Cursor::new(Vec::new());
        deep.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        let frame = decode_picture(bytes.get_ref(), "file", "0").unwrap();
        assert_eq!(frame.pixels[..], [0, 0, 0, 128, 128, 128, 255, 255, 255]);
    }

    #[test]
    fn a_small_file_cannot_ask_for_a_large_picture() {
        let mut bytes = fixture("colours.png");
        // Width and height are in the first chunk, behind the signature and the chunk's head; its sum must be right.
        bytes[16..24].copy_from_slice(&[0, 0, 0x1f, 0xff, 0, 0, 0x1f, 0xff]);
        let sum = crc(&bytes[12..29]).to_be_bytes();
        bytes[29..33].copy_from_slice(&sum);
        let error = decode_picture(&bytes, "file", "7").unwrap_err().to_string();
        assert!(error.contains("picture 7 of `file` cannot be decoded") && error.contains("limit"), "{error}");
    }

    fn crc(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0u32, |mut sum, &byte| {
            sum ^= u32::from(byte);
            (0..8).for_each(|_| sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 });
            sum
        })
    }

    #[test]
    fn damaged_pictures_are_errors_and_nothing_worse() {
        use rand::{Rng, SeedableRng};
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        for name in ["colours.png", "palette.png", "grey.png", "colours.jpg", "grey.jpg"] {
            let whole = fixture(name);
            for length in (0..whole.len()).step_by(37) {
                let _ = decode_picture(&whole[..length], name, "0");
            }
            for _ in 0..300 {
                let mut bytes = whole.clone();
                for _ in 0..random.random_range(1..5) {
                    let at = random.random_range(0..bytes.len());
                    bytes[at] = random.random();
                }
                let _ = decode_picture(&bytes, name, "0");
            }
        }
        assert!(decode_picture(b"GIF89a", "file", "0").is_err());
    }
}
