//! From a spanning tree to labels.
//!
//! Edges joined from the shortest to the longest make a dendrogram; read from its root down, with λ = 1/length growing, a
//! cluster either loses points (a side of fewer than `min_cluster_size`), or splits into two, or ends. Its stability is the
//! points' λ at leaving less the cluster's λ at birth, summed. Excess of mass selects, among all sets of clusters none of
//! which contains another, the one of greatest stability; a cluster and its children of equal stability is the cluster.

use super::spanning_tree::Edge;
use crate::points::NOISE;

/// The label of each point, and how many clusters there are. Clusters are numbered from the root down, level by level.
pub(super) fn labels(tree: Vec<Edge>, min_cluster_size: usize, allow_single_cluster: bool) -> (Vec<i64>, usize) {
    let count = tree.len() + 1;
    let joints = dendrogram(tree);
    let condensed = condense(&joints, count, min_cluster_size);
    let selected = select(&condensed.clusters, allow_single_cluster);
    let mut numbers = vec![NOISE; selected.len()];
    let mut clusters = 0;
    // A parent stands before its children: what is selected above is handed down.
    for cluster in 0..selected.len() {
        if selected[cluster] {
            numbers[cluster] = clusters;
            clusters += 1;
        } else if cluster > 0 {
            numbers[cluster] = numbers[condensed.clusters[cluster].parent];
        }
    }
    let label = |&(cluster, lambda): &(usize, f64)| {
        // Of the whole as the one cluster only the points are members that stay until it ends.
        if selected[0] && lambda < condensed.clusters[0].end { NOISE } else { numbers[cluster] }
    };
    (condensed.fallen.iter().map(label).collect(), clusters as usize)
}

/// Two parts of a dendrogram joined. Parts below the number of points are points, the others joints, in order.
struct Joint {
    left: usize,
    right: usize,
    length: f64,
    size: usize,
}

/// Joins along the edges, the shortest first, equal ones in their order.
fn dendrogram(mut tree: Vec<Edge>) -> Vec<Joint> {
    let count = tree.len() + 1;
    tree.sort_by(|a, b| a.length.total_cmp(&b.length));
    let mut parent: Vec<usize> = (0..count).collect();
    // For the root of each set, the part it is.
    let mut part: Vec<usize> = (0..count).collect();
    let mut joints: Vec<Joint> = Vec::with_capacity(tree.len());
    let size = |joints: &[Joint], part: usize| if part < count { 1 } else { joints[part - count].size };
    for Edge { from, to, length } in tree {
        let (a, b) = (find(&mut parent, from as usize), find(&mut parent, to as usize));
        let (left, right) = (part[a], part[b]);
        let (left_size, right_size) = (size(&joints, left), size(&joints, right));
        let (root, child) = if left_size < right_size { (b, a) } else { (a, b) };
        parent[child] = root;
        part[root] = count + joints.len();
        joints.push(Joint { left, right, length, size: left_size + right_size });
    }
    joints
}

fn find(parent: &mut [usize], mut point: usize) -> usize {
    while parent[point] != point {
        parent[point] = parent[parent[point]];
        point = parent[point];
    }
    point
}

struct Condensed {
    /// The first holds all points.
    clusters: Vec<Cluster>,
    /// For each point the cluster that it fell out of, and at which λ.
    fallen: Vec<(usize, f64)>,
}

struct Cluster {
    parent: usize,
    children: Option<[usize; 2]>,
    birth: f64,
    /// The greatest λ at which it lost points or split.
    end: f64,
    stability: f64,
}

impl Cluster {
    fn new(parent: usize, birth: f64) -> Cluster {
        Cluster { parent, children: None, birth, end: 0.0, stability: 0.0 }
    }

    fn lose(&mut self, size: usize, lambda: f64) {
        self.stability += (lambda - self.birth) * size as f64;
        self.end = self.end.max(lambda);
    }
}

/// Reads the dendrogram from the root, level by level.
fn condense(joints: &[Joint], count: usize, min_cluster_size: usize) -> Condensed {
    let mut clusters = vec![Cluster::new(0, 0.0)];
    let mut fallen = vec![(0, 0.0); count];
    let mut queue = std::collections::VecDeque::from([(count + joints.len() - 1, 0)]);
    while let Some((part, cluster)) = queue.pop_front() {
        let Joint { left, right, length, .. } = joints[part - count];
        let lambda = if length > 0.0 { 1.0 / length } else { f64::INFINITY };
        let large = |part: usize| part >= count && joints[part - count].size >= min_cluster_size;
        if large(left) && large(right) {
            let children = [clusters.len(), clusters.len() + 1];
            clusters[cluster].children = Some(children);
            for (part, child) in [left, right].into_iter().zip(children) {
                clusters[cluster].lose(joints[part - count].size, lambda);
                clusters.push(Cluster::new(cluster, lambda));
                queue.push_back((part, child));
            }
            continue;
        }
        for part in [left, right] {
            if large(part) {
                queue.push_back((part, cluster));
                continue;
            }
            let mut inside = vec![part];
            while let Some(part) = inside.pop() {
                if part < count {
                    clusters[cluster].lose(1, lambda);
                    fallen[part] = (cluster, lambda);
                } else {
                    inside.extend([joints[part - count].left, joints[part - count].right]);
                }
            }
        }
    }
    Condensed { clusters, fallen }
}

/// Excess of mass: which clusters are taken. The first is the whole, taken only if that is allowed.
fn select(clusters: &[Cluster], allow_single_cluster: bool) -> Vec<bool> {
    let mut worth: Vec<f64> = clusters.iter().map(|cluster| cluster.stability).collect();
    let mut selected = vec![true; clusters.len()];
    selected[0] = allow_single_cluster;
    for (at, cluster) in clusters.iter().enumerate().rev() {
        let below = cluster.children.map_or(0.0, |[left, right]| worth[left] + worth[right]);
        // Duplicates have infinite λ and can make stabilities that are no numbers; such clusters are taken.
        if below > worth[at] {
            selected[at] = false;
            worth[at] = below;
        }
    }
    let mut covered = vec![false; clusters.len()];
    for at in 1..clusters.len() {
        let parent = clusters[at].parent;
        covered[at] = covered[parent] || selected[parent];
        selected[at] &= !covered[at];
    }
    selected
}
