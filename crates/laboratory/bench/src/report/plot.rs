//! From measured values to charts: one line per series, with what a paper prints beside it.

use super::chart::{Chart, Series, Value};
use super::metric::Unit;
use serde::Deserialize;

/// Colours of protocols and systems, told apart also by those who see red and green alike. No two that are compared with
/// one another have the same.
const COLORS: [(&str, &str); 15] = [
    ("harmony", "#00875a"),
    ("aria", "#d9480f"),
    ("ssi", "#e0a800"),
    ("graph", "#8250df"),
    ("block-stm", "#1f6feb"),
    ("serial", "#8b949e"),
    ("postgres", "var(--text)"),
    ("occ", "#d9480f"),
    ("occ+reordering", "#0c8599"),
    ("occ+early-abort", "#c2255c"),
    ("fabric++", "#1f6feb"),
    ("fabric-sharp", "#8250df"),
    ("xox", "#e0a800"),
    ("xox-without-running-again", "#c2255c"),
    ("xox+commands", "#9a6324"),
];
/// Colours of other series, in turn.
const MORE_COLORS: [&str; 9] =
    ["#8b949e", "#1f6feb", "#8250df", "#00875a", "#e0a800", "#d9480f", "#c2255c", "#0c8599", "#9a6324"];

/// The colour of a series by its name and its place among all.
pub(crate) fn color(series: &str, number: usize) -> &'static str {
    let own = COLORS.iter().find(|(name, _)| *name == series).map(|(_, color)| *color);
    own.unwrap_or(MORE_COLORS[number % MORE_COLORS.len()])
}

/// A series of values as a paper prints it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    pub(crate) series: String,
    /// In which of the plots of its metric it stands: the name of a workload; empty where there is one plot.
    #[serde(default, alias = "workload")]
    pub(crate) panel: String,
    pub(crate) metric: String,
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
}

/// A measured value on its way into a chart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plotted<'a> {
    pub(crate) series: &'a str,
    pub(crate) value: Value,
    /// The same at every position.
    pub(crate) everywhere: bool,
}

/// What a chart shows.
pub(crate) struct Plot<'a> {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) x_title: String,
    pub(crate) x_logarithmic: bool,
    pub(crate) unit: Unit,
    /// All series of the experiment, so that each has its colour in every chart.
    pub(crate) names: &'a [&'a str],
    pub(crate) values: Vec<Plotted<'a>>,
    pub(crate) published: Vec<&'a Published>,
}

impl Plot<'_> {
    /// Nothing if nothing was measured.
    pub(crate) fn chart(self) -> Option<Chart> {
        let mut series: Vec<Series> = Vec::new();
        for (number, name) in self.names.iter().enumerate() {
            let color = color(name, number);
            let here = self.values.iter().filter(|plotted| plotted.series == *name);
            let everywhere = here.clone().any(|plotted| plotted.everywhere);
            let mut values: Vec<Value> = here.map(|plotted| plotted.value).collect();
            values.sort_by(|one, other| one.x.total_cmp(&other.x));
            if !values.is_empty() {
                series.push(Series { name: name.to_string(), color, values, published: false, everywhere });
            }
            for published in self.published.iter().filter(|published| published.series == *name) {
                let pairs = published.x.iter().zip(&published.y);
                let values = pairs.map(|(x, y)| Value { x: *x, y: *y, range: None }).collect();
                let name = format!("{name}, the paper");
                series.push(Series { name, color, values, published: true, everywhere: false });
            }
        }
        let Plot { title, subtitle, x_title, x_logarithmic, unit, .. } = self;
        let measured = series.iter().any(|series| !series.published);
        measured.then_some(Chart { title, subtitle, x_title, x_logarithmic, unit, series })
    }
}
