//! Learning landmarks from pairs of demonstrations of one task.

use std::collections::BTreeMap;

use rayon::prelude::*;
use skills::SkillCall;

use super::alignment::aligned;
use super::windows::{Picture, WINDOWS, Window, middle};
use super::{DemonstrationRecord, Place, Target, TaskRecord, distance};

/// Fewer other demonstrations cannot tell which window belongs to a target.
const OTHERS: usize = 2;

/// Windows of each target that are tried as the camera's matrix.
const TRIED: usize = 4;

/// Displacements are noisy by about this squared deviation, in pixels; it keeps the matrix finite where hardly anything moves.
const SHIFT_NOISE: f64 = 0.075;

/// Errors below this share of the spread are as good as none.
const EXACT: f64 = 0.08;

/// A window is clear about a target if it leaves less than this share of its squared error, in the geometric mean.
const CLEAR: f64 = 0.3;

/// A window is of use if it leaves less than this share.
const USEFUL: f64 = 0.8;

/// This share of all targets must be clear, and so many: fewer could be chance.
const CLEAR_SHARE: f64 = 0.05;
const CLEAR_TARGETS: usize = 6;

/// How far a target's window may be from where the camera sees the target: a deviation, in pixels.
const AROUND: f64 = 8.0;

/// Windows that are averaged for each target.
const FOLLOWED: usize = 4;

/// A demonstration as it is learned from.
pub(super) struct Shown {
    pub(super) instruction: String,
    /// The program of its task.
    pub(super) program: String,
    /// The program of its motion.
    pub(super) motion: String,
    /// The image at its start.
    pub(super) image: Vec<u8>,
    /// The same as calls.
    pub(super) calls: Vec<SkillCall>,
    /// Where they lead the arm, one after the other.
    pub(super) targets: Vec<Target>,
}

impl Shown {
    fn places(&self) -> Vec<Place> {
        self.targets.iter().map(|target| target.place).collect()
    }
}

/// What is learned.
pub(super) struct Fitted {
    pub(super) jacobian: [[f64; 2]; 3],
    pub(super) spread: f64,
    pub(super) tasks: Vec<TaskRecord>,
    /// The images of all demonstrations, task by task.
    pub(super) images: Vec<Vec<u8>>,
    /// Less is better: the logarithm of squared errors, summed over targets.
    pub(super) score: f64,
}

/// A target of one demonstration in another one.
struct Sample<'a> {
    /// How far away it is there.
    off: [f32; 3],
    /// How far each window of the first image has moved there.
    shifts: &'a [[f32; 2]],
}

impl Sample<'_> {
    /// The squared error of a prediction.
    fn error(&self, jacobian: &[[f32; 2]; 3], window: usize) -> f32 {
        let [right, down] = self.shifts[window];
        let rows = jacobian.iter().zip(self.off);
        rows.map(|([x, y], off)| (off - x * right - y * down).powi(2)).sum()
    }
}

/// A target of a demonstration, in all others.
struct Sampled<'a> {
    place: Place,
    samples: Vec<Sample<'a>>,
}

impl Sampled<'_> {
    /// What a window leaves: the sum of logarithms of squared errors. A demonstration that goes about it in another way is an
    /// outlier that counts no more than a large error.
    fn left(&self, jacobian: &[[f32; 2]; 3], window: usize, exact: f32) -> f32 {
        self.samples.iter().map(|sample| (sample.error(jacobian, window) + exact).ln()).sum()
    }

    /// The best window, and what it leaves.
    fn best(&self, jacobian: &[[f32; 2]; 3], exact: f32) -> (usize, f32) {
        let left = (0..WINDOWS).map(|window| (window, self.left(jacobian, window, exact)));
        left.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or((0, f32::INFINITY))
    }

    /// What is left if nothing is seen.
    fn unseen(&self, exact: f32) -> f32 {
        self.left(&[[0.0; 2]; 3], 0, exact)
    }

    /// The matrix that explains it best by one window.
    fn explained(&self, window: usize, exact: f32) -> [[f64; 2]; 3] {
        let mut jacobian = [[0.0; 2]; 3];
        for step in 0..3 {
            let mut moments = Moments::default();
            for sample in &self.samples {
                let error = sample.error(&single(&jacobian), window);
                moments.add(sample, window, if step == 0 { 1.0 } else { f64::from(exact / (error + exact)) });
            }
            jacobian = moments.solved();
        }
        jacobian
    }
}

/// Sums for a linear regression of targets on displacements.
#[derive(Clone, Copy, Default)]
struct Moments {
    shifts: [[f64; 2]; 2],
    products: [[f64; 2]; 3],
    weight: f64,
}

