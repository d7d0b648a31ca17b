/// The middle one, or the mean of the two in the middle; nothing of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get((sorted.len() - 1) / 2)?;
    Some((lower + upper) / 2.0)
}

/// The least and the most.
pub(crate) fn range(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    Some((least, values.iter().copied().max_by(f64::total_cmp)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_have_a_middle_and_ends() {
        assert_eq!((median(&[]), range(&[])), (None, None));
        assert_eq!((median(&[3.0, 1.0, 2.0]), range(&[3.0, 1.0, 2.0])), (Some(2.0), Some((1.0, 3.0))));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
    }
}
