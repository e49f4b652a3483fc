//! Random numbers that are the same on every device: drawn on the CPU from a generator that is handed in.

use rand::RngCore;

/// Uniform in [0, 1).
pub fn uniform(generator: &mut impl RngCore, count: usize) -> Vec<f32> {
    (0..count).map(|_| unit(generator)).collect()
}

/// Standard normal, by Box and Muller's transform.
pub fn normal(generator: &mut impl RngCore, count: usize) -> Vec<f32> {
    let mut values = Vec::with_capacity(count + 1);
    while values.len() < count {
        // In (0, 1], so that the logarithm is finite.
        let radius = (-2.0 * f64::from(1.0 - unit(generator)).ln()).sqrt();
        let angle = std::f64::consts::TAU * f64::from(unit(generator));
        values.push((radius * angle.cos()) as f32);
        values.push((radius * angle.sin()) as f32);
    }
    values.truncate(count);
    values
}

/// One seed out of a seed and a text: FNV-1a, finished by SplitMix64's mixer.
pub fn mix(seed: u64, text: &[u8]) -> u64 {
    let hashed = text
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let mut value = hashed ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// 24 random bits, all that an f32 below one can hold evenly.
fn unit(generator: &mut impl RngCore) -> f32 {
    (generator.next_u32() >> 8) as f32 / (1_u32 << 24) as f32
}