impl Moments {
    fn add(&mut self, sample: &Sample<'_>, window: usize, weight: f64) {
        let shift = sample.shifts[window].map(f64::from);
        for (row, left) in self.shifts.iter_mut().zip(shift) {
            row.iter_mut().zip(shift).for_each(|(sum, right)| *sum += weight * left * right);
        }
        for (row, off) in self.products.iter_mut().zip(sample.off) {
            row.iter_mut().zip(shift).for_each(|(sum, shift)| *sum += weight * f64::from(off) * shift);
        }
        self.weight += weight;
    }

    /// The matrix with the least squared error, where displacements have noise.
    fn solved(&self) -> [[f64; 2]; 3] {
        let noise = SHIFT_NOISE * self.weight + f64::MIN_POSITIVE;
        let [[xx, xy], [_, yy]] = self.shifts;
        let (xx, yy) = (xx + noise, yy + noise);
        let determinant = xx * yy - xy * xy;
        self.products.map(|[x, y]| [(x * yy - y * xy) / determinant, (y * xx - x * xy) / determinant])
    }
}

fn single(jacobian: &[[f64; 2]; 3]) -> [[f32; 2]; 3] {
    jacobian.map(|row| row.map(|value| value as f32))
}

/// The demonstrations of a task.
struct Task {
    members: Vec<usize>,
    places: Vec<Vec<Place>>,
    /// For each pair of members how far each window of the first one's image has moved in the second one's.
    shifts: Vec<Vec<Vec<[f32; 2]>>>,
    /// For each pair of members which target of the second one each target of the first one is.
    matched: Vec<Vec<Vec<usize>>>,
}

impl Task {
    fn new(shown: &[Shown], members: Vec<usize>) -> Task {
        let pictures: Vec<Picture> = members.iter().map(|at| Picture::new(&shown[*at].image)).collect();
        let found = |one: &Picture| -> Vec<Vec<[f32; 2]>> {
            let of_windows: Vec<Vec<[f32; 2]>> = (0..WINDOWS)
                .into_par_iter()
                .map(|number| {
                    let window = Window::new(one, number);
                    pictures.iter().map(|other| window.find(other).shift).collect()
                })
                .collect();
            (0..pictures.len()).map(|other| of_windows.iter().map(|of| of[other]).collect()).collect()
        };
        let shifts = pictures.iter().map(found).collect();
        let places: Vec<Vec<Place>> = members.iter().map(|at| shown[*at].places()).collect();
        let matched = |one: &Vec<Place>| places.iter().map(|other| aligned(one, other, skip(other))).collect();
        Task { matched: places.iter().map(matched).collect(), members, places, shifts }
    }

    fn count(&self) -> usize {
        self.members.len()
    }

    /// The member with a middle number of targets.
    fn typical(&self) -> usize {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        order.sort_by_key(|at| self.places[*at].len());
        order[order.len() / 2]
    }

    /// The targets of a member, each in all others.
    fn targets(&self, member: usize) -> Vec<Sampled<'_>> {
        let sample = |at: usize, other: usize| {
            let (own, there) = (&self.places[member][at], &self.places[other][self.matched[member][other][at]]);
            let off = std::array::from_fn(|axis| (there[axis] - own[axis]) as f32);
            Sample { off, shifts: &self.shifts[member][other] }
        };
        let others: Vec<usize> = (0..self.members.len()).filter(|other| *other != member).collect();
        let of = |at: usize| Sampled {
            place: self.places[member][at],
            samples: others.iter().map(|other| sample(at, *other)).collect(),
        };
        (0..self.places[member].len()).map(of).collect()
    }

    /// How far apart targets are in two demonstrations.
    fn distances(&self) -> impl Iterator<Item = f64> {
        (0..self.members.len()).flat_map(|member| self.targets(member)).flat_map(|target| {
            let far = |sample: &Sample<'_>| sample.off.iter().map(|off| f64::from(*off).powi(2)).sum::<f64>().sqrt();
            target.samples.iter().map(far).collect::<Vec<_>>()
        })
    }

    fn record(&self, shown: &[Shown], jacobian: &[[f64; 2]; 3], view: &View, exact: f32) -> TaskRecord {
        let demonstrations = (0..self.members.len()).into_par_iter().map(|member| {
            let Shown { motion, calls, targets, .. } = &shown[self.members[member]];
            let followed = self.targets(member).iter().map(|target| target.followed(jacobian, view, exact)).collect();
            DemonstrationRecord { motion: motion.clone(), calls: calls.clone(), targets: targets.clone(), followed }
        });
        let Shown { instruction, program, .. } = &shown[self.members[0]];
        TaskRecord {
            demonstrations: demonstrations.collect(),
            instruction: instruction.clone(),
            program: program.clone(),
        }
    }
}

