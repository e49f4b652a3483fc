//! Learning landmarks from demonstrations.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::alignment::aligned;
use super::windows::{Picture, WINDOWS, Window, middle};
use super::{DemonstrationRecord, Place, TaskRecord, distance};

/// What a demonstration without a like one in its task counts; it predicts nothing.
const LEAST_WEIGHT: f64 = 0.3;

/// Windows of each target that are tried as the camera's matrix.
const TRIED: usize = 8;

/// Displacements are noisy by about this squared deviation, in pixels.
const SHIFT_NOISE: f64 = 0.3;

/// Errors below this share of the spread are as good as none.
const EXACT: f64 = 0.08;

/// A window is clear about a target if it leaves less than this share of its squared error.
const CLEAR: f64 = 0.3;

/// A window is of use if it leaves less than this share of the squared error.
const USEFUL: f64 = 0.85;

/// So many targets must be clear: fewer could be chance.
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
    /// The image at its start.
    pub(super) picture: Picture,
    /// Where it leads the arm, one after the other.
    pub(super) targets: Vec<Place>,
}

/// What is learned.
pub(super) struct Fitted {
    pub(super) jacobian: [[f64; 2]; 3],
    pub(super) spread: f64,
    pub(super) tasks: Vec<TaskRecord>,
    /// The image of each task.
    pub(super) images: Vec<Vec<u8>>,
    /// Less is better: the logarithm of squared errors, summed over targets.
    pub(super) score: f64,
}

/// The target of a demonstration as the others of its task predict it.
struct Predicted {
    /// How far their mean is from it.
    off: [f32; 3],
    /// For each window how far it is from where it is in theirs.
    shifts: Vec<[f32; 2]>,
}

/// One target in all demonstrations of a task.
struct Target<'a> {
    place: Place,
    predicted: Vec<&'a Predicted>,
}

impl Target<'_> {
    /// For each window the mean squared error of what it predicts.
    fn errors(&self, jacobian: &[[f64; 2]; 3]) -> Vec<f64> {
        let rows = jacobian.map(|row| row.map(|value| value as f32));
        let mut errors = vec![0.0_f32; WINDOWS];
        for Predicted { off, shifts } in &self.predicted {
            for (error, shift) in errors.iter_mut().zip(shifts) {
                for (row, off) in rows.iter().zip(off) {
                    *error += (off + row[0] * shift[0] + row[1] * shift[1]).powi(2);
                }
            }
        }
        errors.into_iter().map(|error| f64::from(error) / self.predicted.len() as f64).collect()
    }

    /// The mean squared error without windows.
    fn unseen(&self) -> f64 {
        let square = |one: &&Predicted| one.off.iter().map(|off| f64::from(*off).powi(2)).sum::<f64>();
        self.predicted.iter().map(square).sum::<f64>() / self.predicted.len() as f64
    }

    /// The matrix that explains it best by a window.
    fn explained(&self, window: usize) -> Moments {
        let mut moments = Moments::default();
        self.predicted.iter().for_each(|one| moments.add(one, window, 1.0));
        moments
    }
}

/// Sums for a linear regression of targets on displacements.
#[derive(Clone, Copy, Default)]
struct Moments {
    shifts: [[f64; 2]; 2],
    products: [[f64; 2]; 3],
}

impl Moments {
    fn add(&mut self, one: &Predicted, window: usize, weight: f64) {
        let shift = one.shifts[window].map(f64::from);
        for row in 0..2 {
            for column in 0..2 {
                self.shifts[row][column] += weight * shift[row] * shift[column];
            }
        }
        for (row, off) in self.products.iter_mut().zip(one.off) {
            row.iter_mut().zip(shift).for_each(|(sum, shift)| *sum -= weight * f64::from(off) * shift);
        }
    }

    /// The matrix with the least squared error, where displacements have noise.
    fn solved(&self, noise: f64) -> [[f64; 2]; 3] {
        let [[xx, xy], [_, yy]] = self.shifts;
        let (xx, yy) = (xx + noise, yy + noise);
        let determinant = xx * yy - xy * xy;
        self.products.map(|[x, y]| [(x * yy - y * xy) / determinant, (y * xx - x * xy) / determinant])
    }
}

