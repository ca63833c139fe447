//! The dashboard of Grafana, in JSON.

use serde_json::{Value, json};

use crate::alarm::{Rule, Side, rule};
use crate::dashboards::panel::{Panel, PanelRow, ROWS};

/// Columns of Grafana's grid.
const COLUMNS: usize = 24;
/// Lines of the grid that a panel takes.
const PANEL_LINES: usize = 8;

/// The dashboard, as it can be imported. The same table gives the same text.
#[must_use]
pub fn dashboard() -> String {
    let mut panels = Vec::new();
    let mut line = 0;
    for row in ROWS {
        panels.push(heading(row, panels.len() + 1, line));
        line += 1;
        let width = COLUMNS / row.panels.len().max(1);
        for (place, panel) in row.panels.iter().enumerate() {
            let grid = json!({ "x": place * width, "y": line, "w": width, "h": PANEL_LINES });
            panels.push(drawn(panel, panels.len() + 1, grid));
        }
        line += PANEL_LINES;
    }
    let document = json!({
        "uid": "ebbtide-watch",
        "title": "Ebbtide: MySQL and its storage",
        "tags": ["ebbtide", "mysql", "ebs"],
        "schemaVersion": 39,
        "editable": true,
        // Cursors of all panels are in step.
        "graphTooltip": 1,
        "refresh": "10s",
        "time": { "from": "now-6h", "to": "now" },
        "templating": { "list": variables() },
        "panels": panels,
    });
    format!("{document:#}\n")
}

/// What is chosen above the panels.
fn variables() -> Value {
    let chosen = |name: &str, expression: &str| {
        json!({
            "name": name,
            "type": "query",
            "datasource": source(),
            "query": { "query": expression, "refId": name },
            "refresh": 2,
            "multi": true,
            "includeAll": true,
            "allValue": ".*",
            "current": { "text": "All", "value": "$__all" },
        })
    };
    json!([
        { "name": "datasource", "type": "datasource", "query": "prometheus" },
        chosen("instance", "label_values(mysql_up, instance)"),
        chosen("device", "label_values(node_disk_reads_completed_total, device)"),
        chosen("volume", "label_values(ebbtide_volume_info, volume)"),
    ])
}

fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

fn heading(row: &PanelRow, id: usize, line: usize) -> Value {
    json!({
        "id": id,
        "type": "row",
        "title": row.title,
        "collapsed": false,
        "gridPos": { "x": 0, "y": line, "w": COLUMNS, "h": 1 },
        "panels": [],
    })
}

fn drawn(panel: &Panel, id: usize, grid: Value) -> Value {
    let of_rules = panel.rules.iter().map(|id| {
        let row = rule(*id);
        let labels: Vec<String> = row.query.labels.iter().map(|label| format!("{{{{{label}}}}}")).collect();
        (format!("{}: {}", row.name, labels.join("")), row.query.value)
    });
    let own = panel.queries.iter().map(|query| (query.legend.to_owned(), query.expression));
    let targets: Vec<Value> = of_rules
        .chain(own)
        .enumerate()
        .map(|(place, (legend, expression))| {
            json!({ "refId": format!("Q{place}"), "datasource": source(), "expr": expression, "legendFormat": legend })
        })
        .collect();
    let scale =
        if panel.is_logarithmic { json!({ "type": "log", "log": 10 }) } else { json!({ "type": "linear" }) };
    let threshold = panel.rules.first().map(|id| rule(*id));
    let line_style = if threshold.is_some() { "line" } else { "off" };
    json!({
        "id": id,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.help,
        "datasource": source(),
        "gridPos": grid,
        "targets": targets,
        "options": { "legend": { "displayMode": "list", "placement": "bottom" }, "tooltip": { "mode": "multi" } },
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit.name(),
                "custom": {
                    "scaleDistribution": scale,
                    "thresholdsStyle": { "mode": line_style },
                    // A gap stays one.
                    "spanNulls": false,
                },
                "thresholds": { "mode": "absolute", "steps": threshold.map_or_else(|| json!([]), steps) },
            },
            "overrides": [],
        },
    })
}

/// The colours on both sides of a rule's threshold.
fn steps(rule: &Rule) -> Value {
    let (below, above) = match rule.threshold.side {
        Side::Above => ("green", "red"),
        Side::Below => ("red", "green"),
    };
    json!([{ "color": below, "value": null }, { "color": above, "value": rule.threshold.raise }])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn panels_have_numbers_of_their_own_and_do_not_overlap() {
        let document: Value = serde_json::from_str(&dashboard()).unwrap();
        let panels = document["panels"].as_array().unwrap();
        let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
        assert_eq!(ids.len(), panels.len());
        let mut taken = BTreeSet::new();
        for panel in panels {
            let side = |name: &str| panel["gridPos"][name].as_u64().unwrap();
            assert!(side("x") + side("w") <= 24, "{panel}");
            for x in side("x")..side("x") + side("w") {
                for y in side("y")..side("y") + side("h") {
                    assert!(taken.insert((x, y)), "{x},{y} is taken twice: {panel}");
                }
            }
        }
    }

    #[test]
    fn the_first_row_is_the_four_graphs_and_the_latency_is_logarithmic() {
        let document: Value = serde_json::from_str(&dashboard()).unwrap();
        let titles: Vec<&str> =
            (1..5_usize).map(|place| document["panels"][place]["title"].as_str().unwrap()).collect();
        assert_eq!(titles, ["IOPS", "Latency", "Time in the logs", "Main thread"]);
        let scale = &document["panels"][2]["fieldConfig"]["defaults"]["custom"]["scaleDistribution"];
        assert_eq!(scale["type"], "log");
    }

    #[test]
    fn a_panel_has_the_line_of_its_rule_on_the_right_side() {
        let document: Value = serde_json::from_str(&dashboard()).unwrap();
        let panels = document["panels"].as_array().unwrap();
        let panel = panels.iter().find(|panel| panel["title"] == "Credits end in").unwrap();
        let steps = &panel["fieldConfig"]["defaults"]["thresholds"]["steps"];
        assert_eq!((&steps[0]["color"], &steps[1]["value"]), (&json!("red"), &json!(3600.0)));
        assert_eq!(panel["targets"].as_array().unwrap().len(), 3);
    }
}
