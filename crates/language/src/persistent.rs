//! A persistent array: cloning is O(1), reading and writing are O(log₁₆ n), and old versions stay what they were.
//!
//! It is a trie over the index, four bits a level. A write copies the path to its leaf, or changes it in place where no
//! other version shares it. With 32-bit indices a path has at most eight nodes.

use std::sync::Arc;

const BITS: u32 = 4;
const WIDTH: usize = 1 << BITS;

#[derive(Clone, Debug)]
enum Node<T> {
    Leaf([Option<T>; WIDTH]),
    Inner([Option<Arc<Node<T>>>; WIDTH]),
}

/// A persistent array of optional values.
#[derive(Clone, Debug)]
pub(crate) struct PersistentArray<T> {
    root: Option<Arc<Node<T>>>,
    levels: u32,
}

impl<T> Default for PersistentArray<T> {
    fn default() -> Self {
        PersistentArray { root: None, levels: 1 }
    }
}

impl<T: Copy> PersistentArray<T> {
    pub(crate) fn get(&self, index: u32) -> Option<T> {
        if !fits(index, self.levels) {
            return None;
        }
        let mut node = self.root.as_ref()?;
        let mut level = self.levels;
        loop {
            level = level.saturating_sub(1);
            match &**node {
                Node::Leaf(values) => return values[slot(index, 0)],
                Node::Inner(children) => node = children[slot(index, level)].as_ref()?,
            }
        }
    }

    pub(crate) fn set(&mut self, index: u32, value: T) {
        while !fits(index, self.levels) {
            if let Some(old) = self.root.take() {
                let mut children = [const { None }; WIDTH];
                children[0] = Some(old);
                self.root = Some(Arc::new(Node::Inner(children)));
            }
            self.levels += 1;
        }
        write(&mut self.root, index, self.levels - 1, value);
    }
}

fn write<T: Copy>(place: &mut Option<Arc<Node<T>>>, index: u32, level: u32, value: T) {
    let empty = || match level {
        0 => Arc::new(Node::Leaf([None; WIDTH])),
        _ => Arc::new(Node::Inner([const { None }; WIDTH])),
    };
    match Arc::make_mut(place.get_or_insert_with(empty)) {
        Node::Leaf(values) => values[slot(index, 0)] = Some(value),
        Node::Inner(children) => write(&mut children[slot(index, level)], index, level.saturating_sub(1), value),
    }
}

fn fits(index: u32, levels: u32) -> bool {
    levels * BITS >= u32::BITS || index >> (levels * BITS) == 0
}

fn slot(index: u32, level: u32) -> usize {
    (index >> (level * BITS)) as usize % WIDTH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_stay_what_they_were() {
        let mut versions = vec![PersistentArray::default()];
        let indices = [0u32, 3, 17, 255, 256, 70_000, u32::MAX, 3];
        for (step, &index) in indices.iter().enumerate() {
            let mut next = versions[step].clone();
            next.set(index, step);
            versions.push(next);
        }
        for (count, version) in versions.iter().enumerate() {
            for &index in &indices {
                let expected = indices[..count].iter().rposition(|&written| written == index);
                assert_eq!(version.get(index), expected, "version {count}, index {index}");
            }
            assert_eq!(version.get(1), None);
        }
    }
}
