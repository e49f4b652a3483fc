//! Change points: where one motion of an episode ends and the next begins.
//!
//! With x₁ … xₙ the velocities of a stretch in which no gripper is told something else, relative to the speed of the moment
//! ([`signals`]), the segmentation minimises
//!
//! ```text
//! Σ over segments S of  min over profiles m  Σ_{t ∈ S} ‖x_t − m(t)‖² Δt   +   penalty · (number of segments − 1)
//! ```
//!
//! where m is a constant (a motion of one velocity, or rest), a bell or a plateau over the segment's own time ([`shapes`]).
//! That is optimal partitioning (Jackson et al. 2005): exact, no approximation. Profiles other than constants last at most
//! [`SegmentConfig::longest_bell`] seconds. Candidates that are longer can only be constants, and are pruned as PELT does it
//! (Killick, Fearnhead and Eckley 2012); half a bell is no bell, so shorter ones are not ([`partition`]).
//!
//! **Everything is in seconds.** Signals are averaged to about [`RATE`] samples per second, so that settings mean the same at any
//! frame rate. The penalty grows with each signal's noise, which is measured from its second differences: a tremor must not be
//! taken for motions. Where the direction stays and only the speed changes, axes alone move little; the speed is therefore a
//! column of its own. A stretch of n samples takes O(n · m · d), with m the samples of the longest bell and d the columns.
//!
//! Some changes of velocity are not changes of purpose, and what the optimum cuts there is joined again:
//!
//! - A gripper that is told to open or to close always cuts, whatever it costs; one that is told how far moves like an arm. So
//!   segments are shorter than the minimum only between two such changes or an end of the episode.
//! - An empty hand that comes nearer to its next grasp all the time is on one reach, whatever its path ([`reach`]).
//! - A motion that comes to rest and goes on in the same direction has hesitated.
//!
//! Programs for a controller are cut further, until every segment is nearly [straight](straight).
//!
//! Every boundary has a [`confidence`]. Departure: the paper cuts windows of a fixed length.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::episode::Episode;
use crate::error::{SkillError, at_least};
use crate::layout::ActionLayout;

mod confidence;
mod partition;
mod reach;
mod shapes;
mod signals;
mod straight;

use partition::Samples;
use straight::Straightener;

/// Samples per second of what is segmented, about.
pub const RATE: f64 = 20.0;

/// What a segment is taken to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// One velocity.
    Constant,
    /// One velocity, a bell from rest to rest, or a plateau with a start and an end, whichever fits best.
    ConstantOrBell,
}

/// How an episode is cut. The defaults were chosen on the training episodes of the LIBERO sets and of the synthetic robots, as they
/// are and with human noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SegmentConfig {
    /// What a segment is taken to be.
    pub model: Model,
    /// What a cut must save: seconds at the speed of the moment, squared; 0 cuts wherever it may.
    pub penalty: f64,
    /// What a cut must save in addition, in units of what noise alone would save.
    pub noise: f64,
    /// Seconds over which the speed of the moment is measured, by which velocities are divided; 0 is off: then they are shares of the
    /// robot's fast motions everywhere, and about 0.1 is a good penalty.
    pub moment: f64,
    /// The least seconds between two cuts.
    pub least: f64,
    /// What a skewed bell costs more than a symmetric one, as a share of what a cut costs.
    pub skew: f64,
    /// The most seconds of a rest between two motions of one direction that is taken for a hesitation; 0 is off.
    pub hesitation: f64,
    /// The most seconds of a bell or a plateau.
    pub longest_bell: f64,
    /// The weight of the speed as a column of its own; 0 is off.
    pub speed_weight: f64,
    /// The weight of measured velocities where commands are changes and positions are in the state; 0 is off.
    pub state_weight: f64,
    /// How far the path of a segment may be from a straight line, as a share of how far the robot moves in the episode; where it
    /// is farther it is cut. 0 is off, as it should be for segments that people name. Programs that a controller executes need
    /// it: it goes to targets in straight lines.
    pub straight: f64,
    /// Whether an empty hand that comes nearer to its next grasp all the time is one segment, as people name it. Skills are
    /// single motions towards a target, which a detour is not, so it is off for them.
    pub whole_reach: bool,
    /// Whether changes of a gripper command cut.
    pub gripper_cuts: bool,
    /// Whether candidates that can never win are dropped. Changes nothing but time.
    pub prune: bool,
}