impl Sampled<'_> {
    /// The windows that it moves with; none if they do not help.
    fn followed(&self, jacobian: &[[f64; 2]; 3], view: &View, exact: f32) -> Vec<usize> {
        let (jacobian, seen) = (single(jacobian), view.of(&self.place));
        let left: Vec<f64> = (0..WINDOWS).map(|window| f64::from(self.left(&jacobian, window, exact))).collect();
        let cost = |window: usize| {
            let off = seen.iter().zip(middle(window)).map(|(seen, middle)| (seen - f64::from(middle)).powi(2));
            left[window] + off.sum::<f64>() / (2.0 * AROUND * AROUND)
        };
        let mut order: Vec<usize> = (0..WINDOWS).collect();
        order.sort_by(|a, b| cost(*a).total_cmp(&cost(*b)).then(a.cmp(b)));
        let gained = f64::from(self.unseen(exact)) - left[order[0]];
        match gained > self.samples.len() as f64 * -USEFUL.ln() {
            true => order[..FOLLOWED].to_vec(),
            false => Vec::new(),
        }
    }
}

/// Landmarks of some demonstrations; `None` if images do not tell where targets are.
pub(super) fn fit(shown: &[Shown]) -> Option<Fitted> {
    let mut of_task: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, one) in shown.iter().enumerate().filter(|(_, one)| !one.targets.is_empty()) {
        of_task.entry((&one.instruction, &one.program)).or_default().push(at);
    }
    let groups = of_task.into_values().filter(|members| members.len() > OTHERS);
    let tasks: Vec<Task> = groups.map(|members| Task::new(shown, members)).collect();
    let mut distances: Vec<f64> = tasks.iter().flat_map(Task::distances).collect();
    distances.sort_by(f64::total_cmp);
    let spread = distances.get(distances.len() / 2).copied().filter(|spread| *spread > 1e-9)?;

    let exact = (EXACT * spread).powi(2) as f32;
    let typical: Vec<Sampled<'_>> = tasks.iter().flat_map(|task| task.targets(task.typical())).collect();
    let members = |task| (0..Task::count(task)).flat_map(|member| Task::targets(task, member));
    let targets: Vec<Sampled<'_>> = tasks.iter().flat_map(members).collect();
    let (jacobian, score) = camera(&typical, &targets, exact)?;
    let view = view(&targets, &jacobian, exact)?;
    let images = tasks.iter().flat_map(|task| &task.members).map(|at| shown[*at].image.clone()).collect();
    let records = tasks.iter().map(|task| task.record(shown, &jacobian, &view, exact)).collect();
    Some(Fitted { jacobian, spread, tasks: records, images, score })
}

/// The camera's matrix, and its score: the one that explains the most targets, each by its best window. Candidates are those that
/// explain a single target of a typical demonstration (as in RANSAC); the best is then fitted to all targets again.
fn camera(typical: &[Sampled<'_>], targets: &[Sampled<'_>], exact: f32) -> Option<([[f64; 2]; 3], f64)> {
    let score_of = |targets: &[Sampled<'_>], jacobian: &[[f64; 2]; 3]| -> f64 {
        let best = targets.par_iter().map(|target| f64::from(target.best(&single(jacobian), exact).1));
        // Summed in order, so that the same data give the same landmarks on any number of cores.
        best.collect::<Vec<f64>>().into_iter().sum()
    };
    let candidates: Vec<[[f64; 2]; 3]> = typical
        .par_iter()
        .flat_map_iter(|target| {
            let explained = (0..WINDOWS).map(|window| {
                let jacobian = target.explained(window, exact);
                (jacobian, target.left(&single(&jacobian), window, exact))
            });
            let mut own: Vec<([[f64; 2]; 3], f32)> = explained.collect();
            own.sort_by(|one, other| one.1.total_cmp(&other.1));
            own.into_iter().take(TRIED).map(|(jacobian, _)| jacobian)
        })
        .collect();
    let scored: Vec<([[f64; 2]; 3], f64)> =
        candidates.into_par_iter().map(|jacobian| (jacobian, score_of(typical, &jacobian))).collect();
    let (first, _) = scored.into_iter().min_by(|one, other| one.1.total_cmp(&other.1))?;
    let mut best = (first, score_of(targets, &first));
    for _ in 0..8 {
        let mut moments = Moments::default();
        for target in targets {
            let (window, _) = target.best(&single(&best.0), exact);
            for sample in &target.samples {
                let error = sample.error(&single(&best.0), window);
                moments.add(sample, window, f64::from(exact / (error + exact)));
            }
        }
        let jacobian = moments.solved();
        let again = score_of(targets, &jacobian);
        if again < best.1 {
            best = (jacobian, again);
        }
    }
    Some(best)
}

