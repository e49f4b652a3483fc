//! Confidence interval of a success rate.

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Wilson's score interval of a success rate at 95 % (Wilson 1927), lower and upper end. Without trials nothing is known,
/// and the interval is `(0, 1)`.
pub fn wilson_interval(successes: u64, trials: u64) -> (f64, f64) {
    if trials == 0 {
        return (0.0, 1.0);
    }
    let n = trials as f64;
    let rate = successes.min(trials) as f64 / n;
    let denominator = 1.0 + Z * Z / n;
    let centre = (rate + Z * Z / (2.0 * n)) / denominator;
    let half = Z * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt() / denominator;
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table I of Newcombe (1998), "Two-sided confidence intervals for the single proportion", method 3.
    #[test]
    fn intervals_are_those_of_newcombe() {
        for (successes, trials, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            let found = wilson_interval(successes, trials);
            assert!((found.0 - low).abs() < 5e-5 && (found.1 - high).abs() < 5e-5, "{successes}/{trials}: {found:?}");
        }
    }

    #[test]
    fn the_ends_are_within_zero_and_one() {
        assert_eq!(wilson_interval(0, 0), (0.0, 1.0));
        let (low, high) = wilson_interval(20, 20);
        assert!((low - (1.0 - wilson_interval(0, 20).1)).abs() < 1e-12);
        assert!((high - 1.0).abs() < 1e-12 && high <= 1.0);
    }
}
