//! Plots as SVG: lines over an axis, or bars where there are one or two positions.

use super::metric::Unit;
use std::fmt::Write;

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 30.0;
/// What a second line below the title takes.
const SUBTITLE: f64 = 18.0;
const BOTTOM: f64 = 44.0;
/// Labels below the axis, at most.
const LABELS_MAX: usize = 12;
/// Where the largest value is so many times the smallest, lines are drawn on a logarithmic axis.
const LOGARITHMIC_FROM: f64 = 30.0;

/// One line of a plot.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) color: &'static str,
    /// Position, value, and the range of it over the rounds, by position.
    pub(crate) values: Vec<Value>,
    /// From a paper: drawn with dashes.
    pub(crate) published: bool,
    /// The same at every position, such as a database without blocks.
    pub(crate) everywhere: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Value {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) range: Option<(f64, f64)>,
}

/// A plot.
pub(crate) struct Chart {
    pub(crate) title: String,
    /// What tells it from the other charts of its metric; may be empty.
    pub(crate) subtitle: String,
    pub(crate) x_title: String,
    pub(crate) x_logarithmic: bool,
    pub(crate) unit: Unit,
    pub(crate) series: Vec<Series>,
}

/// From values to places.
struct Scale {
    logarithmic: bool,
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        let place = |value: f64| if self.logarithmic { value.max(1e-12).ln() } else { value };
        let (from, to) = (place(self.from), place(self.to));
        let share = if to > from { (place(value) - from) / (to - from) } else { 0.5 };
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }
}

impl Chart {
    /// The positions that measured series have, ascending.
    fn positions(&self) -> Vec<f64> {
        let positioned = self.series.iter().filter(|series| !series.everywhere);
        let mut all: Vec<f64> =
            positioned.flat_map(|series| series.values.iter().map(|value| value.x)).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        if all.is_empty() { vec![0.0] } else { all }
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        let all = self.series.iter().flat_map(|series| &series.values);
        all.flat_map(|value| [value.y].into_iter().chain(value.range.map(|range| range.1)))
    }

