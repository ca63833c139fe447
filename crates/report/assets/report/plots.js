// Charts over a common axis, and the bar that chooses what they draw.

const chosen = {
  shown: new Set(),
  // "typical", "every", or the number of a layer.
  layer: "typical",
};
const drawn = [];

// Steps of the time axis that people count in.
const TIME_STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
  3600, 7200, 10800, 14400, 21600, 43200, 86400, 172800, 604800, 2592000,
];
const PERCENTILES = [[1, "0%"], [2, "50%"], [4, "75%"], [10, "90%"], [20, "95%"], [100, "99%"], [1000, "99.9%"],
  [1e4, "99.99%"], [1e5, "99.999%"]];

const BYTE_STEPS = [1, 1024, 1024 ** 2, 1024 ** 3, 1024 ** 4].flatMap((unit) =>
  [1, 2, 5, 10, 20, 50, 100, 256, 512].map((step) => step * unit));

// The percentiles that people name, as many as have room; the rarer ones first.
function percentileSplits(plot, _, low, high) {
  const room = (44 / (plot.bbox.width / devicePixelRatio)) * Math.log10(high / low);
  const kept = [];
  const rank = [100, 2, 1000, 1e4, 10, 1e5, 20, 1, 4];
  for (const at of rank.filter((at) => at >= low && at <= high)) {
    if (kept.every((other) => Math.abs(Math.log10(at / other)) >= room)) kept.push(at);
  }
  return kept.sort((a, b) => a - b);
}

const AXES = {
  time: {
    scale: { time: false },
    axis: { space: 70, incrs: TIME_STEPS, values: (_, ticks) => ticks.map(duration) },
    value: duration,
  },
  percentile: {
    scale: { time: false, distr: 3, range: (_, low, high) => [low, high] },
    axis: {
      space: 46,
      splits: percentileSplits,
      filter: (plot, splits) => splits,
      values: (plot, splits) => splits.map((at) => (PERCENTILES.find(([known]) => known === at) || [0, ""])[1]),
    },
    value: (above) => "p" + +(100 - 100 / above).toPrecision(above >= 1e3 ? 6 : 4),
  },
  count: {
    // Half a step of room on either side, for the marks and bars of the first and the last point.
    scale: { time: false, distr: 3, log: 2, range: (_, low, high) => [low / 1.3, high * 1.3] },
    axis: {
      splits: (plot) => withRoom(plot, plot.data[0]),
      filter: (plot, splits) => splits,
      values: (_, splits) => splits.map((at) => short(at)),
    },
    value: short,
  },
};

// Points of a log axis that have room for their names.
function withRoom(plot, points) {
  const width = plot.bbox.width / devicePixelRatio;
  const span = Math.log2(points[points.length - 1] / points[0]) || 1;
  const kept = [];
  for (const at of points) {
    const last = kept[kept.length - 1];
    if (last === undefined || (Math.log2(at / last) / span) * width >= 34) kept.push(at);
  }
  return kept;
}

function groupOf(series) {
  return series.group === null ? null : report.groups[series.group];
}

function styleOf(series) {
  const group = groupOf(series);
  return group === null ? series.color : group.style;
}

function dashOf(series) {
  if (series.line === "limit") return [1.5, 3];
  if (series.line === "dashed") return [6, 4];
  const cycle = Math.floor(styleOf(series) / COLORS);
  return cycle === 0 ? undefined : cycle === 1 ? [10, 3] : [3, 3];
}

// The lines to draw now; the ones that only accompany come first, so that they lie below.
function visible(chart) {
  const lines = [];
  for (const series of chart.series) {
    if (series.group !== null && !chosen.shown.has(series.group)) continue;
    const layer = series.layer;
    const leads = layer === null || (typeof chosen.layer === "number" ? layer.number === chosen.layer : layer.typical);
    if (leads) lines.push({ series, faint: false });
    else if (chosen.layer === "every") lines.unshift({ series, faint: true });
  }
  return lines;
}

const LABEL_LINE = 15;

// Light enough for lines above it, on a light and on a dark page.
const SHADE = "rgba(214, 69, 65, 0.18)";

