//! What cannot be clustered or scored, and what to give instead.

/// The largest magnitude that a coordinate may have: squared distances of such points still fit `f32`.
pub const MAX_MAGNITUDE: f32 = 1e15;

/// Why there is no clustering, no score, no interval. The messages stand alone: what was found, then what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what each kind and each field is")]
pub enum ClusteringError {
    #[error("points cannot have 0 coordinates; give a width of 1 or more")]
    NoWidth,
    #[error("{found} values are no whole number of points of {width} coordinates; give rows of one width")]
    RaggedPoints { found: usize, width: usize },
    #[error("point {point} has {value} as coordinate {coordinate}; give finite values within ±{MAX_MAGNITUDE:e}")]
    BadValue { point: usize, coordinate: usize, value: f32 },
    #[error("there are {found} points, at most {limit} can be clustered; take a sample or batches")]
    TooManyPoints { found: usize, limit: usize },
    #[error("there are {found} points, too few for {wanted} clusters; give more points or ask for fewer clusters")]
    TooFewPoints { found: usize, wanted: usize },
    #[error("points of {found} coordinates were given where {wanted} are expected; give points of one width")]
    OtherWidth { found: usize, wanted: usize },

    #[error("`{name}` is {found}; give {wanted}")]
    BadSetting { name: &'static str, found: String, wanted: &'static str },

    #[error("there are {truth} labels on one side and {predicted} on the other; give one label for each thing")]
    OtherLength { truth: usize, predicted: usize },
    #[error("there are {labels} labels for {points} points; give one label for each point")]
    LabelsForPoints { labels: usize, points: usize },
    #[error("there are {truth} episodes on one side and {predicted} on the other; give the same episodes")]
    OtherEpisodes { truth: usize, predicted: usize },
    #[error(
        "{labels} different labels on {points} points have no silhouette; at least 2 labels and fewer than points are \
         needed"
    )]
    NoSilhouette { labels: usize, points: usize },
    #[error("there is nothing to compare: a sequence is empty; give at least one step on each side")]
    EmptySequence,
    #[error("there is nothing to resample; give at least one value")]
    NoValues,
    #[error("value {at} is {value}; give finite values")]
    BadSample { at: usize, value: f64 },
}