    pub(crate) fn svg(&self) -> String {
        let positions = self.positions();
        let bars = positions.len() <= 2;
        let most = self.values().fold(0.0, f64::max);
        let least = self.values().fold(f64::INFINITY, f64::min);
        // Nothing that is zero has a place on a logarithmic axis.
        let wide = least > 0.0 && most / least > LOGARITHMIC_FROM;
        let logarithmic = !bars && self.unit != Unit::Share && wide;
        let ticks = if logarithmic { decades(least, most) } else { steps(least, most, self.unit) };
        let scale = Scale {
            logarithmic,
            from: ticks[0],
            to: *ticks.last().expect("an axis has ticks"),
            start: HEIGHT - BOTTOM,
            end: if self.subtitle.is_empty() { TOP } else { TOP + SUBTITLE },
        };
        let mut svg = format!(
            r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}"><text class="title" x="{LEFT}" y="16">{title}</text>"#,
            title = escaped(&self.title)
        );
        if !self.subtitle.is_empty() {
            let (y, subtitle) = (16.0 + SUBTITLE, escaped(&self.subtitle));
            let _ = write!(svg, r#"<text class="axis" x="{LEFT}" y="{y}">{subtitle}</text>"#);
        }
        self.draw_grid(&mut svg, &scale, &ticks);
        if bars {
            self.draw_bars(&mut svg, &positions, &scale);
        } else {
            self.draw_lines(&mut svg, &positions, &scale);
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        let title = escaped(&self.x_title);
        let scale = if logarithmic { " — logarithmic scale" } else { "" };
        let bottom = HEIGHT - 8.0;
        let _ = write!(
            svg,
            r#"<text class="axis" x="{middle}" y="{bottom}" text-anchor="middle">{title}{scale}</text></svg>"#
        );
        svg
    }

    fn draw_grid(&self, svg: &mut String, scale: &Scale, ticks: &[f64]) {
        let (right, text) = (WIDTH - RIGHT, LEFT - 8.0);
        for tick in ticks {
            let y = scale.at(*tick);
            let label = axis_label(*tick, self.unit);
            let _ = write!(
                svg,
                r#"<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1}" y2="{y:.1}"/><text class="axis" x="{text}" y="{base:.1}" text-anchor="end">{label}</text>"#,
                base = y + 4.0
            );
        }
    }

    fn draw_lines(&self, svg: &mut String, positions: &[f64], scale: &Scale) {
        let (first, last) = (positions[0], positions[positions.len() - 1]);
        let across = Scale {
            logarithmic: self.x_logarithmic,
            from: first,
            to: last,
            start: LEFT + 16.0,
            end: WIDTH - RIGHT - 16.0,
        };
        let base = HEIGHT - BOTTOM + 18.0;
        for position in &self.labelled(positions) {
            let _ = write!(
                svg,
                r#"<text class="axis" x="{:.1}" y="{base}" text-anchor="middle">{}</text>"#,
                across.at(*position),
                trimmed(*position)
            );
        }
        // What the paper prints lies behind, so that a measurement that agrees with it does not vanish.
        let behind = self.series.iter().filter(|series| series.published);
        for series in behind.chain(self.series.iter().filter(|series| !series.published)) {
            let color = series.color;
            let (class, radius) = if series.published { ("line published", 6.0) } else { ("line", 3.2) };
            let place = |value: &Value| format!("{:.1},{:.1}", across.at(value.x), scale.at(value.y));
            let points: Vec<String> = match series.values.as_slice() {
                [only] if series.everywhere => [first, last].map(|x| place(&Value { x, ..*only })).to_vec(),
                values => values.iter().map(place).collect(),
            };
            let _ =
                write!(svg, r#"<polyline class="{class}" stroke="{color}" points="{}"/>"#, points.join(" "));
            for value in series.values.iter().filter(|_| !series.everywhere) {
                let (x, y) = (across.at(value.x), scale.at(value.y));
                if let Some((least, most)) = value.range {
                    draw_range(svg, x, scale.at(least), scale.at(most), color);
                }
                let fill = if series.published { "var(--card)" } else { color };
                let tip = self.tip(series, value);
                let _ = write!(
                    svg,
                    r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{fill}" stroke="{color}"><title>{tip}</title></circle>"#
                );
            }
        }
    }

    /// The positions that have a label: each, or round ones where there are too many.
    fn labelled(&self, positions: &[f64]) -> Vec<f64> {
        if positions.len() <= LABELS_MAX || self.x_logarithmic {
            return positions.to_vec();
        }
        let (first, last) = (positions[0], positions[positions.len() - 1]);
        let least = (last - first) / LABELS_MAX as f64;
        let decade = 10f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * decade).into_iter().find(|step| *step >= least);
        let step = step.unwrap_or(least);
        let numbers = (first / step).ceil() as i64..=(last / step).floor() as i64;
        numbers.map(|number| number as f64 * step).collect()
    }

    fn draw_bars(&self, svg: &mut String, positions: &[f64], scale: &Scale) {
        let group = (WIDTH - LEFT - RIGHT) / positions.len() as f64;
        let (base, zero) = (HEIGHT - BOTTOM, scale.at(0.0));
        for (number, position) in positions.iter().enumerate() {
            let start = LEFT + group * number as f64;
            let here: Vec<(&Series, Value)> = self
                .series
                .iter()
                .filter_map(|series| {
                    let there = |value: &&Value| series.everywhere || value.x == *position;
                    Some((series, *series.values.iter().find(there)?))
                })
                .collect();
            let _ = write!(
                svg,
                r#"<text class="axis" x="{:.1}" y="{}" text-anchor="middle">{position}</text>"#,
                start + group / 2.0,
                base + 18.0
            );
            let slot = (group - 24.0) / here.len().max(1) as f64;
            let width = (slot - 5.0).clamp(3.0, 44.0);
            let begin = start + (group - slot * here.len() as f64) / 2.0;
            for (place, (series, value)) in here.iter().enumerate() {
                let (x, y) = (begin + slot * place as f64 + (slot - width) / 2.0, scale.at(value.y));
                let (y, foot) = (y.min(zero), y.max(zero));
                let class = if series.published { "bar published" } else { "bar" };
                let (color, tip) = (series.color, self.tip(series, value));
                let _ = write!(
                    svg,
                    r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{:.1}" rx="2" fill="{color}" stroke="{color}"><title>{tip}</title></rect>"#,
                    (foot - y).max(0.8)
                );
                let top = value.range.map_or(y, |(_, most)| scale.at(most));
                if let Some((least, most)) = value.range {
                    draw_range(svg, x + width / 2.0, scale.at(least), scale.at(most), "var(--text)");
                }
                let _ = write!(
                    svg,
                    r#"<text class="value" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                    x + width / 2.0,
                    top - 5.0,
                    self.unit.show(value.y).trim_end_matches(" ms").trim_end_matches(" %")
                );
            }
        }
    }

    fn tip(&self, series: &Series, value: &Value) -> String {
        let name = escaped(&series.name);
        let shown = self.unit.show(value.y);
        let range = value.range.map_or_else(String::new, |(least, most)| {
            format!(" ({} – {})", self.unit.show(least), self.unit.show(most))
        });
        if series.everywhere {
            format!("{name}: {shown}{range}")
        } else {
            format!("{name} at {}: {shown}{range}", value.x)
        }
    }
}

fn draw_range(svg: &mut String, x: f64, least: f64, most: f64, color: &str) {
    let _ = write!(
        svg,
        r#"<line class="range" x1="{x:.1}" x2="{x:.1}" y1="{least:.1}" y2="{most:.1}" stroke="{color}"/>"#
    );
}

fn axis_label(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Share => format!("{} %", trimmed(100.0 * value)),
        Unit::Milliseconds => format!("{} ms", trimmed(value)),
        Unit::Rate if value >= 1e6 => format!("{} M", trimmed(value / 1e6)),
        Unit::Rate if value >= 1e3 => format!("{} k", trimmed(value / 1e3)),
        Unit::Rate | Unit::Count | Unit::Whole => trimmed(value),
    }
}