// The marks of the groups that are shown, each on the first line where its name has room.
function placeMarks(plots, width) {
  const first = plots.x[0];
  const span = plots.x[plots.x.length - 1] - first || 1;
  const ends = [];
  const seen = new Set();
  const placed = [];
  for (const mark of [...plots.marks].sort((a, b) => a.x - b.x)) {
    const key = mark.x + mark.label;
    if (seen.has(key) || (mark.group !== null && !chosen.shown.has(mark.group))) continue;
    seen.add(key);
    const length = mark.label.length * 6.4 + 16;
    const at = ((mark.x - first) / span) * (width - 80);
    const start = at + length > width - 80 ? at - length : at;
    let line = ends.findIndex((end) => end <= start);
    if (line < 0) line = ends.length < 4 ? ends.length : ends.length - 1;
    ends[line] = Math.max(ends[line] || 0, start + length);
    placed.push({ mark, line });
  }
  return { placed, lines: ends.length };
}

// Vertical lines at the moments that change the picture; names above the plot where it is wide.
function markPlugin(marks, named) {
  return {
    hooks: {
      draw: (plot) => {
        const { ctx, bbox } = plot;
        const ratio = devicePixelRatio;
        ctx.save();
        ctx.font = 12 * ratio + "px " + color("font");
        for (const { mark, line } of marks.placed) {
          const x = plot.valToPos(mark.x, "x", true);
          if (x < bbox.left - 1 || x > bbox.left + bbox.width + 1) continue;
          const above = named ? (marks.lines - 1 - line) * LABEL_LINE : 0;
          ctx.strokeStyle = ctx.fillStyle = color("mark");
          ctx.lineWidth = ratio;
          ctx.globalAlpha = named ? 1 : 0.5;
          ctx.setLineDash([4 * ratio, 4 * ratio]);
          ctx.beginPath();
          ctx.moveTo(x, bbox.top - above * ratio);
          ctx.lineTo(x, bbox.top + bbox.height);
          ctx.stroke();
          if (!named) continue;
          const overflows = x + ctx.measureText(mark.label).width > bbox.left + bbox.width;
          ctx.textAlign = overflows ? "right" : "left";
          ctx.textBaseline = "bottom";
          ctx.fillText(mark.label, x + (overflows ? -4 : 4) * ratio, bbox.top - (above + 2) * ratio);
        }
        ctx.restore();
      },
    },
  };
}

// A value, or the end of the chart that it is beyond.
function within(plot, value) {
  const { min, max } = plot.scales.y;
  return Math.min(Math.max(value, min), max);
}

// Whether an interval goes on beyond the chart.
function isCut(plot, lines) {
  const ends = ({ series, faint }) => (faint ? [] : (series.intervals || []).flatMap((interval) => interval || []));
  return lines.flatMap(ends).some((value) => within(plot, value) !== value);
}

// Intervals as bars through their values, in the colour of the line; `cut` is shown where one goes on beyond the chart.
function intervalPlugin(lines, cut) {
  return {
    hooks: {
      draw: (plot) => {
        cut.hidden = !isCut(plot, lines);
        const { ctx } = plot;
        const ratio = devicePixelRatio;
        ctx.save();
        ctx.beginPath();
        ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
        ctx.clip();
        ctx.setLineDash([]);
        ctx.lineWidth = 1.5 * ratio;
        for (const { series, faint } of lines) {
          if (faint || !series.intervals) continue;
          ctx.strokeStyle = color(seriesColor(styleOf(series)));
          ctx.globalAlpha = 0.6;
          series.intervals.forEach((interval, index) => {
            if (interval === null) return;
            const x = plot.valToPos(plot.data[0][index], "x", true);
            const [low, high] = interval.map((value) => plot.valToPos(within(plot, value), "y", true));
            ctx.beginPath();
            ctx.moveTo(x, low);
            ctx.lineTo(x, high);
            // An end that is in the chart is a bar, one beyond it the head of an arrow.
            for (const [end, value, inwards] of [[low, interval[0], -1], [high, interval[1], 1]]) {
              const back = within(plot, value) === value ? 0 : inwards * 5 * ratio;
              ctx.moveTo(x - 3 * ratio, end + back);
              ctx.lineTo(x, end);
              if (back === 0) ctx.moveTo(x, end);
              ctx.lineTo(x + 3 * ratio, end + back);
            }
            ctx.stroke();
          });
        }
        ctx.restore();
      },
    },
  };
}