/// The demonstrations of a task.
struct Task {
    members: Vec<usize>,
    image: Vec<u8>,
    /// For each member and window how far it is from its place in the image.
    shifts: Vec<Vec<[f32; 2]>>,
    /// For each pair of members which target of the second one each target of the first one is.
    matched: Vec<Vec<Vec<usize>>>,
    /// For each member and target what the others predict; nothing where no other is like it.
    predicted: Vec<Vec<Option<Predicted>>>,
}

/// Landmarks of some demonstrations; `None` if images do not tell where targets are.
pub(super) fn fit(shown: &[Shown]) -> Option<Fitted> {
    let mut of_task: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, one) in shown.iter().enumerate().filter(|(_, one)| !one.targets.is_empty()) {
        of_task.entry((&one.instruction, &one.program)).or_default().push(at);
    }
    let mut tasks: Vec<Task> =
        of_task.into_values().filter(|members| members.len() > 2).filter_map(|all| Task::new(shown, all)).collect();
    let spread = spread(shown, &tasks)?;
    tasks.par_iter_mut().for_each(|task| task.predict(shown, spread));

    let targets: Vec<Target<'_>> = tasks.iter().flat_map(|task| task.targets(shown, task.typical(shown))).collect();
    let exact = (EXACT * spread).powi(2);
    let (jacobian, score) = camera(&targets, exact)?;
    let view = view(&targets, &jacobian)?;
    let (mut records, mut images) = (Vec::new(), Vec::new());
    for task in tasks.iter() {
        records.push(task.record(shown, &jacobian, &view, exact));
        images.push(task.image.clone());
    }
    Some(Fitted { jacobian, spread, tasks: records, images, score })
}

impl Task {
    fn new(shown: &[Shown], members: Vec<usize>) -> Option<Task> {
        let pictures: Vec<&Picture> = members.iter().map(|at| &shown[*at].picture).collect();
        let image = Picture::mean(&pictures);
        let reference = Picture::of_bytes(&image)?;
        let found: Vec<Vec<[f32; 2]>> = (0..WINDOWS)
            .into_par_iter()
            .map(|number| {
                let window = Window::new(&reference, number);
                pictures.iter().map(|picture| window.find(picture).shift).collect()
            })
            .collect();
        let shifts = (0..members.len()).map(|at| found.iter().map(|of_window| of_window[at]).collect()).collect();
        let matched = members
            .iter()
            .map(|one| {
                let targets = |at: usize| &shown[at].targets;
                let of = |other: &usize| aligned(targets(*one), targets(*other), skip(targets(*other)));
                members.iter().map(of).collect()
            })
            .collect();
        Some(Task { members, image, shifts, matched, predicted: Vec::new() })
    }

    /// For each member and target the mean of the other members' targets, those that are near counting more.
    fn predict(&mut self, shown: &[Shown], spread: f64) {
        let of = |one: usize, at: usize| {
            let own = &shown[self.members[one]].targets[at];
            let (mut weight, mut off, mut shifts) = (0.0, [0.0; 3], vec![[0.0_f32; 2]; WINDOWS]);
            for other in (0..self.members.len()).filter(|other| *other != one) {
                let there = &shown[self.members[other]].targets[self.matched[one][other][at]];
                let near = (-0.5 * (distance(own, there) / spread).powi(2)).exp();
                weight += near;
                off.iter_mut().zip(there).zip(own).for_each(|((off, there), own)| *off += near * (there - own));
                for ((sum, own), other) in shifts.iter_mut().zip(&self.shifts[one]).zip(&self.shifts[other]) {
                    sum.iter_mut().zip(own).zip(other).for_each(|((sum, own), other)| *sum += near as f32 * (own - other));
                }
            }
            shifts.iter_mut().flatten().for_each(|shift| *shift /= weight as f32);
            (weight > LEAST_WEIGHT).then(|| Predicted { off: off.map(|off| (off / weight) as f32), shifts })
        };
        let all = |one: usize| (0..shown[self.members[one]].targets.len()).map(|at| of(one, at)).collect();
        self.predicted = (0..self.members.len()).map(all).collect();
    }

