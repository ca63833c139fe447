// Values with their intervals: a table whose middle column is a picture, so that it reads without one.
// Positions are shares of the column's width, which makes it fit every window without drawing again.

// An interval that reaches further than this beyond all measurements leaves the picture: it would flatten it.
const WIDEST = 1.6;

function estimateScale(estimates) {
  const values = [];
  for (const row of estimates.rows) {
    values.push(...row.points);
    if (row.mid !== null) values.push(row.mid);
  }
  const most = Math.max(...values, 0);
  const least = Math.min(...values);
  for (const row of estimates.rows) {
    if (!row.interval) continue;
    values.push(Math.max(row.interval[0], least / WIDEST), Math.min(row.interval[1], most * WIDEST));
  }
  if (estimates.reference) values.push(estimates.reference[0]);
  if (estimates.band) values.push(...estimates.band);
  const known = values.filter((value) => value !== null && (estimates.scale !== "log" || value > 0));
  const high = Math.max(...known, estimates.scale === "log" ? 1e-9 : 0);
  if (estimates.scale === "log") {
    const [from, to] = estimateLogRange(Math.min(...known), high);
    return {
      at: (value) => place((Math.log(Math.max(value, from / 2)) - Math.log(from)) / (Math.log(to) - Math.log(from))),
      from,
      to,
      ticks: logTicks(from, to),
    };
  }
  const step = niceStep(high / 6);
  const to = Math.ceil((high * 1.001) / step) * step || 1;
  const ticks = [];
  for (let tick = 0; tick <= to * 1.0001; tick += step) ticks.push(+tick.toPrecision(12));
  return { at: (value) => place(value / to), from: 0, to, ticks };
}

// A short range keeps its own ends, with a margin: snapping 0.98 to 1.02 out to 0.5 to 2 would hide it.
function estimateLogRange(low, high) {
  const span = high / low;
  if (span > 4) return logRange(low, high);
  const margin = Math.max(span ** 0.15, 1.01);
  return [low / margin, high * margin];
}

function logTicks(from, to) {
  if (to / from > 4) return logSteps(from, to);
  const step = niceStep((to - from) / 6);
  const ticks = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to * 1.0001; tick += step) ticks.push(+tick.toPrecision(12));
  return ticks;
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough * 0.9999);
}

// Dots at the ends keep clear of the column's edges.
function place(share) {
  return (2 + 96 * Math.min(Math.max(share, -0.02), 1.02)).toFixed(2) + "%";
}

function strip(estimates, scale, row) {
  const parts = scale.ticks.map((tick) => svg("line", { x1: scale.at(tick), x2: scale.at(tick), y1: 0, y2: "100%", class: "grid" }));
  if (estimates.band) {
    const [low, high] = estimates.band.map((value) => parseFloat(scale.at(value)));
    parts.unshift(svg("rect", { x: low + "%", width: high - low + "%", y: 0, height: "100%", class: "band" }));
  }
  if (estimates.reference) {
    const x = scale.at(estimates.reference[0]);
    parts.push(svg("line", { x1: x, x2: x, y1: 0, y2: "100%", class: "reference" }));
  }
  if (row) parts.push(...rowShapes(scale, row));
  return svg("svg", { class: "strip", "aria-hidden": "true" }, ...parts);
}

function rowShapes(scale, row) {
  const paint = "--paint:var(--" + (row.group === null ? "accent" : seriesColor(report.groups[row.group].style)) + ")";
  const shapes = row.points.map((point) => svg("circle", { cx: scale.at(point), cy: "68%", r: 3.5, class: "single" }));
  if (row.interval) {
    const [low, high] = row.interval.map((value) => scale.at(value));
    shapes.push(svg("line", { x1: low, x2: high, y1: "38%", y2: "38%", class: "whisker" }));
    const inside = row.interval.filter((value) => value >= scale.from * 0.999 && value <= scale.to * 1.001);
    for (const x of inside.map((value) => scale.at(value))) shapes.push(svg("line", { x1: x, x2: x, y1: "26%", y2: "50%", class: "end" }));
  }
  if (row.mid !== null) shapes.push(svg("circle", { cx: scale.at(row.mid), cy: "38%", r: 5, class: "mid" }));
  return [svg("g", { style: paint }, ...shapes)];
}

function axisStrip(estimates, scale) {
  const tick = (value, index) => svg("text", { x: scale.at(value), y: 14, "text-anchor": "middle", class: index % 2 ? "odd" : null }, short(value) + estimates.suffix);
  return svg("svg", { class: "axis", "aria-hidden": "true" }, ...scale.ticks.map(tick));
}

function twoLines(text, detail) {
  return [text, detail ? element("small", {}, detail) : null];
}

// More rows than this stand closer together.
const DENSE = 8;

function estimatesBlock(estimates) {
  const scale = estimateScale(estimates);
  const rows = estimates.rows.map((row) => element("tr", {},
    element("th", { scope: "row" }, ...twoLines(row.label, row.detail)),
    element("td", { class: "picture" }, strip(estimates, scale, row)),
    element("td", { class: "value" }, ...twoLines(row.text, row.text_detail))));
  const axis = element("tr", { class: "axis-row", "aria-hidden": "true" },
    element("td", {}), element("td", { class: "picture" }, axisStrip(estimates, scale)), element("td", {}));
  const head = element("tr", {}, element("th", { scope: "col" }, estimates.rows_label),
    element("td", { class: "picture" }),
    element("th", { scope: "col", class: "value" }, estimates.texts_label));
  return element("figure", { class: "full" },
    element("div", { class: "head" }, element("figcaption", {}, estimates.title + " ", element("span", { class: "unit" }, estimates.unit))),
    legend(estimates),
    element("table", { class: rows.length > DENSE ? "estimates dense" : "estimates" }, element("thead", {}, head), element("tbody", {}, ...rows, axis)));
}

function legend(estimates) {
  const parts = [element("span", { class: "key" }, element("span", { class: "dot" }), estimates.mid_label)];
  if (estimates.points_label) {
    parts.unshift(element("span", { class: "key" }, element("span", { class: "dot single" }), estimates.points_label));
  }
  if (estimates.reference) parts.push(element("span", { class: "key" }, element("span", { class: "rule" }), estimates.reference[1]));
  if (estimates.band && estimates.band_label) {
    parts.push(element("span", { class: "key" }, element("span", { class: "field" }), estimates.band_label));
  }
  return element("div", { class: "legend" }, ...parts);
}