// A range that has the intervals in it too, as far as they do not press the values together.
function reach(lines, low, high) {
  const ends = lines.flatMap(({ series }) => (series.intervals || []).flatMap((interval) => interval || []));
  return [Math.max(Math.min(low, ...ends), low / 1.5), Math.min(Math.max(high, ...ends), high * 1.5)];
}

function ratioRange(lines, low, high) {
  const [from, to] = reach(lines, Math.min(low, 1), Math.max(high, 1));
  const room = (to - from || 1) * 0.08;
  return [Math.max(from - room, 0), to + room];
}

function yScale(chart, lines) {
  if (chart.scale === "ratio") return { range: (_, low, high) => ratioRange(lines, low, high) };
  if (chart.scale === "log") {
    return { distr: 3, range: (_, low, high) => (low > 0 ? logRange(low, high) : [1, 10]) };
  }
  if (chart.scale === "percent") return { range: [0, 100] };
  const most = chart.format === "percent" ? 100 : Infinity;
  return {
    range: (_, low, value) => {
      const [, high] = reach(lines, low, value);
      return [0, Math.min(Math.max(high * 1.1, chart.at_least), Math.max(high, most)) || 1];
    },
  };
}

function yAxis(chart) {
  const format = FORMATS[chart.format];
  const values = (_, ticks) => ticks.map((tick) => (tick === null ? "" : format(tick)));
  if (chart.scale === "log") {
    return { splits: (plot, _, low, high) => logSteps(low, high, plot.bbox.height / devicePixelRatio / 24), filter: (plot, splits) => splits, values };
  }
  if (chart.format === "bytes") {
    return { values, incrs: BYTE_STEPS };
  }
  return { values };
}

function options(entry, lines, width) {
  const { plots, chart } = entry;
  const wide = chart.width === "full";
  const marks = placeMarks(plots, width);
  const above = wide ? marks.lines * LABEL_LINE : 0;
  const axis = {
    stroke: color("soft"),
    font: "12px " + color("font"),
    grid: { stroke: color("grid"), width: 1 },
    ticks: { stroke: color("line"), width: 1, size: 5 },
  };
  const x = AXES[plots.axis];
  return {
    width,
    height: (wide ? (chart.scale === "log" ? 250 : 210) : 170) + above,
    padding: [8 + above, 26, 0, 0],
    cursor: { sync: { key: plots.x_label + plots.axis }, points: { size: 6 }, drag: { x: true, y: false }, y: false },
    legend: { show: false },
    scales: { x: x.scale, y: yScale(chart, lines) },
    axes: [{ ...axis, size: 30, ...x.axis }, { ...axis, size: 66, space: 34, ...yAxis(chart) }],
    series: [{}].concat(lines.map(({ series, faint }) => series.line === "shade" ? {
      stroke: "transparent",
      fill: SHADE,
      width: 0,
      points: { show: false },
    } : ({
      stroke: color(seriesColor(styleOf(series))),
      alpha: faint ? 0.3 : 1,
      width: faint || series.line === "limit" ? 1.25 : 2,
      dash: dashOf(series),
      points: { show: plots.x.length < 3 || (plots.axis === "count" && series.line !== "limit"), size: 6 },
    }))),
    hooks: { setCursor: [(plot) => readOut(entry, plot.cursor.idx)] },
    plugins: [intervalPlugin(lines, entry.cut), markPlugin(marks, wide)],
  };
}

// A log axis has no place for zero.
function drawable(chart, values) {
  return chart.scale === "log" ? values.map((value) => (value > 0 ? value : null)) : values;
}

