//! The source of chance: SplitMix64, so that an input is a function of seed, target and index alone.

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The stream of one input. Neighbouring indices give unrelated streams.
    pub(crate) fn new(seed: u64, target: &str, index: u64) -> Random {
        let mut random = Random { state: seed };
        for byte in target.bytes() {
            random.state = random.next() ^ u64::from(byte);
        }
        random.state = random.next() ^ index;
        random.state = random.next();
        random
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        match bound {
            0 => 0,
            _ => (self.next() % bound as u64) as usize,
        }
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A number of 1 to `limit` whose logarithm is uniform: mostly small, sometimes as large as it gets.
    pub(crate) fn magnitude(&mut self, limit: usize) -> usize {
        let uniform = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        ((limit as f64).powf(uniform) as usize).clamp(1, limit)
    }

    /// One of the items, or nothing of nothing.
    pub(crate) fn pick<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        items.get(self.below(items.len()))
    }

    /// One of the words.
    pub(crate) fn word<'w>(&mut self, words: &[&'w str]) -> &'w str {
        self.pick(words).copied().unwrap_or_default()
    }
}
