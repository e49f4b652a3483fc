//! Against transformers and Pillow, and against what can be wrong with a folder of weights.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor, safetensors};

use super::layer::Place;
use super::*;

fn tiny() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden/dinov2_tiny")
}

/// The weights that lie beside a developer's checkout. They are not part of the repository: without them, the test that
/// needs them says so and passes.
fn small() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/weights/dinov2-small");
    if path.join("model.safetensors").is_file() {
        return Some(path);
    }
    eprintln!("skipped: `../shared/weights/dinov2-small` is not there");
    None
}

fn tensors(folder: &Path, name: &str) -> BTreeMap<String, Tensor> {
    safetensors::load(folder.join(name), &Device::Cpu).unwrap().into_iter().collect()
}

fn on_cpu(folder: &Path) -> Result<DinoV2, EncoderError> {
    DinoV2::load(folder, &Device::Cpu, DType::F32)
}

/// Products in another precision than CPUs have by default.
fn in_precision(folder: &Path, precision: DType) -> DinoV2 {
    DinoV2::load_in(folder, Place { device: Device::Cpu, precision }).unwrap()
}

fn bytes(tensor: &Tensor) -> Vec<u8> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

/// ‖found − expected‖ / ‖expected‖, the largest over the last dimension's vectors.
fn relative(found: &Tensor, expected: &Tensor) -> f32 {
    assert_eq!(found.dims(), expected.dims());
    let norm = |x: &Tensor| x.sqr().unwrap().sum(candle_core::D::Minus1).unwrap().sqrt().unwrap();
    let off = (norm(&(found - expected).unwrap()) / norm(expected)).unwrap();
    off.flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
}

/// The tokens of the tiny model's pictures, each with what transformers makes of them.
fn compare(model: &mut DinoV2) -> Vec<f32> {
    let golden = tensors(&tiny(), "golden.safetensors");
    let mut off = Vec::new();
    for size in ["56_56", "70_42", "84_84"] {
        let pictures = &golden[&format!("pictures_{size}")];
        let (count, height, width, _) = pictures.dims4().unwrap();
        let tokens = model.tokens(&bytes(pictures), (count, height, width)).unwrap();
        off.push(relative(&tokens, &golden[&format!("tokens_{size}")]));
    }
    off
}

#[test]
fn tokens_are_those_of_transformers_for_any_grid() {
    let off = compare(&mut on_cpu(&tiny()).unwrap());
    assert!(off.iter().all(|off| *off < 1e-4), "{off:?}");
}

#[test]
fn products_in_half_precision_give_the_same_tokens_to_rounding() {
    let off = compare(&mut in_precision(&tiny(), DType::F16));
    assert!(off.iter().all(|off| (1e-5..1e-2).contains(off)), "{off:?}");
}

#[test]
fn tokens_do_not_depend_on_the_number_of_threads() {
    let pixels: Vec<u8> = (0..3 * 56 * 56 * 3).map(|at| (at * 31 % 251) as u8).collect();
    let tokens = |pixels: &[u8], pictures: usize| -> Vec<f32> {
        let tokens = on_cpu(&tiny()).unwrap().tokens(pixels, (pictures, 56, 56)).unwrap();
        tokens.flatten_all().unwrap().to_vec1().unwrap()
    };
    let all = tokens(&pixels, 3);
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert!(pool.install(|| tokens(&pixels, 3)) == all, "{threads} threads");
    }
}

#[test]
fn tokens_of_the_real_weights_are_the_golden_ones() {
    let Some(folder) = small() else { return };
    let golden = tensors(&folder, "golden.safetensors");
    let mut model = on_cpu(&folder).unwrap();
    let pictures = &golden["images_u8_nhwc"];
    let (count, height, width, _) = pictures.dims4().unwrap();
    let tokens = model.tokens(&bytes(pictures), (count, height, width)).unwrap();
    let rows = golden["token_rows"].to_dtype(DType::U32).unwrap();
    let off = relative(&tokens.index_select(&rows, 1).unwrap(), &golden["tokens"]);
    assert!(off < 2e-3, "{off}");
}

