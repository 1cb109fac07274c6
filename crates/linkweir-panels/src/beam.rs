// SPDX-License-Identifier: BSD-3-Clause
//! The panels of a beam: the channels of its terminals, and what each terminal got.

use crate::collected::Collected;
use crate::outline::Outline;
use crate::panel::{held, largest, prefixed, scaled, to_end, Line, Look, Panel};

/// Three panels; none without a beam.
pub(crate) fn panels(all: &Collected) -> Vec<Panel> {
    let Some(found) = all.outline("channel") else {
        return Vec::new();
    };
    let carrier = all
        .outline("carrier")
        .map(|carrier| carrier_panel(all, carrier));
    let mut panels = vec![channel(all, found)];
    panels.extend(carrier);
    panels.extend(terminals(all));
    panels
}

fn channel(all: &Collected, found: &Outline) -> Panel {
    let rate_of = |class| found.get(class, "rate_bps");
    let rates = all.drawn(found).map(|(class, _)| rate_of(class));
    let (scale, unit) = prefixed(largest(rates), "bit/s");
    let times = all
        .drawn(found)
        .next()
        .map_or(&[][..], |(class, _)| found.times(class));
    let x = to_end(times, all.run.simulated_s);
    let title = "Rate that its channel gives each terminal";
    let mut panel = Panel::over_time("channel", title, x, format!("rate ({unit})"));
    let line = |(class, name): (usize, &str)| {
        Line::new(
            name,
            held(scaled(rate_of(class), scale)),
            Some(class),
            Look::Line,
        )
    };
    panel.lines = all.drawn(found).map(line).collect();
    panel
}

fn carrier_panel(all: &Collected, carrier: &Outline) -> Panel {
    let x = to_end(carrier.times(0), all.run.simulated_s);
    let title = "Time the carrier sends, and terminals in outage";
    let mut panel = Panel::over_time("carrier", title, x, "part (%)".to_owned());
    for (column, label) in [
        ("occupancy", "carrier sends"),
        ("outage", "terminals in outage"),
    ] {
        let parts = held(scaled(carrier.get(0, column), 100.0));
        panel.lines.push(Line::new(label, parts, None, Look::Line));
    }
    panel.y_range = Some((0.0, 100.0));
    panel
}

/// The rate of each terminal over that of its channel, with the line on which all would get the same time.
fn terminals(all: &Collected) -> Option<Panel> {
    let given_bps = all.whole("terminals", "channel_rate_bps")?;
    let airtime = all.whole("terminals", "airtime")?;
    let got_bps = all.whole("classes", "rate_bps")?;
    let (scale, unit) = prefixed(largest([given_bps, got_bps]), "bit/s");
    let mut order: Vec<usize> = (0..given_bps.len().min(got_bps.len())).collect();
    order.sort_by(|a, b| given_bps[*a].total_cmp(&given_bps[*b]));
    let mut x = vec![0.0];
    x.extend(order.iter().map(|at| given_bps[*at] * scale));
    let mut got = vec![f64::NAN];
    got.extend(order.iter().map(|at| got_bps[*at] * scale));
    let known: Vec<f64> = airtime
        .iter()
        .copied()
        .filter(|part| !part.is_nan())
        .collect();
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let equal = scaled(&x, mean);
    let title = "What each terminal got of the rate its channel gave";
    let mut panel = Panel::over_time("terminals", title, x, format!("rate ({unit})"));
    panel.x_label = format!("rate its channel gives, alone ({unit})");
    panel.over_time = false;
    panel.steps = false;
    panel.lines = vec![
        Line::new("rate of a terminal", got, None, Look::Points),
        Line::new("equal time", equal, None, Look::Guide),
    ];
    Some(panel)
}
