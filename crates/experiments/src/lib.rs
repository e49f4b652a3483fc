//! Phases on datasets, and what they are measured by.