    /// The member with a middle number of targets.
    fn typical(&self, shown: &[Shown]) -> usize {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        order.sort_by_key(|at| shown[self.members[*at]].targets.len());
        order[order.len() / 2]
    }

    /// The targets of a member, each in all members; those that at least three can tell something about.
    fn targets<'a>(&'a self, shown: &[Shown], member: usize) -> Vec<Target<'a>> {
        let places = &shown[self.members[member]].targets;
        let of = |at: usize| Target {
            place: places[at],
            predicted: (0..self.members.len())
                .filter_map(|other| self.predicted[other][self.matched[member][other][at]].as_ref())
                .collect(),
        };
        (0..places.len()).map(of).collect()
    }

    fn record(&self, shown: &[Shown], jacobian: &[[f64; 2]; 3], view: &View, exact: f64) -> TaskRecord {
        let followed: Vec<Vec<Vec<usize>>> = (0..self.members.len())
            .into_par_iter()
            .map(|member| {
                let targets = self.targets(shown, member);
                targets.iter().map(|target| target.followed(jacobian, view, exact)).collect()
            })
            .collect();
        let used: BTreeSet<usize> = followed.iter().flatten().flatten().copied().collect();
        let place: BTreeMap<usize, usize> = used.iter().enumerate().map(|(at, window)| (*window, at)).collect();
        let demonstrations = followed.into_iter().enumerate().map(|(at, followed)| DemonstrationRecord {
            targets: shown[self.members[at]].targets.clone(),
            followed: followed.iter().map(|windows| windows.iter().map(|window| place[window]).collect()).collect(),
            shifts: used.iter().map(|window| self.shifts[at][*window]).collect(),
        });
        let first = &shown[self.members[0]];
        TaskRecord {
            instruction: first.instruction.clone(),
            program: first.program.clone(),
            demonstrations: demonstrations.collect(),
            windows: used.into_iter().collect(),
        }
    }
}

impl Target<'_> {
    /// The windows that it moves with; none if they do not help.
    fn followed(&self, jacobian: &[[f64; 2]; 3], view: &View, exact: f64) -> Vec<usize> {
        if self.predicted.len() < 3 {
            return Vec::new();
        }
        let (errors, seen) = (self.errors(jacobian), view.of(&self.place));
        let count = self.predicted.len() as f64;
        let costs: Vec<f64> = errors
            .iter()
            .enumerate()
            .map(|(window, error)| {
                let away: f64 = seen.iter().zip(middle(window)).map(|(seen, middle)| (seen - f64::from(middle)).powi(2)).sum();
                count * (error + exact).ln() + away / (2.0 * AROUND * AROUND)
            })
            .collect();
        let mut order: Vec<usize> = (0..WINDOWS).collect();
        order.sort_by(|a, b| costs[*a].total_cmp(&costs[*b]).then(a.cmp(b)));
        match errors[order[0]] < USEFUL * self.unseen() {
            true => order[..FOLLOWED].to_vec(),
            false => Vec::new(),
        }
    }
}

/// How far apart the same target usually is in two demonstrations of a task; `None` if there are none or if nothing varies.
fn spread(shown: &[Shown], tasks: &[Task]) -> Option<f64> {
    let mut all = Vec::new();
    for Task { members, matched, .. } in tasks {
        for (one, matched) in members.iter().zip(matched) {
            for (other, matched) in members.iter().zip(matched).filter(|(other, _)| *other != one) {
                let places = shown[*one].targets.iter().zip(matched);
                all.extend(places.map(|(own, at)| distance(own, &shown[*other].targets[*at])));
            }
        }
    }
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().filter(|middle| *middle > 1e-9)
}

