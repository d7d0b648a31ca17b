use super::Context;
use crate::laboratory::Measurement;
use crate::laboratory::measurement::METRICS;

/// One line per point, every metric a column, shares from 0 to 1, nothing where nothing was measured.
pub(in super::super) fn csv(measurements: &[Measurement]) -> String {
    let names = METRICS.map(|metric| metric.name).join(",");
    let mut text = format!(
        "experiments,protocol,variant,workload,rows,skew,block_size,threads,consistency,on_conflict,granularity,\
         inter_block,reordering,coalescing,{names},committed_tps_min,committed_tps_max\n"
    );
    for measurement in measurements {
        let point = &measurement.point;
        let options = &point.options;
        let mut cells = vec![
            measurement.experiments.join(" "),
            point.protocol.clone(),
            quoted(&point.variant),
            point.workload.clone(),
            point.rows.to_string(),
            point.skew.to_string(),
            point.block_size.to_string(),
            point.threads.to_string(),
            format!("{:?}", options.consistency).to_lowercase(),
            format!("{:?}", options.on_conflict).to_lowercase(),
            format!("{:?}", options.granularity).to_lowercase(),
            options.inter_block.to_string(),
            options.reordering.to_string(),
            options.coalescing.to_string(),
        ];
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        cells.extend(METRICS.iter().map(|metric| number((metric.of)(measurement))));
        cells.push(number(measurement.committed_tps_range.map(|range| range.0)));
        cells.push(number(measurement.committed_tps_range.map(|range| range.1)));
        text += &cells.join(",");
        text.push('\n');
    }
    text
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

/// A table for other documents.
pub(in super::super) fn markdown(context: &Context, measurements: &[Measurement]) -> String {
    let machine: Vec<String> =
        context.machine.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let postgres = context.postgres.as_ref().map_or(String::new(), |own| format!(" PostgreSQL: {own}."));
    let mut text = format!(
        "`entente bench {} --seed {}`, {} rounds of {} s at every point, interleaved; medians (range). {}.{postgres}\n\n{}.\n\n",
        context.command,
        context.seed,
        context.rounds,
        context.seconds,
        context.pace,
        machine.join("; ")
    );
    text += "| protocol | workload | skew | block | threads | committed tps | p50 | p99 | conflict aborts | \
             false aborts | dangerous structures | ran again | executions | cores |\n";
    text += &format!("|{}\n", " --- |".repeat(14));
    for measurement in measurements {
        let point = &measurement.point;
        let mut cells = vec![
            point.protocol.clone(),
            point.workload.clone(),
            point.skew.to_string(),
            point.block_size.to_string(),
            point.threads.to_string(),
            throughput(measurement),
        ];
        if !point.variant.is_empty() {
            cells[0] = format!("{} ({})", point.protocol, point.variant);
        }
        let shown =
            METRICS.iter().filter(|metric| !["committed_tps", "business_abort_rate"].contains(&metric.name));
        cells.extend(shown.map(|metric| {
            (metric.of)(measurement).map_or_else(|| "–".to_string(), |value| metric.unit.show(value))
        }));
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}

/// Median and range.
pub(super) fn throughput(measurement: &Measurement) -> String {
    match (measurement.record.committed_tps, measurement.committed_tps_range) {
        (Some(median), Some((least, most))) => {
            format!("{} ({}–{})", whole(median), whole(least), whole(most))
        }
        _ => "–".to_string(),
    }
}

fn whole(value: f64) -> String {
    grouped(value.round() as u64)
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn thousands_are_grouped() {
        assert_eq!(super::grouped(0), "0");
        assert_eq!(super::grouped(999), "999");
        assert_eq!(super::grouped(1_000), "1,000");
        assert_eq!(super::grouped(1_234_567), "1,234,567");
        assert_eq!(super::quoted("a, b"), "\"a, b\"");
    }
}