function draw(entry) {
  const width = entry.box.clientWidth;
  if (width === 0) return;
  if (entry.plot) entry.plot.destroy();
  entry.lines = visible(entry.chart);
  const data = [entry.plots.x].concat(entry.lines.map(({ series }) => drawable(entry.chart, series.values)));
  entry.plot = new uPlot(options(entry, entry.lines, width), data, entry.box);
  readOut(entry, null);
  if (entry.table) entry.table.replaceChildren(figuresTable(entry));
}

function drawAll() {
  drawn.forEach(draw);
}

function swatch(series) {
  const dash = dashOf(series);
  const kind = series.line === "limit" ? "dotted" : dash ? "dashed" : "solid";
  return element("span", { class: "swatch", style: "border-top-style:" + kind + ";border-top-color:var(--" + seriesColor(styleOf(series)) + ")" });
}

function nameOf(series) {
  const group = groupOf(series);
  if (group === null) return series.label;
  return series.label ? group.label + ", " + series.label : group.label;
}

// The values under the cursor; without one, what the lines are.
function readOut(entry, index) {
  const format = FORMATS[entry.chart.format];
  const wide = entry.chart.width === "full";
  // Lines that are measurements at counts have their names in the wide chart alone: the others have the same ones.
  const all = wide || entry.plots.axis !== "count";
  const parts = [];
  const named = new Set();
  for (const { series, faint } of entry.lines) {
    if (faint) continue;
    const value = index === null || index === undefined ? undefined : series.values[index];
    const text = value === undefined ? "" : value === null ? "\u2013" : format(value);
    if (wide || (all && series.group === null)) {
      parts.push(element("span", { class: "key" }, swatch(series), nameOf(series), element("b", {}, text)));
    } else if (text !== "") {
      if (series.line === "limit") continue;
      parts.push(element("span", { class: "key", title: nameOf(series) }, swatch(series), element("b", {}, text)));
    } else if (all && series.label && !named.has(series.label)) {
      named.add(series.label);
      parts.push(element("span", { class: "key" }, swatch({ ...series, group: null, color: 7 }), series.label));
    }
  }
  const at = index === null || index === undefined ? "" : AXES[entry.plots.axis].value(entry.plots.x[index]);
  entry.readout.replaceChildren(...parts, element("span", { class: "at" }, at));
}

// The drawn lines in figures, for those who cannot see or do not trust a picture.
function figuresTable(entry) {
  const format = FORMATS[entry.chart.format];
  const lines = entry.lines.filter(({ faint }) => !faint).map(({ series }) => series);
  const head = element("tr", {}, element("th", { scope: "col" }, entry.plots.x_label),
    ...lines.map((series) => element("th", { scope: "col" }, nameOf(series))));
  const body = entry.plots.x.map((x, index) => element("tr", {},
    element("th", { scope: "row" }, AXES[entry.plots.axis].value(x)),
    ...lines.map((series) => {
      const value = series.values[index];
      const interval = series.intervals && series.intervals[index];
      const detail = interval ? element("small", {}, format(interval[0]) + " to " + format(interval[1])) : null;
      return element("td", {}, value === null || value === undefined ? "\u2013" : format(value), detail);
    })));
  return element("table", { class: "rows" }, element("thead", {}, head), element("tbody", {}, ...body));
}

function figure(plots, chart) {
  const box = element("div", { class: "plot" });
  const readout = element("div", { class: "readout" });
  const cut = element("p", { class: "foot", hidden: "" }, "An arrow: the interval goes on beyond the chart. The table has its end.");
  const entry = { plots, chart, box, readout, cut, plot: null, table: null, lines: [] };
  drawn.push(entry);
  const button = element("button", { type: "button", class: "quiet", "aria-expanded": "false" }, "Table");
  const caption = element("figcaption", {}, chart.title + " ", element("span", { class: "unit" }, chart.unit));
  const node = element("figure", { class: chart.width }, element("div", { class: "head" }, caption, button), readout, box, cut);
  button.addEventListener("click", () => {
    if (entry.table) {
      entry.table.remove();
      entry.table = null;
    } else {
      entry.table = element("div", { class: "table-box figures", tabindex: "0" }, figuresTable(entry));
      node.append(entry.table);
    }
    button.setAttribute("aria-expanded", String(entry.table !== null));
  });
  return node;
}