/// Without the noise of binary fractions.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// In four to six round steps from 0, or below the least value where that is negative, to beyond the largest one; no
/// further than a whole, which a share cannot pass.
fn steps(least: f64, most: f64, unit: Unit) -> Vec<f64> {
    let whole = unit == Unit::Share && most <= 1.0;
    let most = match most > 0.0 {
        true if whole => (most * 1.08).min(1.0),
        true => most * 1.08,
        false if unit == Unit::Share => 0.01,
        false => 1.0,
    };
    let least = if least.is_finite() { least.min(0.0) } else { 0.0 };
    let magnitude = 10_f64.powf(((most - least) / 4.0).log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * magnitude);
    let step = step.into_iter().find(|step| (most - least) / step <= 5.0).unwrap_or(10.0 * magnitude);
    // A step is no binary fraction: what is a hair above a tick is on it.
    let ticks = (least / step).floor() as i64..=(most / step - 1e-9).ceil() as i64;
    ticks.map(|number| number as f64 * step).collect()
}

/// Powers of ten around all values.
fn decades(least: f64, most: f64) -> Vec<f64> {
    let (from, to) = (least.log10().floor() as i32, most.log10().ceil() as i32);
    (from..=to.max(from + 1)).map(|exponent| 10_f64.powi(exponent)).collect()
}

/// For text and attributes of HTML and SVG.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_ticks_that_hold_every_value() {
        for most in [0.0, 0.011, 0.743, 7.0, 133_606.0] {
            let ticks = steps(0.0, most, Unit::Count);
            assert!((3..=7).contains(&ticks.len()) && ticks[0] == 0.0, "{ticks:?}");
            assert!(*ticks.last().expect("ticks") >= most, "{most}: {ticks:?}");
        }
        assert_eq!(steps(0.0, 0.997, Unit::Share).last(), Some(&1.0));
        assert_eq!(steps(-0.07, 0.2, Unit::Share), [-0.1, 0.0, 0.1, 0.2, 0.30000000000000004]);
        assert_eq!(decades(235.0, 120_000.0), [100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0]);
        assert_eq!(axis_label(0.025, Unit::Share), "2.5 %");
    }

    #[test]
    fn a_plot_has_every_series_and_escapes_names() {
        let value = |x, y| Value { x, y, range: Some((y / 2.0, y * 2.0)) };
        let chart = |positions: &[f64]| Chart {
            title: "a < b".to_string(),
            subtitle: "c & d".to_string(),
            x_title: "skew".to_string(),
            x_logarithmic: false,
            unit: Unit::Rate,
            series: ["one", "two & three"]
                .map(|name| Series {
                    name: name.to_string(),
                    color: "#123456",
                    values: positions.iter().map(|x| value(*x, 10.0 + 1_000.0 * x)).collect(),
                    published: name == "one",
                    everywhere: false,
                })
                .into(),
        };
        for positions in [&[0.0, 0.5, 1.0][..], &[0.0, 1.5], &[0.6]] {
            let svg = chart(positions).svg();
            assert!(
                svg.contains("one at")
                    && svg.contains("two &amp; three at")
                    && svg.contains("a &lt; b")
                    && svg.contains("c &amp; d"),
                "{svg}"
            );
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn many_positions_have_few_labels() {
        let chart = Chart {
            title: String::new(),
            subtitle: String::new(),
            x_title: String::new(),
            x_logarithmic: false,
            unit: Unit::Count,
            series: Vec::new(),
        };
        let few: Vec<f64> = (0..12).map(f64::from).collect();
        assert_eq!(chart.labelled(&few), few);
        let many: Vec<f64> = (0..361).map(|number| f64::from(number) / 6.0 + 0.1).collect();
        let fives: Vec<f64> = (1..=12).map(|number| f64::from(number) * 5.0).collect();
        assert_eq!(chart.labelled(&many), fives);
        let short: Vec<f64> = (0..30).map(|number| f64::from(number) / 100.0).collect();
        assert!((6..=LABELS_MAX).contains(&chart.labelled(&short).len()), "{:?}", chart.labelled(&short));
    }
}
