//! From values to places on an axis. Any input gives a usable scale: values that are not finite are ignored, no values give
//! 0 to 1, and equal values get room around them.

/// Beyond this, differences of two values may overflow; such values are drawn at the edge.
const HUGE: f64 = 1e150;

/// Positive values that span more than this factor are easier to read on a logarithmic axis.
const LOG_FROM: f64 = 8.0;

/// Below so many decades a logarithmic axis has ticks at 2 and 5, too.
const FEW_DECADES: f64 = 1.7;

/// How an axis is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Equal steps, and zero is on it.
    FromZero,
    /// The values' own range; equal factors instead of equal steps, if the values are positive and span a lot.
    PerhapsLog,
}

/// An axis: values from `low` to `high`, at places from `start` to `end`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
    /// The distance of ticks; of no use on a logarithmic axis.
    step: f64,
    log: bool,
}

impl Scale {
    /// The scale that shows all `values`, its ends rounded to ticks.
    pub(crate) fn over(values: impl Iterator<Item = f64>, kind: Kind, start: f64, end: f64) -> Scale {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            let value = value.clamp(-HUGE, HUGE);
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let log = kind == Kind::PerhapsLog && low > 1e-12 && high / low > LOG_FROM;
        if log {
            let (mut low, mut high) = (low.log10(), high.log10());
            if high - low < FEW_DECADES {
                (low, high) = (next_tick(low, f64::floor), next_tick(high, f64::ceil));
            }
            return Scale { low, high, start, end, step: 1.0, log };
        }
        if kind == Kind::FromZero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        // Equal values, or values whose difference drowns in rounding.
        if high - low <= low.abs().max(high.abs()) * 1e-9 {
            let room = if high == 0.0 { 1.0 } else { high.abs() * 0.1 };
            (low, high) = if kind == Kind::FromZero { (low.min(0.0), room) } else { (low - room, high + room) };
        }
        let step = step(high - low);
        // A hair of slack, or 0.3 / 0.1 would be rounded up to 4.
        let (low, high) = ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step);
        Scale { low, high, start, end, step, log }
    }

    /// A scale with ends that are known.
    pub(crate) fn between(low: f64, high: f64, start: f64, end: f64) -> Scale {
        Scale { low, high, start, end, step: step(high - low), log: false }
    }

    /// Where a value lies; values outside lie at the edge.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let value = if self.log { value.max(f64::MIN_POSITIVE).log10() } else { value };
        let span = self.high - self.low;
        let share = if span > 0.0 { ((value - self.low) / span).clamp(0.0, 1.0) } else { 0.5 };
        let share = if share.is_nan() { 0.5 } else { share };
        self.start + share * (self.end - self.start)
    }

    /// Whether equal distances are equal factors.
    pub(crate) fn is_log(&self) -> bool {
        self.log
    }

    /// A handful of round values with their labels.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        if self.log { self.log_ticks() } else { self.linear_ticks() }
    }

    fn linear_ticks(&self) -> Vec<(f64, String)> {
        let step = self.step;
        let first = (self.low / step - 1e-6).ceil();
        let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        (0..12)
            .map(|index| (first + f64::from(index)) * step)
            .take_while(|value| *value <= self.high + step * 1e-6)
            .map(|value| {
                let label = if step < 1e-6 { super::number::short(value) } else { compact(value, decimals) };
                (value, label)
            })
            .collect()
    }

    fn log_ticks(&self) -> Vec<(f64, String)> {
        let decades = self.high - self.low;
        // Few decades leave room for 2 and 5 between the powers of ten; many leave none for every power.
        let factors: &[f64] = if decades < FEW_DECADES { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let stride = (decades / 4.0).ceil().max(1.0) as i32;
        let mut ticks = Vec::new();
        for power in (self.low.floor() as i32..=self.high.ceil() as i32).filter(|power| power.rem_euclid(stride) == 0) {
            for factor in factors {
                let value = factor * 10f64.powi(power);
                if (self.low - 1e-9..=self.high + 1e-9).contains(&value.log10()) {
                    let label = if (-4..4).contains(&power) {
                        compact(value, (-power).max(0) as usize)
                    } else {
                        format!("{factor}e{power}").replace('-', "\u{2212}")
                    };
                    ticks.push((value, label));
                }
            }
        }
        ticks
    }
}

/// The logarithm of 1, 2 or 5 times a power of ten next to a logarithm, downwards or upwards.
fn next_tick(logarithm: f64, round: fn(f64) -> f64) -> f64 {
    let factors = [1.0_f64, 2.0, 5.0].map(f64::log10);
    let ends = factors.map(|factor| round(logarithm - factor) + factor);
    let distance = |end: &f64| (end - logarithm).abs();
    ends.into_iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(logarithm)
}

/// A tick's label: thousands as `k`, so that the axis stays narrow.
fn compact(value: f64, decimals: usize) -> String {
    match value.abs() {
        size if size >= 1e9 => format!("{value:.0e}").replace('-', "\u{2212}"),
        size if size >= 1e4 => {
            let thousands = value / 1000.0;
            format!("{}k", super::number::fixed(thousands, if thousands.fract() == 0.0 { 0 } else { 1 }))
        }
        _ => super::number::fixed(value, decimals),
    }
}

/// The distance of ticks that gives three to seven of them: 1, 2 or 5 times a power of ten.
fn step(span: f64) -> f64 {
    let raw = (span / 4.0).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(raw.log10().floor());
    let factor = raw / power;
    let rounded = match factor {
        factor if factor < 1.5 => 1.0,
        factor if factor < 3.0 => 2.0,
        factor if factor < 7.0 => 5.0,
        _ => 10.0,
    };
    rounded * power
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let labels = |values: &[f64], kind| {
            let scale = Scale::over(values.iter().copied(), kind, 0.0, 100.0);
            scale.ticks().into_iter().map(|(_, label)| label).collect::<Vec<_>>()
        };
        assert_eq!(labels(&[0.0, 1.0], Kind::PerhapsLog), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&[], Kind::PerhapsLog), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&[1962.0, 500.0], Kind::FromZero), ["0", "500", "1000", "1500", "2000"]);
        assert_eq!(labels(&[0.01, 100.0], Kind::PerhapsLog), ["0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(&[3.36, 0.99], Kind::PerhapsLog), ["0.5", "1.0", "1.5", "2.0", "2.5", "3.0", "3.5"]);
        assert_eq!(labels(&[0.3, 4.0], Kind::PerhapsLog), ["0.2", "0.5", "1", "2", "5"]);
        assert_eq!(labels(&[3.0, 3.0], Kind::PerhapsLog), ["2.7", "2.8", "2.9", "3.0", "3.1", "3.2", "3.3"]);
    }

    proptest! {
        #[test]
        fn every_input_gives_places_on_the_axis(values in prop::collection::vec(any::<f64>(), 0..6), kind in 0..2) {
            let kind = [Kind::FromZero, Kind::PerhapsLog][kind as usize];
            let scale = Scale::over(values.iter().copied(), kind, 10.0, 90.0);
            for value in values.into_iter().chain([f64::NAN, f64::INFINITY, 0.0, -1.0]) {
                prop_assert!((10.0..=90.0).contains(&scale.place(value)));
            }
            prop_assert!(scale.ticks().len() <= 12);
        }
    }
}