#[test]
fn pictures_are_resized_as_pillow_does() {
    let golden = tensors(&tiny(), "golden.safetensors");
    for way in ["up", "down"] {
        let from = &golden[&format!("resize_{way}_from")];
        let (height, width, _) = from.dims3().unwrap();
        let frame = Frame { width, height, pixels: bytes(from).into() };
        let expected = bytes(&golden[&format!("resize_{way}_to")]);
        let found = picture::resized(&frame, 56, 56);
        let furthest = found.iter().zip(&expected).map(|(a, b)| a.abs_diff(*b)).max();
        assert_eq!((found.len(), furthest <= Some(1)), (expected.len(), true), "{way}: {furthest:?}");
        assert!(expected.iter().zip(bytes(from)).any(|(a, b)| a.abs_diff(b) > 1));
    }
}

/// The tiny model with its tensors changed, in a folder of its own.
fn changed(change: impl FnOnce(&mut BTreeMap<String, Tensor>)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut content = tensors(&tiny(), "model.safetensors");
    change(&mut content);
    fs::copy(tiny().join("config.json"), folder.path().join("config.json")).unwrap();
    let content: std::collections::HashMap<String, Tensor> = content.into_iter().collect();
    safetensors::save(&content, folder.path().join("model.safetensors")).unwrap();
    folder
}

#[test]
fn both_schemes_of_names_are_the_same_model() {
    let rename = |name: &str, prefix: &str| {
        let name = name.replace("attention.attention.query", "attention.q_proj");
        let name = name.replace("attention.attention.key", "attention.k_proj");
        let name = name.replace("attention.attention.value", "attention.v_proj");
        format!("{prefix}{}", name.replace("attention.output.dense", "attention.o_proj"))
    };
    let pixels: Vec<u8> = (0..56 * 56 * 3).map(|at| (at * 31 % 251) as u8).collect();
    let tokens = |folder: &Path| on_cpu(folder).unwrap().tokens(&pixels, (1, 56, 56)).unwrap();
    let expected = tokens(&tiny());
    for prefix in ["", "dinov2."] {
        let folder = changed(|content| {
            let renamed = content.iter().map(|(name, tensor)| (rename(name, prefix), tensor.clone())).collect();
            *content = renamed;
            assert!(content.contains_key(&format!("{prefix}encoder.layer.1.attention.o_proj.bias")));
        });
        assert_eq!(relative(&tokens(folder.path()), &expected), 0.0);
    }
}

#[test]
fn weights_in_half_precision_are_read() {
    for (precision, limit) in [(DType::F16, 1e-2), (DType::BF16, 5e-2)] {
        let folder = changed(|content| {
            content.values_mut().for_each(|tensor| *tensor = tensor.to_dtype(precision).unwrap());
        });
        let off = compare(&mut on_cpu(folder.path()).unwrap());
        assert!(off.iter().all(|off| (1e-5..limit).contains(off)), "{off:?}");
    }
}

#[test]
fn all_tensors_that_do_not_fit_are_told() {
    let folder = changed(|content| {
        content.remove("encoder.layer.0.attention.attention.query.weight");
        content.remove("layernorm.bias");
        let narrow = content["encoder.layer.1.mlp.fc1.weight"].narrow(0, 0, 8).unwrap().contiguous().unwrap();
        content.insert("encoder.layer.1.mlp.fc1.weight".to_string(), narrow);
        let whole = content["layernorm.weight"].to_dtype(DType::I64).unwrap();
        content.insert("layernorm.weight".to_string(), whole);
    });
    let Err(EncoderError::Tensors { problems, .. }) = on_cpu(folder.path()) else { panic!("it was loaded") };
    let expected = [
        "`layernorm.weight` is I64, not F16, BF16 or F32",
        "`layernorm.bias` is missing",
        "`encoder.layer.0.attention.attention.query.weight` is missing",
        "`encoder.layer.1.mlp.fc1.weight` has shape [8, 16], not [64, 16]",
    ];
    assert_eq!(problems, expected);
}

