use super::table::grouped;

/// A figure of a measurement `M`, by the name that experiments, CSV and plots use.
pub(crate) struct Metric<M> {
    pub(crate) name: &'static str,
    /// For people.
    pub(crate) title: &'static str,
    pub(crate) unit: Unit,
    /// `None` where it was not measured.
    pub(crate) of: fn(&M) -> Option<f64>,
}

impl<M> Metric<M> {
    pub(crate) const fn new(
        name: &'static str,
        title: &'static str,
        unit: Unit,
        of: fn(&M) -> Option<f64>,
    ) -> Metric<M> {
        Metric { name, title, unit, of }
    }

    /// For people; a dash where it was not measured.
    pub(crate) fn show(&self, measurement: &M) -> String {
        (self.of)(measurement).map_or_else(|| "–".to_string(), |value| self.unit.show(value))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Transactions per second.
    Rate,
    Milliseconds,
    /// A share from 0 to 1, shown in percent.
    Share,
    /// Any number.
    Count,
    /// A whole number.
    Whole,
}

impl Unit {
    /// For people; the share in percent.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Unit::Rate if value >= 1_000_000.0 => format!("{:.2} M", value / 1e6),
            Unit::Rate if value >= 10_000.0 => format!("{:.0} k", value / 1e3),
            Unit::Rate if value >= 1_000.0 => format!("{:.1} k", value / 1e3),
            Unit::Rate => format!("{value:.0}"),
            Unit::Milliseconds if value >= 10.0 => format!("{value:.0} ms"),
            Unit::Milliseconds => format!("{value:.2} ms"),
            Unit::Share => format!("{:.1} %", 100.0 * value),
            Unit::Count => format!("{value:.2}"),
            Unit::Whole => grouped(value.round() as u64),
        }
    }
}

/// Transactions per second over rounds: median and range.
pub(crate) fn throughput(median: Option<f64>, range: Option<(f64, f64)>) -> String {
    let whole = |value: f64| grouped(value.round() as u64);
    match (median, range) {
        (Some(median), Some((least, most))) => {
            format!("{} ({}–{})", whole(median), whole(least), whole(most))
        }
        _ => "–".to_string(),
    }
}

/// A number in CSV: nothing where nothing was measured.
pub(crate) fn cell(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