impl Default for SegmentConfig {
    fn default() -> SegmentConfig {
        SegmentConfig {
            model: Model::ConstantOrBell,
            penalty: 0.22,
            noise: 2.0,
            moment: 3.0,
            least: 0.3,
            skew: 0.4,
            hesitation: 1.0,
            longest_bell: 6.0,
            speed_weight: 0.7,
            state_weight: 0.0,
            straight: 0.0,
            whole_reach: false,
            gripper_cuts: true,
            prune: true,
        }
    }
}

impl SegmentConfig {
    /// Segments that people would name, for annotations: a reach is one of them, whatever detour it takes.
    pub fn subtasks() -> SegmentConfig {
        SegmentConfig { whole_reach: true, ..SegmentConfig::default() }
    }
}

/// A segment with the confidence of the boundary that it starts at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoredSegment {
    /// Its rows of the episode.
    pub rows: Range<usize>,
    /// The confidence, in [0, 1], that one motion ends and another begins where this segment starts: about the share of such
    /// boundaries that are right. The first segment of an episode has 1.
    pub confidence: f64,
}

/// Cuts one episode into segments: ranges of rows, in order, that cover it without overlap. No rows give no segments.
///
/// # Errors
/// On settings that are no magnitudes.
pub fn segment(
    episode: &Episode,
    layout: &ActionLayout,
    config: &SegmentConfig,
) -> Result<Vec<Range<usize>>, SkillError> {
    Ok(segment_scored(episode, layout, config)?.into_iter().map(|one| one.rows).collect())
}

/// The same segments as [`segment`], with the confidence of each boundary.
///
/// # Errors
/// On settings that are no magnitudes.
pub fn segment_scored(
    episode: &Episode,
    layout: &ActionLayout,
    config: &SegmentConfig,
) -> Result<Vec<ScoredSegment>, SkillError> {
    for (name, value) in [
        ("penalty", config.penalty),
        ("noise", config.noise),
        ("moment", config.moment),
        ("least", config.least),
        ("skew", config.skew),
        ("hesitation", config.hesitation),
        ("longest_bell", config.longest_bell),
        ("speed_weight", config.speed_weight),
        ("state_weight", config.state_weight),
        ("straight", config.straight),
    ] {
        at_least(name, value, 0.0, "a finite number that is not negative")?;
    }
    let (columns, noise) = signals::velocities(episode, layout, config);
    let kept = if config.whole_reach { reach::reaches(episode, layout) } else { Vec::new() };
    let mut segments: Vec<ScoredSegment> = Vec::new();
    for stretch in signals::stretches(episode, layout, config.gripper_cuts) {
        let parts = Samples::new(&columns, &stretch, layout.fps).partition(noise, config);
        for part in parts {
            let rows = stretch.start + part.rows.start..stretch.start + part.rows.end;
            let confidence = match part.evidence {
                _ if rows.start == 0 => 1.0,
                None => confidence::OF_A_GRIPPER,
                Some(evidence) => evidence.confidence(),
            };
            let inside = part.evidence.is_some() && kept.iter().any(|reach| reach.contains(&rows.start));
            match segments.last_mut() {
                Some(last) if inside => last.rows.end = rows.end,
                _ => segments.push(ScoredSegment { rows, confidence }),
            }
        }
    }
    if config.straight == 0.0 {
        return Ok(segments);
    }
    let least = (config.least * layout.fps).round() as usize;
    let straightener = Straightener::new(episode, layout, config.straight, least);
    Ok(segments.into_iter().flat_map(|segment| straight(&straightener, segment)).collect())
}

/// A segment as segments that are nearly straight. Where one of them ends, the motion goes on.
fn straight(straightener: &Straightener, whole: ScoredSegment) -> impl Iterator<Item = ScoredSegment> {
    let cuts = straightener.cuts(&whole.rows);
    let starts: Vec<usize> = std::iter::once(whole.rows.start).chain(cuts).collect();
    let ends: Vec<usize> = starts[1..].iter().copied().chain([whole.rows.end]).collect();
    starts.into_iter().zip(ends).map(move |(start, end)| ScoredSegment {
        rows: start..end,
        confidence: if start == whole.rows.start { whole.confidence } else { 0.0 },
    })
}

#[cfg(test)]
mod tests;