#[test]
fn folders_that_hold_no_encoder() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(on_cpu(folder.path()), Err(EncoderError::File { file, .. }) if file.ends_with("config.json")));
    fs::copy(tiny().join("config.json"), folder.path().join("config.json")).unwrap();
    assert!(
        matches!(on_cpu(folder.path()), Err(EncoderError::File { file, .. }) if file.ends_with("model.safetensors"))
    );
    let whole = fs::read(tiny().join("model.safetensors")).unwrap();
    for length in [0, 7, 100, whole.len() - 1] {
        fs::write(folder.path().join("model.safetensors"), &whole[..length]).unwrap();
        assert!(matches!(on_cpu(folder.path()), Err(EncoderError::Damaged { .. })), "{length} bytes");
    }
    fs::write(folder.path().join("config.json"), r#"{"model_type": "vit"}"#).unwrap();
    assert!(matches!(on_cpu(folder.path()), Err(EncoderError::Config { .. })));
    assert!(matches!(DinoV2::load(&tiny(), &Device::Cpu, DType::F16), Err(EncoderError::Precision { .. })));
}

#[test]
fn pictures_that_cannot_be_cut_are_refused() {
    let mut model = on_cpu(&tiny()).unwrap();
    for (count, height, width) in [(1, 55, 56), (0, 56, 56), (2, 56, 56), (1, 0, 56)] {
        let refused = model.tokens(&[0; 56 * 56 * 3], (count, height, width));
        assert!(matches!(refused, Err(EncoderError::Pictures { .. })), "{count} of {height}×{width}");
    }
}

#[test]
fn kinds_pool_what_they_say() {
    // A class token of 100 and patches that are their number, on grids that 4 divides and that it does not.
    for (rows, columns) in [(8, 4), (6, 5)] {
        let values: Vec<f32> = std::iter::once(100.0).chain((0..rows * columns).map(|at| at as f32)).collect();
        let tokens = Tensor::from_vec(values, (1, 1 + rows * columns, 1), &Device::Cpu).unwrap();
        let pool =
            |kind: Kind| kind.pool(&tokens, (rows, columns)).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(pool(Kind::Cls), [100.0]);
        let near = |found: Vec<f32>, expected: &[f32]| {
            let near = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-5);
            assert!(near && found.len() == expected.len(), "{found:?}, not {expected:?}");
        };
        near(pool(Kind::Mean), &[(rows * columns - 1) as f32 / 2.0]);
        let mut cells = Vec::new();
        for (row, column) in (0..4).flat_map(|row| (0..4).map(move |column| (row, column))) {
            let inside = |at: &usize| {
                let (y, x) = (at / columns, at % columns);
                let own = |cell: usize, count: usize| cell * count / 4..(cell + 1) * count / 4;
                own(row, rows).contains(&y) && own(column, columns).contains(&x)
            };
            let own: Vec<usize> = (0..rows * columns).filter(inside).collect();
            cells.push(own.iter().sum::<usize>() as f32 / own.len() as f32);
        }
        near(pool(Kind::Grid4), &cells);
    }
}

#[test]
fn encoders_differ_by_weights_and_kind() {
    let frame = Frame { width: 60, height: 50, pixels: (0..60 * 50 * 3).map(|at| (at * 7 % 256) as u8).collect() };
    let load = |folder: &Path, kind| DinoV2Encoder::load(folder, kind, &Device::Cpu, DType::F32).unwrap();
    let mut fingerprints = Vec::new();
    for kind in ["cls", "mean", "grid4"] {
        let mut encoder = load(&tiny(), kind.parse().unwrap());
        assert_eq!(encoder.name(), format!("dinov2-16x2 {kind}"));
        let mut out = vec![f32::NAN; 2 * encoder.width()];
        encoder.encode(&[frame.clone(), frame.clone()], &mut out).unwrap();
        let (first, second) = out.split_at(encoder.width());
        assert!(first == second && first.iter().all(|value| value.is_finite()));
        fingerprints.push(encoder.fingerprint());
    }
    let other = changed(|content| {
        let moved = (&content["layernorm.bias"] + 1e-3).unwrap();
        content.insert("layernorm.bias".to_string(), moved);
    });
    fingerprints.push(load(other.path(), Kind::Cls).fingerprint());
    fingerprints.sort();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 4);
}
