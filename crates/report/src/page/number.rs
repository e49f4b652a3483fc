//! Numbers in a readable form. A number that is not finite becomes a dash.

/// The placeholder for a missing number.
pub(crate) const NONE: &str = "–";

/// With so many decimals, a true minus sign, and thin spaces between thousands.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if value.abs() >= 1e15 {
        return signed(format!("{value:.2e}"));
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    if value < 0.0 && text.bytes().any(|byte| byte.is_ascii_digit() && byte != b'0') {
        out.push('\u{2212}');
    }
    out.push_str(&grouped(whole));
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// About three digits that matter.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && size < 5e-4 && value.is_finite() {
        return signed(format!("{value:.1e}"));
    }
    let decimals = match size {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    fixed(value, decimals)
}

/// [`short`], or a dash for what is missing.
pub(crate) fn short_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), short)
}

/// A share as percent.
pub(crate) fn percent(share: f64) -> String {
    let hundred = share * 100.0;
    if hundred.is_finite() { format!("{}\u{a0}%", fixed(hundred, 0)) } else { NONE.to_owned() }
}

/// A count with thin spaces between thousands.
pub(crate) fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A count with its noun: `1 skill`, `2 skills`.
pub(crate) fn counted(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// Seconds in the unit that suits them.
pub(crate) fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "an unknown time".to_owned();
    }
    let whole = seconds.round();
    match seconds {
        s if s < 10.0 => format!("{s:.1}\u{a0}s"),
        s if s < 120.0 => format!("{whole:.0}\u{a0}s"),
        s if s < 7200.0 => format!("{:.0}\u{a0}min {:.0}\u{a0}s", (whole / 60.0).floor(), whole % 60.0),
        s if s < 172_800.0 => {
            format!("{:.0}\u{a0}h {:.0}\u{a0}min", (whole / 3600.0).floor(), (whole / 60.0).floor() % 60.0)
        }
        s => format!("{}\u{a0}days", fixed(s / 86400.0, 1)),
    }
}

/// A coordinate in a figure: one decimal is a tenth of a pixel.
pub(crate) fn place(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    if tenths.is_finite() && tenths != 0.0 { tenths.to_string() } else { "0".to_owned() }
}

fn signed(text: String) -> String {
    text.replace('-', "\u{2212}")
}

fn grouped(digits: &str) -> String {
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        // Four digits are read at a glance, more need the gap.
        if index > 0 && digits.len() > 4 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(short(f64::NAN), "–");
        assert_eq!(short(0.123_456), "0.123");
        assert_eq!(short(-12.345), "\u{2212}12.3");
        assert_eq!(short(16439.0), "16\u{202f}439");
        assert_eq!(short(1962.1), "1962");
        assert_eq!(short(0.000_012), "1.2e\u{2212}5");
        assert_eq!(short(0.0), "0.000");
        assert_eq!(fixed(-0.000_1, 2), "0.00");
        assert_eq!(fixed(f64::MAX, 2), "1.80e308");
        assert_eq!(percent(0.876), "88\u{a0}%");
        assert_eq!(counted(1, "skill", "skills"), "1 skill");
        assert_eq!(place(f64::INFINITY), "0");
        assert_eq!(place(-0.01), "0");
    }

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        assert_eq!(duration(1.25), "1.2\u{a0}s");
        assert_eq!(duration(119.0), "119\u{a0}s");
        assert_eq!(duration(754.0), "12\u{a0}min 34\u{a0}s");
        assert_eq!(duration(9000.0), "2\u{a0}h 30\u{a0}min");
        assert_eq!(duration(f64::NAN), "an unknown time");
    }
}
