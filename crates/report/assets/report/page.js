// Draws a report from the JSON object in #data. Text only ever enters the page as text nodes.
(function () {
  "use strict";

  const report = JSON.parse(document.getElementById("data").textContent);
  const root = document.getElementById("report");
  const charts = [];

  function element(name, attributes, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    for (const child of children) if (child !== null) node.append(child);
    return node;
  }

  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }

  const SECONDS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

  // 5400 -> "1h 30m", 0.5 -> "0.5s".
  function duration(seconds) {
    if (seconds < 1) return seconds === 0 ? "0" : +seconds.toPrecision(3) + "s";
    let rest = seconds;
    const parts = [];
    for (const [unit, name] of SECONDS) {
      const count = unit === 1 ? +rest.toFixed(1) : Math.floor(rest / unit);
      rest -= count * unit;
      if (count > 0) parts.push(count + name);
    }
    return parts.join(" ");
  }

  // 250 -> "250us", 1500 -> "1.5ms".
  function microseconds(us) {
    if (us >= 1e6) return +(us / 1e6).toPrecision(3) + " s";
    if (us >= 1e3) return +(us / 1e3).toPrecision(3) + " ms";
    return +us.toPrecision(3) + " \u00b5s";
  }

  function number(value) {
    const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
    return value.toLocaleString("en-US", { maximumFractionDigits: digits });
  }

  const FORMATS = { number, microseconds, percent: (value) => +value.toFixed(2) + "%" };

  // Steps of the time axis that people count in.
  const TIME_STEPS = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
    3600, 7200, 10800, 14400, 21600, 43200, 86400, 172800, 604800, 2592000,
  ];

  // Vertical lines at the moments that change the picture, with their names above the plot.
  const LABEL_LINE = 15;

  // How many lines of labels stand above a plot, so that neighbours do not overlap.
  function labelLines(list) {
    return Math.min(list.length, 3);
  }

  function marks(list) {
    const lines = labelLines(list);
    return {
      hooks: {
        draw: (plot) => {
          const { ctx, bbox } = plot;
          const ratio = devicePixelRatio;
          ctx.save();
          ctx.strokeStyle = ctx.fillStyle = color("mark");
          ctx.lineWidth = ratio;
          ctx.font = 12 * ratio + "px " + color("font");
          list.forEach((mark, index) => {
            const x = plot.valToPos(mark.x, "x", true);
            if (x < bbox.left - 1 || x > bbox.left + bbox.width + 1) return;
            const above = (lines - 1 - (index % lines)) * LABEL_LINE;
            ctx.setLineDash([4 * ratio, 4 * ratio]);
            ctx.beginPath();
            ctx.moveTo(x, bbox.top - above * ratio);
            ctx.lineTo(x, bbox.top + bbox.height);
            ctx.stroke();
            const width = ctx.measureText(mark.label).width;
            const overflows = x + width > bbox.left + bbox.width;
            ctx.textAlign = overflows ? "right" : "left";
            ctx.fillText(mark.label, x + (overflows ? 2 : -2) * ratio, bbox.top - (above + 6) * ratio);
          });
          ctx.restore();
        },
      },
    };
  }

  function yScale(chart) {
    if (chart.scale === "log") {
      return { distr: 3, range: (_, min, max) => [10 ** Math.floor(Math.log10(Math.max(min || 1, 1e-3))),
        10 ** Math.ceil(Math.log10(Math.max(max || 10, 1e-2)) + 1e-9)] };
    }
    if (chart.scale === "percent") return { range: [0, 100] };
    return { range: (_, min, max) => [0, max > 0 ? max * 1.12 : 1] };
  }

  function options(section, chart, width) {
    const format = FORMATS[chart.format];
    const axis = {
      stroke: color("soft"),
      font: "12px " + color("font"),
      grid: { stroke: color("grid"), width: 1 },
      ticks: { stroke: color("line"), width: 1, size: 5 },
    };
    const whole = chart.scale === "log" ? (value) => Math.abs(Math.log10(value) % 1) < 1e-6 : () => true;
    return {
      width,
      height: (chart.scale === "log" ? 230 : 180) + labelLines(chart.marks) * LABEL_LINE,
      padding: [8 + labelLines(chart.marks) * LABEL_LINE, 12, 0, 0],
      cursor: { sync: { key: section.heading }, points: { size: 6 }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: yScale(chart) },
      axes: [
        { ...axis, size: 30, space: 70, incrs: TIME_STEPS, values: (_, ticks) => ticks.map(duration) },
        { ...axis, size: 66, values: (_, ticks) => ticks.map((tick) => (tick === null || !whole(tick) ? "" : format(tick))) },
      ],
      series: [{ label: section.x_label, value: (_, value) => (value === null ? "" : duration(value)) }].concat(
        chart.series.map((series) => ({
          label: series.label,
          stroke: color("series-" + ((series.color % 6) + 1)),
          width: 1.75,
          dash: series.dashed ? [6, 4] : undefined,
          points: { show: section.x.length < 3 },
          value: (_, value) => (value === null ? "\u2013" : format(value)),
        }))
      ),
      legend: { markers: { width: 2, dash: (plot, index) => (plot.series[index].dash ? "dashed" : "solid") } },
      plugins: [marks(chart.marks)],
    };
  }

  function draw(entry) {
    if (entry.plot) entry.plot.destroy();
    const data = [entry.section.x].concat(entry.chart.series.map((series) => series.values));
    entry.plot = new uPlot(options(entry.section, entry.chart, entry.box.clientWidth), data, entry.box);
  }

  function figure(section, chart) {
    const box = element("div");
    const caption = element("figcaption", {}, chart.title + " ", element("span", { class: "unit" }, chart.unit));
    charts.push({ section, chart, box, plot: null });
    return element("figure", {}, caption, box);
  }

  function table(rows) {
    const head = element("tr", {}, ...rows.columns.map((column) => element("th", { scope: "col" }, column)));
    const body = rows.rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))));
    return element("div", { class: "table-box" },
      element("table", { class: "rows" }, element("thead", {}, head), element("tbody", {}, ...body)));
  }

  function command(text) {
    const button = element("button", { type: "button" }, "Copy");
    button.addEventListener("click", () => {
      navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; });
    });
    return element("div", { class: "command" }, element("pre", {}, text), button);
  }

  function build() {
    root.replaceChildren(element("h1", {}, report.title), element("p", { class: "subtitle" }, report.subtitle));
    if (report.findings.length > 0) {
      root.append(element("div", { class: "findings" }, ...report.findings.map((text) => element("p", {}, text))));
    }
    const facts = element("dl", { class: "facts" });
    for (const fact of report.facts) facts.append(element("dt", {}, fact.label), element("dd", {}, fact.value));
    root.append(facts);
    for (const section of report.sections) {
      root.append(element("h2", {}, section.heading));
      if (section.lead) root.append(element("p", { class: "lead" }, section.lead));
      for (const chart of section.charts) root.append(figure(section, chart));
      if (section.table) root.append(table(section.table));
    }
    if (report.notes.length > 0) {
      root.append(element("h2", {}, "Notes"),
        element("ul", { class: "notes" }, ...report.notes.map((note) => element("li", {}, note))));
    }
    root.append(element("h2", {}, "Run it again"), command(report.command));
    for (const listing of report.listings) {
      root.append(element("p", { class: "lead" }, listing.label), command(listing.value));
    }
    root.append(element("footer", {}, report.footer));
    charts.forEach(draw);
  }

  build();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(draw));
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    for (const { plot, box } of charts) plot.setSize({ width: box.clientWidth, height: plot.height });
  });
})();