/// The camera's matrix, and its score: the one that explains the most targets, each by its best window. Candidates are those that
/// explain a single target (as in RANSAC, but all of them); the best is then fitted to all targets again.
fn camera(targets: &[Target<'_>], exact: f64) -> Option<([[f64; 2]; 3], f64)> {
    let told: Vec<&Target<'_>> = targets.iter().filter(|target| target.predicted.len() > 2).collect();
    let score = |jacobian: &[[f64; 2]; 3]| -> f64 {
        let best = |target: &&Target<'_>| {
            let least = target.errors(jacobian).into_iter().fold(f64::INFINITY, f64::min);
            target.predicted.len() as f64 * (least + exact).ln()
        };
        told.iter().map(best).sum()
    };
    let candidates: Vec<[[f64; 2]; 3]> = told
        .par_iter()
        .flat_map_iter(|target| {
            let mut own: Vec<([[f64; 2]; 3], f64)> = (0..WINDOWS)
                .map(|window| {
                    let jacobian = target.explained(window).solved(SHIFT_NOISE);
                    (jacobian, target.error(&jacobian, window))
                })
                .collect();
            own.sort_by(|one, other| one.1.total_cmp(&other.1));
            own.into_iter().take(TRIED).map(|(jacobian, _)| jacobian)
        })
        .collect();
    let scored: Vec<([[f64; 2]; 3], f64)> =
        candidates.into_par_iter().map(|jacobian| (jacobian, score(&jacobian))).collect();
    let mut best = scored.into_iter().min_by(|one, other| one.1.total_cmp(&other.1))?;
    for _ in 0..8 {
        let mut moments = Moments::default();
        for target in &told {
            let errors = target.errors(&best.0);
            let Some(window) = (0..WINDOWS).min_by(|a, b| errors[*a].total_cmp(&errors[*b])) else { continue };
            let weight = exact / (errors[window] + exact);
            target.predicted.iter().for_each(|one| moments.add(one, window, weight));
        }
        let jacobian = moments.solved(SHIFT_NOISE);
        let again = score(&jacobian);
        if again < best.1 {
            best = (jacobian, again);
        }
    }
    Some(best)
}

impl Target<'_> {
    /// The mean squared error of one window.
    fn error(&self, jacobian: &[[f64; 2]; 3], window: usize) -> f64 {
        let square = |one: &&Predicted| -> f64 {
            let shift = one.shifts[window].map(f64::from);
            let rows = jacobian.iter().zip(one.off);
            rows.map(|(row, off)| (f64::from(off) + row[0] * shift[0] + row[1] * shift[1]).powi(2)).sum()
        };
        self.predicted.iter().map(square).sum::<f64>() / self.predicted.len() as f64
    }
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
fn view(targets: &[Target<'_>], jacobian: &[[f64; 2]; 3]) -> Option<View> {
    let clear: Vec<(Place, [f64; 2])> = targets
        .iter()
        .filter(|target| target.predicted.len() > 2)
        .filter_map(|target| {
            let errors = target.errors(jacobian);
            let window = (0..WINDOWS).min_by(|a, b| errors[*a].total_cmp(&errors[*b]))?;
            (errors[window] < CLEAR * target.unseen()).then(|| (target.place, middle(window).map(f64::from)))
        })
        .collect();
    if clear.len() < CLEAR_TARGETS {
        return None;
    }
    let centre: Place = std::array::from_fn(|at| clear.iter().map(|one| one.0[at]).sum::<f64>() / clear.len() as f64);
    let inputs: Vec<[f64; 4]> = clear
        .iter()
        .map(|(place, _)| [place[0] - centre[0], place[1] - centre[1], place[2] - centre[2], 1.0])
        .collect();
    let size = inputs.iter().map(|row| row[..3].iter().map(|x| x * x).sum::<f64>()).sum::<f64>();
    let mut view = View { centre, weights: [[0.0; 4]; 2] };
    let mut counts = vec![1.0; clear.len()];
    for _ in 0..20 {
        for (pixel, weights) in view.weights.iter_mut().enumerate() {
            let rows = inputs.iter().zip(&clear).zip(&counts);
            let rows: Vec<([f64; 4], f64, f64)> = rows.map(|((row, one), count)| (*row, one.1[pixel], *count)).collect();
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
    // Elimination; the matrix is positive definite, so that no pivot is needed.
    for pivot in 0..4 {
        let own = system[pivot];
        for (at, row) in system.iter_mut().enumerate().filter(|(at, _)| *at != pivot) {
            let factor = row[pivot] / own[pivot];
            if at != pivot {
                row.iter_mut().zip(own).for_each(|(cell, own)| *cell -= factor * own);
            }
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