let isFirstBlock = true;

function plotsBlock(plots) {
  // Only where charts are drawn: the page without scripts has tables in their place.
  const hint = isFirstBlock ? "Drag across a chart to zoom in, double-click to zoom out." : "";
  isFirstBlock = false;
  const grid = element("div", { class: "plots" }, ...plots.charts.map((chart) => figure(plots, chart)));
  return element("div", {},
    plots.heading ? element("h3", {}, plots.heading) : null,
    plots.lead ? element("p", { class: "lead" }, plots.lead) : null,
    hint ? element("p", { class: "lead" }, hint) : null,
    grid,
    plots.foot ? element("p", { class: "foot" }, plots.foot) : null);
}

// How many layers the groups have, 0 where there is nothing to choose.
function layers() {
  const numbers = new Set();
  const visit = (blocks) => {
    for (const block of blocks) {
      if (block.kind === "fold") visit(block.value.blocks);
      if (block.kind !== "plots") continue;
      for (const chart of block.value.charts) for (const series of chart.series) {
        if (series.layer !== null) numbers.add(series.layer.number);
      }
    }
  };
  for (const section of report.sections) visit(section.blocks);
  return numbers.size > 1 ? [...numbers].sort((a, b) => a - b) : [];
}

function groupChoice(index, after) {
  const group = report.groups[index];
  const box = element("input", { type: "checkbox" });
  box.checked = chosen.shown.has(index);
  box.addEventListener("change", () => {
    if (box.checked) chosen.shown.add(index);
    else chosen.shown.delete(index);
    after();
  });
  const label = element("label", { class: "choice" }, box, swatch({ group: index, line: "solid" }), group.label);
  return { label, box, index };
}

function layerChoice(numbers) {
  const layer = report.layers_label;
  const select = element("select", {},
    element("option", { value: "typical" }, "the typical " + layer),
    element("option", { value: "every" }, "every " + layer),
    ...numbers.map((number) => element("option", { value: String(number) }, layer + " " + (number + 1))));
  select.value = chosen.layer;
  select.addEventListener("change", () => {
    const number = Number(select.value);
    chosen.layer = Number.isInteger(number) ? number : select.value;
    drawAll();
  });
  return element("label", { class: "layers" }, "Draw ", select);
}

const FEW = 6;

// The bar that chooses groups and layers for all plots of the page.
function chooser() {
  const summary = element("summary", {});
  const refresh = () => {
    const shown = [...chosen.shown].sort((a, b) => a - b);
    summary.replaceChildren(shown.length + " of " + report.groups.length + " shown ",
      ...shown.slice(0, 4).map((index) => element("span", { class: "key" }, swatch({ group: index, line: "solid" }), report.groups[index].label)),
      shown.length > 4 ? "\u2026" : "");
    drawAll();
  };
  const choices = report.groups.map((_, index) => groupChoice(index, refresh));
  const set = (wanted) => {
    chosen.shown = new Set(choices.filter(({ index }) => wanted(report.groups[index])).map(({ index }) => index));
    for (const { box, index } of choices) box.checked = chosen.shown.has(index);
    refresh();
  };
  const button = (text, wanted) => {
    const node = element("button", { type: "button", class: "quiet" }, text);
    node.addEventListener("click", () => set(wanted));
    return node;
  };
  const buttons = element("span", { class: "buttons" }, button("All", () => true), button("Default", (group) => group.shown));
  const labels = element("div", { class: "choices" }, ...choices.map(({ label }) => label), buttons);
  const many = report.groups.length > FEW;
  const groups = many ? element("details", { class: "many" }, summary, labels) : labels;
  const numbers = layers();
  if (numbers.length > 0 && report.groups.length <= FEW) chosen.layer = "every";
  const node = element("div", { class: "chooser", role: "group", "aria-label": report.groups_label },
    element("span", { class: "what" }, report.groups_label + ":"), groups, numbers.length > 0 ? layerChoice(numbers) : null);
  refresh();
  return node;
}