/// Where the camera sees a place: a linear map from places to pixels.
struct View {
    /// The mean of the places that it was learned from.
    centre: Place,
    /// For both pixel coordinates the weights of the place less that, and a constant.
    weights: [[f64; 4]; 2],
}

impl View {
    fn of(&self, place: &Place) -> [f64; 2] {
        self.weights.map(|[x, y, z, one]| {
            let off: [f64; 3] = std::array::from_fn(|at| place[at] - self.centre[at]);
            x * off[0] + y * off[1] + z * off[2] + one
        })
    }
}

/// Where the camera sees targets, by those that one window is clear about; `None` if there are too few of them. Windows that are
/// clear by chance are far from the others' map and count little.
fn view(targets: &[Sampled<'_>], jacobian: &[[f64; 2]; 3], exact: f32) -> Option<View> {
    let clear = targets.iter().filter_map(|target| {
        let (window, left) = target.best(&single(jacobian), exact);
        let gained = f64::from(target.unseen(exact) - left);
        let is_clear = gained > target.samples.len() as f64 * -CLEAR.ln();
        is_clear.then(|| (target.place, middle(window).map(f64::from)))
    });
    let clear: Vec<(Place, [f64; 2])> = clear.collect();
    if clear.len() < CLEAR_TARGETS || (clear.len() as f64) < CLEAR_SHARE * targets.len() as f64 {
        return None;
    }
    let centre: Place = std::array::from_fn(|at| clear.iter().map(|one| one.0[at]).sum::<f64>() / clear.len() as f64);
    let inputs: Vec<[f64; 4]> = clear
        .iter()
        .map(|(place, _)| [place[0] - centre[0], place[1] - centre[1], place[2] - centre[2], 1.0])
        .collect();
    let size: f64 = inputs.iter().flat_map(|row| &row[..3]).map(|x| x * x).sum();
    let mut view = View { centre, weights: [[0.0; 4]; 2] };
    let mut counts = vec![1.0; clear.len()];
    for _ in 0..20 {
        for (pixel, weights) in view.weights.iter_mut().enumerate() {
            let rows = inputs.iter().zip(&clear).zip(&counts);
            let rows: Vec<([f64; 4], f64, f64)> =
                rows.map(|((row, one), count)| (*row, one.1[pixel], *count)).collect();
            *weights = regression(&rows, 1e-3 * size.max(1e-12));
        }
        for (count, (place, pixels)) in counts.iter_mut().zip(&clear) {
            let away: f64 = view.of(place).iter().zip(pixels).map(|(seen, pixel)| (seen - pixel).powi(2)).sum();
            *count = 1.0 / (1.0 + away / (AROUND * AROUND));
        }
    }
    Some(view)
}

/// Weighted least squares with a little ridge on all but the constant: rows are inputs, value and weight.
fn regression(rows: &[([f64; 4], f64, f64)], ridge: f64) -> [f64; 4] {
    let mut system = [[0.0; 5]; 4];
    for (inputs, value, weight) in rows {
        for (row, left) in system.iter_mut().zip(inputs) {
            for (cell, right) in row.iter_mut().zip(inputs.iter().chain([value])) {
                *cell += weight * left * right;
            }
        }
    }
    (0..3).for_each(|at| system[at][at] += ridge);
    system[3][3] += f64::MIN_POSITIVE;
    // Elimination; the matrix is positive definite, so that the order does not matter.
    for pivot in 0..4 {
        let own = system[pivot];
        for (_, row) in system.iter_mut().enumerate().filter(|(at, _)| *at != pivot) {
            let factor = row[pivot] / own[pivot];
            row.iter_mut().zip(own).for_each(|(cell, own)| *cell -= factor * own);
        }
    }
    std::array::from_fn(|at| system[at][4] / system[at][at])
}

/// What it costs in an alignment to leave out a target: a small share of a usual step.
pub(super) fn skip(targets: &[Place]) -> f64 {
    let steps: f64 = targets.windows(2).map(|ends| distance(&ends[0], &ends[1])).sum();
    0.05 * steps / (targets.len().max(2) - 1) as f64
}

/// The mean of some displacements.
pub(super) fn mean(shifts: &[[f64; 2]]) -> Option<[f64; 2]> {
    let count = shifts.len() as f64;
    (!shifts.is_empty()).then(|| [0, 1].map(|axis| shifts.iter().map(|shift| shift[axis]).sum::<f64>() / count))
}

/// A place that moves with a displacement.
pub(super) fn led(jacobian: &[[f64; 2]; 3], place: &Place, shift: [f64; 2]) -> Place {
    std::array::from_fn(|at| place[at] + jacobian[at][0] * shift[0] + jacobian[at][1] * shift[1])
}
