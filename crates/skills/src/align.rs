//! Fragments laid over the medoid of their cluster by dynamic time warping.

use std::collections::BTreeMap;

use clustering::{Points, dtw, dtw_path};

use crate::error::SkillError;

/// Warps each fragment onto the medoid of its cluster: step j of the result is the mean of the fragment's steps that the
/// cheapest path pairs with step j of the medoid. All fragments of a cluster then have the medoid's length and rhythm.
///
/// The medoid has the least sum of warped distances to the cluster, or to `sample` members of it spread evenly, from
/// which it is then also chosen: distances grow with the square of that number.
///
/// # Errors
/// On too few or too many labels, empty fragments and different widths.
pub fn align_to_medoids(
    fragments: &[Points<'_>],
    labels: &[i64],
    band: Option<usize>,
    sample: usize,
) -> Result<Vec<Vec<Vec<f64>>>, SkillError> {
    if fragments.len() != labels.len() {
        return Err(SkillError::OtherLabels { found: labels.len(), wanted: fragments.len() });
    }
    let mut clusters: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (fragment, &label) in labels.iter().enumerate() {
        clusters.entry(label).or_default().push(fragment);
    }
    let mut aligned = vec![Vec::new(); fragments.len()];
    for members in clusters.values() {
        let medoid = fragments[medoid(fragments, members, band, sample.max(1))?];
        for &member in members {
            aligned[member] = warped(fragments[member], medoid, band)?;
        }
    }
    Ok(aligned)
}

fn medoid(
    fragments: &[Points<'_>],
    members: &[usize],
    band: Option<usize>,
    sample: usize,
) -> Result<usize, SkillError> {
    let count = members.len().min(sample);
    let chosen: Vec<usize> = (0..count).map(|at| members[at * members.len() / count]).collect();
    let mut sums = vec![0.0; count];
    for left in 0..count {
        for right in left + 1..count {
            let distance = dtw(fragments[chosen[left]], fragments[chosen[right]], band)?;
            sums[left] += distance;
            sums[right] += distance;
        }
    }
    let best = (0..count).min_by(|&left, &right| sums[left].total_cmp(&sums[right])).unwrap_or_default();
    Ok(chosen[best])
}

fn warped(fragment: Points<'_>, medoid: Points<'_>, band: Option<usize>) -> Result<Vec<Vec<f64>>, SkillError> {
    let mut rows = vec![vec![0.0; fragment.width()]; medoid.len()];
    let mut counts = vec![0.0; medoid.len()];
    for (from, to) in dtw_path(fragment, medoid, band)?.path {
        counts[to] += 1.0;
        rows[to].iter_mut().zip(fragment.row(from)).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    for (row, count) in rows.iter_mut().zip(counts) {
        row.iter_mut().for_each(|value| *value /= count);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_copy_takes_the_rhythm_of_the_medoid() {
        let (fast, slow) = ([0.0, 1.0, 2.0], [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
        let fragments = [Points::new(&fast, 1).unwrap(), Points::new(&slow, 1).unwrap()];
        let aligned = align_to_medoids(&fragments, &[5, 5], None, 8).unwrap();
        assert_eq!(aligned[1], aligned[0]);
        let apart = align_to_medoids(&fragments, &[5, 6], None, 8).unwrap();
        assert_eq!(apart[1].len(), 6);
        assert!(align_to_medoids(&fragments, &[5], None, 8).is_err());
    }
}
