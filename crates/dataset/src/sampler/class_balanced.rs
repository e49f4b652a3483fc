//! Batches that hold the classes in equal parts.

use std::collections::BTreeMap;

use crate::draw::{Purpose, generator};
use crate::fragment::{Fragment, FragmentId, FragmentIndex};
use crate::permutation::Permutation;
use crate::sampling_error::SamplingError;

/// Each class as often as any other in every batch (the counts differ by one at most), whatever the sizes of the
/// classes.
///
/// With C classes and batches of B, steps come in cycles of C / gcd(B, C): the fewest that give each class the same
/// number of draws. Within a cycle the classes take turns in a random order that is new each cycle, so that with B < C
/// all classes meet each other in some batch. A class's n-th turn is its n-th fragment in a random order without
/// repeats; used up, the class begins again in a new order. A batch over that point may hold a fragment twice.
#[derive(Clone, Debug)]
pub struct ClassBalanced {
    /// The fragments of each class, ascending; classes in the order of their labels.
    classes: Vec<Vec<u32>>,
    batch: usize,
    seed: u64,
}

impl ClassBalanced {
    /// Batches of `batch` fragments, with classes told by `label`, such as a column of the dataset.
    pub fn new<L: Ord>(
        index: &FragmentIndex,
        batch: usize,
        seed: u64,
        label: impl Fn(FragmentId, &Fragment) -> L,
    ) -> Result<ClassBalanced, SamplingError> {
        super::check(index, batch)?;
        if u32::try_from(index.len()).is_err() {
            return Err(SamplingError::TooManyFragments { found: index.len() as u128, limit: u32::MAX as usize });
        }
        let mut classes = BTreeMap::<L, Vec<u32>>::new();
        for (id, fragment) in index.iter() {
            classes.entry(label(id, &fragment)).or_default().push(id.0 as u32);
        }
        Ok(ClassBalanced { classes: classes.into_values().collect(), batch, seed })
    }

    /// Batches with tasks as classes.
    pub fn by_task(index: &FragmentIndex, batch: usize, seed: u64) -> Result<ClassBalanced, SamplingError> {
        ClassBalanced::new(index, batch, seed, |_, fragment| fragment.task)
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// The fragments of a step; classes take turns.
    pub fn batch(&self, step: u64) -> Vec<FragmentId> {
        let classes = self.classes.len();
        let common = gcd(self.batch, classes);
        let (cycle, step) = (step / (classes / common) as u64, step % (classes / common) as u64);
        // `step` is below `classes`, and a batch has a limit, so this fits.
        let drawn = step as usize * self.batch;
        let order = Permutation::new(classes, &mut generator(self.seed, Purpose::Classes, [cycle, 0]));

        let mut batch = vec![FragmentId(0); self.batch];
        for turn in 0..classes.min(self.batch) {
            let class = order.at((drawn + turn) % classes);
            let mut draws = Draws::new(self, class);
            for place in (turn..self.batch).step_by(classes) {
                let rank = u128::from(cycle) * (self.batch / common) as u128 + ((drawn + place) / classes) as u128;
                batch[place] = draws.at(rank);
            }
        }
        batch
    }
}

/// The endless draws of one class; the order of the current pass over it is kept.
struct Draws<'a> {
    members: &'a [u32],
    seed: u64,
    class: usize,
    pass: Option<(u64, Permutation)>,
}

