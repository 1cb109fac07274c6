// SPDX-License-Identifier: BSD-3-Clause
//! Finds lines of a panel that run on top of each other, so that they can be drawn in turns.

use crate::panel::{Look, Panel};

/// Lines are equal if they differ by no more than this part of the panel's height, about a pixel.
const NEAR: f64 = 0.005;
const MOST_NAMES: usize = 4;

/// The panel with equal lines marked: each is drawn with gaps in which those below it show.
pub(crate) fn told_apart(mut panel: Panel) -> Panel {
    let heights = heights(&panel);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, height) in &heights {
        let of = |at: usize| {
            &heights
                .iter()
                .find(|(known, _)| *known == at)
                .expect("it is drawn")
                .1
        };
        match groups.iter_mut().find(|group| equal(of(group[0]), height)) {
            Some(group) => group.push(*at),
            None => groups.push(vec![*at]),
        }
    }
    groups.retain(|group| group.len() > 1);
    if groups.is_empty() {
        return panel;
    }
    let mut named = Vec::new();
    for group in &groups {
        for (place, at) in group.iter().enumerate() {
            panel.lines[*at].turn = Some((place, group.len()));
        }
        let names: Vec<&str> = group
            .iter()
            .map(|at| panel.lines[*at].label.as_str())
            .collect();
        named.push(listed(&names));
    }
    let note = format!(
        "{} Equal lines are drawn in turns: {}.",
        panel.note,
        named.join("; ")
    );
    panel.note = note.trim().to_owned();
    panel
}

fn listed(names: &[&str]) -> String {
    if names.len() > MOST_NAMES {
        let shown = names[..MOST_NAMES].join(", ");
        return format!("{shown} and {} more", names.len() - MOST_NAMES);
    }
    let (last, others) = names.split_last().expect("a group has lines");
    format!("{} and {last}", others.join(", "))
}

/// Where each line is between the bottom of the panel, 0, and its top, 1, with its number; bounds and areas are left out.
fn heights(panel: &Panel) -> Vec<(usize, Vec<f64>)> {
    let drawn = || {
        panel
            .lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.look == Look::Line)
    };
    let scale = |value: f64| if panel.log_y { libm::log(value) } else { value };
    let values = drawn().flat_map(|(_, line)| line.y.iter().copied());
    let shown = values.filter(|value| value.is_finite() && (!panel.log_y || *value > 0.0));
    let ends = shown.fold(None, |ends: Option<(f64, f64)>, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    });
    let Some((low, high)) = ends else {
        return Vec::new();
    };
    let (mut low, high) = (scale(low), scale(high));
    if !panel.log_y && panel.from_zero {
        low = low.min(0.0);
    }
    let range = (high - low).max(1e-12);
    let height = |y: &[f64]| {
        y.iter()
            .map(|value| (scale(*value) - low) / range)
            .collect()
    };
    drawn().map(|(at, line)| (at, height(&line.y))).collect()
}

fn equal(one: &[f64], other: &[f64]) -> bool {
    one.len() == other.len()
        && one.iter().any(|value| value.is_finite())
        && one
            .iter()
            .zip(other)
            .all(|(a, b)| match (a.is_finite(), b.is_finite()) {
                (true, true) => (a - b).abs() <= NEAR,
                (known, other_known) => known == other_known,
            })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::Line;

    fn turns(values: &[f64], log_y: bool) -> Vec<Option<(usize, usize)>> {
        let x: Vec<f64> = (0..5).map(f64::from).collect();
        let mut panel = Panel::over_time("p", "t", x, "y".to_owned());
        panel.log_y = log_y;
        let line = |value: &f64| Line::new(value.to_string(), vec![*value; 5], None, Look::Line);
        panel.lines = values.iter().map(line).collect();
        told_apart(panel)
            .lines
            .iter()
            .map(|line| line.turn)
            .collect()
    }

    #[test]
    fn lines_a_pixel_apart_are_equal_and_others_are_not() {
        assert_eq!(
            turns(&[100.0, 99.6, 98.0], false),
            [Some((0, 2)), Some((1, 2)), None]
        );
        assert_eq!(
            turns(&[1.0, 100.0, 1.01], true),
            [Some((0, 2)), None, Some((1, 2))]
        );
        assert_eq!(
            turns(&[0.0; 3], false),
            [Some((0, 3)), Some((1, 3)), Some((2, 3))]
        );
    }
}
