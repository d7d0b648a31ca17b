//! Experiments and their measurements