impl<'a> Draws<'a> {
    fn new(sampler: &'a ClassBalanced, class: usize) -> Draws<'a> {
        Draws { members: &sampler.classes[class], seed: sampler.seed, class, pass: None }
    }

    fn at(&mut self, rank: u128) -> FragmentId {
        let size = self.members.len() as u128;
        let (pass, place) = ((rank / size) as u64, (rank % size) as usize);
        let order = match self.pass.take() {
            Some((current, order)) if current == pass => order,
            _ => {
                let mut random = generator(self.seed, Purpose::Class, [self.class as u64, pass]);
                Permutation::new(self.members.len(), &mut random)
            }
        };
        let drawn = self.members[order.at(place)];
        self.pass = Some((pass, order));
        FragmentId(drawn as usize)
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fragment::tests::spans;

    /// Classes of the given numbers of fragments, one episode each.
    fn index(sizes: &[usize]) -> FragmentIndex {
        let episodes: Vec<(usize, u32)> = sizes.iter().zip(0..).map(|(size, task)| (size + 3, task)).collect();
        FragmentIndex::of_all(&spans(&episodes), 4, 1).unwrap()
    }

    #[test]
    fn batches_are_the_same_for_ever() {
        let sampler = ClassBalanced::by_task(&index(&[50, 5, 20]), 8, 1).unwrap();
        assert_eq!(sampler.batch(0), [61, 51, 1, 68, 53, 7, 66, 54].map(FragmentId));
        assert_eq!(sampler.batch(1), [18, 67, 52, 47, 60, 50, 29, 65].map(FragmentId));
        assert_eq!(sampler.batch(1000), [64, 50, 49, 61, 53, 29, 73, 51].map(FragmentId));
    }

    #[test]
    fn labels_of_any_kind() {
        let index = index(&[40]);
        let phases: Vec<i64> = (0..40).map(|at| if at < 35 { -1 } else { 7 }).collect();
        let sampler = ClassBalanced::new(&index, 10, 0, |id, _| phases[id.0]).unwrap();
        assert_eq!(sampler.classes(), 2);
        assert_eq!(sampler.batch(3).iter().filter(|id| phases[id.0] == 7).count(), 5);
    }

    #[test]
    fn with_small_batches_all_classes_meet() {
        let index = index(&[5; 6]);
        let sampler = ClassBalanced::by_task(&index, 2, 0).unwrap();
        let mut met = std::collections::BTreeSet::new();
        for step in 0..300 {
            let batch = sampler.batch(step);
            let mut pair = [index.get(batch[0]).task.0, index.get(batch[1]).task.0];
            pair.sort_unstable();
            met.insert(pair);
        }
        assert_eq!(met.len(), 15, "every pair of six classes");
    }

    #[test]
    fn the_last_step_there_can_be() {
        assert_eq!(ClassBalanced::by_task(&index(&[3, 2]), 7, 0).unwrap().batch(u64::MAX).len(), 7);
    }

    proptest! {
        #[test]
        fn classes_are_equal_in_every_batch_and_used_up_before_repeats(
            sizes in prop::collection::vec(1usize..12, 1..8), batch in 1usize..30, seed: u64,
        ) {
            let index = index(&sizes);
            let sampler = ClassBalanced::by_task(&index, batch, seed).unwrap();
            let mut of_class = vec![vec![]; sizes.len()];
            for step in 0..24 {
                let mut counts = vec![0; sizes.len()];
                for id in sampler.batch(step) {
                    let task = index.get(id).task.at();
                    counts[task] += 1;
                    of_class[task].push(id.0);
                }
                let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
                prop_assert!(most - least <= 1, "{counts:?}");
                prop_assert_eq!(counts.iter().sum::<usize>(), batch);
            }
            for (drawn, size) in of_class.into_iter().zip(sizes) {
                for pass in drawn.chunks(size) {
                    let mut distinct = pass.to_vec();
                    distinct.sort_unstable();
                    distinct.dedup();
                    prop_assert_eq!(distinct.len(), pass.len());
                }
            }
        }

        #[test]
        fn a_resumed_run_goes_on_as_an_unbroken_one(batch in 1usize..20, step in 0u64..50) {
            let unbroken = ClassBalanced::by_task(&index(&[9, 3, 5, 1]), batch, 9).unwrap();
            let sequence: Vec<Vec<FragmentId>> = (0..=step).map(|step| unbroken.batch(step)).collect();
            let resumed = ClassBalanced::by_task(&index(&[9, 3, 5, 1]), batch, 9).unwrap();
            prop_assert_eq!(Some(&resumed.batch(step)), sequence.last());
        }
    }
}
