//! Where the parts of a term were written.
//!
//! Nodes of the arena are shared, so a span cannot live on them. A [`SpanTree`] has the shape of one term instead: the
//! n-th part of a term, in the order of [`Term::children`](crate::Term::children), was written at the n-th child.

use crate::diagnostic::Span;

/// A node of a [`SpanTree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanNode(u32);

/// The spans of a term and of all its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanTree {
    nodes: Vec<(Span, Vec<SpanNode>)>,
    root: Option<SpanNode>,
}

impl SpanTree {
    /// The node of the whole term.
    pub fn root(&self) -> Option<SpanNode> {
        self.root
    }

    /// Where a part was written.
    pub fn span(&self, node: SpanNode) -> Span {
        self.nodes[node.0 as usize].0
    }

    /// The node of the n-th part of a part.
    pub fn child(&self, node: SpanNode, part: usize) -> Option<SpanNode> {
        self.nodes[node.0 as usize].1.get(part).copied()
    }

    /// The nodes of all parts of a part.
    pub fn children(&self, node: SpanNode) -> &[SpanNode] {
        &self.nodes[node.0 as usize].1
    }

    pub(crate) fn add(&mut self, span: Span, children: Vec<SpanNode>) -> SpanNode {
        self.nodes.push((span, children));
        SpanNode((self.nodes.len() - 1) as u32)
    }

    /// The same parts, written over another span.
    pub(crate) fn widen(&mut self, node: SpanNode, span: Span) {
        self.nodes[node.0 as usize].0 = span;
    }

    pub(crate) fn set_root(&mut self, node: SpanNode) {
        self.root = Some(node);
    }
}
