// The page while it is open: graphs of a span of time, and figures that follow each view.

const RANGES = [["15m", 900, "15 min"], ["1h", 3600, "1 h"], ["6h", 21600, "6 h"], ["24h", 86400, "24 h"], ["7d", 604800, "7 d"]];
// A longer span is empty after the start.
const DEFAULT_RANGE = "15m";
const SHORTEST_S = 10;
const LONGEST_S = 1100 * 86400;
const LATEST_S = 253402300799;
// The least and the most time between two loads of the graphs, while they end now.
const RELOAD_MS = 2000;
const LONGEST_RELOAD_MS = 60000;
// After so long without a view the page says that its figures are old.
const SILENCE_MS = 30000;
const RECONNECT_MS = 5000;
// Steps of the time axis that people count in, seconds.
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800,
  604800, 1209600, 2592000, 7776000, 31536000];
const BYTE_STEPS = [1, 1024, 1024 ** 2, 1024 ** 3, 1024 ** 4].flatMap((unit) =>
  [1, 2, 5, 10, 20, 50, 100, 256, 512].map((step) => step * unit));

const UNITS = {
  "": short,
  "/s": (value) => short(value) + "/s",
  s: (value) => (value >= 120 ? duration(Math.round(value)) : microseconds(value * 1e6)),
  bytes,
  "bytes/s": (value) => bytes(value) + "/s",
  share: (value) => short(value * 100) + "%",
};

const body = document.body;
const place = document.getElementById("graphs");
const chooser = document.getElementById("subject");

// The time of the last view, and what local time is ahead of UTC: those of the machine that is watched.
let now = Number(body.dataset.now);
let offset = Number(body.dataset.offset);

// What the link holds: a span that ends now, by its name, or two fixed times.
const shown = { range: DEFAULT_RANGE, fixed: null, key: place ? place.dataset.subject : "" };
// The span on the axes, and the graphs by their keys.
let span = [now - 900, now];
const entries = new Map();

// --- Times

function clock(time, format) {
  const date = new Date((time + offset) * 1000);
  if (Number.isNaN(date.getTime())) return "";
  const text = date.toISOString();
  return { date: text.slice(0, 10), minute: text.slice(11, 16), second: text.slice(11, 19), all: text.slice(0, 19).replace("T", " ") }[format];
}

function timeSplits(plot, axis, low, high, step) {
  const splits = [];
  for (let time = Math.ceil((low + offset) / step) * step - offset; time <= high; time += step) splits.push(time);
  return splits;
}

function timeNames(plot, splits, axis, space, step) {
  return splits.map((time) => {
    const minute = clock(time, "minute");
    if (step >= 86400 || (minute === "00:00" && (time + offset) % 86400 === 0)) return clock(time, "date").slice(5);
    return step < 60 ? clock(time, "second") : minute;
  });
}

// --- The link

function readLink() {
  const query = new URLSearchParams(location.search);
  const [from, to] = ["from", "to"].map((name) => Number(query.get(name) || NaN));
  shown.fixed = from >= 0 && to <= LATEST_S && from < to && to - from <= LONGEST_S ? [Math.floor(from), Math.ceil(to)] : null;
  const range = query.get("range");
  shown.range = RANGES.some(([name]) => name === range) ? range : DEFAULT_RANGE;
  if (!place) return;
  shown.key = place.dataset.subject;
  if (!chooser) return;
  const wanted = encodedKey(query.get("subject"));
  if ([...chooser.options].some((option) => option.value === wanted)) shown.key = wanted;
  chooser.value = shown.key;
}

// The form in which the server writes a key: all but letters, digits and -._~ as percent codes.
function encodedKey(key) {
  if (key === null) return "";
  return encodeURIComponent(key).replace(/[!'()*]/g, (sign) => "%" + sign.charCodeAt(0).toString(16).toUpperCase());
}

function writeLink() {
  const query = [];
  const name = new URLSearchParams(location.search).get("name");
  if (name !== null) query.push("name=" + encodedKey(name));
  if (chooser && shown.key !== place.dataset.subject) query.push("subject=" + shown.key);
  if (shown.fixed) query.push("from=" + shown.fixed[0], "to=" + shown.fixed[1]);
  else if (shown.range !== DEFAULT_RANGE) query.push("range=" + shown.range);
  history.pushState(null, "", location.pathname + (query.length > 0 ? "?" + query.join("&") : ""));
}

function wantedSpan() {
  if (shown.fixed) return shown.fixed;
  const seconds = RANGES.find(([name]) => name === shown.range)[1];
  return [Math.max(now - seconds, 0), Math.max(now, 1)];
}

function show(change) {
  Object.assign(shown, change);
  writeLink();
  pressButtons();
  load();
}

function showSpan(from, to) {
  const length = Math.min(Math.max(Math.ceil(to - from), SHORTEST_S), LONGEST_S);
  const middle = (from + to) / 2;
  const first = Math.min(Math.max(Math.round(middle - length / 2), 0), LATEST_S - length);
  show({ fixed: [first, first + length] });
}

// Shows another part of the span: a factor of its length around a time, and a shift in parts of its length.
function move(factor, shift, around) {
  const [from, to] = span;
  const middle = around === undefined ? (from + to) / 2 : around;
  const lead = (to - from) * shift;
  showSpan(middle - (middle - from) * factor + lead, middle + (to - middle) * factor + lead);
}

function showNow() {
  show({ fixed: null });
}

// --- The bar of times

const rangeButtons = new Map();
const message = element("p", { class: "message", role: "status" });
const spoken = element("p", { class: "heard", role: "status" });
const plots = element("div", { class: "plots" });

function button(text, label, action) {
  const node = element("button", { type: "button", "aria-label": label }, text);
  node.addEventListener("click", action);
  return node;
}

function timeBar() {
  const bar = element("div", { class: "bar-of-time", role: "group", "aria-label": "Span of time" });
  for (const [name, , text] of RANGES) {
    const node = button(text, "The last " + text, () => show({ fixed: null, range: name }));
    rangeButtons.set(name, node);
    bar.append(node);
  }
  bar.append(
    button("\u2190", "Earlier", () => move(1, -0.5)),
    button("\u2192", "Later", () => move(1, 0.5)),
    button("+", "Zoom in", () => move(0.5, 0)),
    button("\u2212", "Zoom out", () => move(2, 0)),
    button("Now", "Back to now", showNow));
  return bar;
}

function pressButtons() {
  for (const [name, node] of rangeButtons) node.setAttribute("aria-pressed", String(!shown.fixed && name === shown.range));
}

// --- Graphs

function swatch(index) {
  const node = element("span", { class: "swatch" });
  // The policy of the page allows no style attributes.
  node.style.borderTopColor = "var(--" + seriesColor(index) + ")";
  return node;
}

function written(entry, value) {
  if (value === null || value === undefined) return "\u2013";
  return (UNITS[entry.graph.unit] || short)(value);
}

// The values under the cursor; without one, the last ones.
function readOut(entry, index) {
  const last = entry.times.length - 1;
  const chosen = index === null || index === undefined ? last : index;
  const parts = entry.graph.lines.map((line, number) => element("span", { class: "key" }, swatch(number), line.label,
    element("b", {}, written(entry, line.values[chosen]))));
  const time = chosen === last || entry.times[chosen] === undefined ? "" : clock(entry.times[chosen], "second");
  entry.readout.replaceChildren(...parts, element("span", { class: "at" }, time));
}

function readAloud(entry, index) {
  const values = entry.graph.lines.map((line) => line.label + " " + written(entry, line.values[index]));
  spoken.textContent = clock(entry.times[index], "second") + ": " + values.join(", ");
}

function valueScale(graph) {
  // Without a value there is no low and no high.
  const isKnown = (low, high) => Number.isFinite(low) && Number.isFinite(high);
  if (graph.logarithmic) {
    return { distr: 3, range: (_, low, high) => (isKnown(low, high) && low > 0 ? logRange(low, high) : [1e-4, 1e-2]) };
  }
  return { range: (_, low, high) => (isKnown(low, high) && high > 0 ? [Math.min(low, 0), high * 1.1] : [0, 1]) };
}

function valueAxis(entry) {
  const values = (_, ticks) => ticks.map((tick) => (tick === null ? "" : written(entry, tick)));
  if (entry.graph.logarithmic) {
    const splits = (plot, _, low, high) => logSteps(low, high, plot.bbox.height / devicePixelRatio / 24);
    return { splits, filter: (_, ticks) => ticks, values };
  }
  return entry.graph.unit.startsWith("bytes") ? { values, incrs: BYTE_STEPS } : { values };
}

// Values with a gap on either side, which no line shows.
function lonely(values) {
  const known = (index) => values[index] !== null && values[index] !== undefined;
  return values.flatMap((_, index) => (known(index) && !known(index - 1) && !known(index + 1) ? [index] : []));
}

function options(entry, width) {
  const axis = {
    stroke: color("soft"),
    font: "12px " + color("font"),
    grid: { stroke: color("grid"), width: 1 },
    ticks: { stroke: color("line"), width: 1, size: 5 },
  };
  return {
    width,
    height: 180,
    padding: [8, 14, 0, 0],
    cursor: { sync: { key: "watch", scales: ["x", null] }, points: { size: 6 }, drag: { x: true, y: false, setScale: false }, y: false },
    legend: { show: false },
    scales: { x: { time: false, range: () => span }, y: valueScale(entry.graph) },
    axes: [
      { ...axis, size: 30, space: 62, incrs: TIME_STEPS, splits: timeSplits, values: timeNames },
      { ...axis, size: 72, space: 30, ...valueAxis(entry) },
    ],
    series: [{}].concat(entry.graph.lines.map((_, number) => ({
      stroke: color(seriesColor(number)),
      width: 1.5,
      spanGaps: false,
      points: { size: 4, filter: (plot, index, all) => (all ? null : lonely(plot.data[index])) },
    }))),
    hooks: {
      setCursor: [(plot) => readOut(entry, plot.cursor.idx)],
      setSelect: [(plot) => select(plot)],
    },
  };
}

let isSelecting = false;

// Cursors in step select in step: the first plot that says so zooms all.
function select(plot) {
  if (isSelecting || plot.select.width < 4) return;
  isSelecting = true;
  const { left, width } = plot.select;
  const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
  setTimeout(() => {
    isSelecting = false;
    for (const { plot } of entries.values()) if (plot) plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    showSpan(from, to);
  });
}

// A log axis has no place for zero.
function plotData(entry) {
  const { graph, times } = entry;
  const drawable = (values) => (graph.logarithmic ? values.map((value) => (value > 0 ? value : null)) : values);
  return [times].concat(graph.lines.map((line) => drawable(line.values)));
}

function draw(entry) {
  const width = entry.box.clientWidth;
  if (width === 0) return;
  if (entry.plot) entry.plot.destroy();
  entry.width = width;
  entry.plot = new uPlot(options(entry, width), plotData(entry), entry.box);
  readOut(entry, null);
}

function update(entry, graph) {
  const form = (shape) => JSON.stringify([shape.unit, shape.logarithmic, shape.lines.map((line) => line.label)]);
  const isSame = entry.plot && entry.graph && form(entry.graph) === form(graph);
  entry.graph = graph;
  const length = graph.lines.length > 0 ? graph.lines[0].values.length : 0;
  entry.times = Array.from({ length }, (_, index) => graph.start_s + index * graph.step_s);
  if (isSame) {
    entry.plot.setData(plotData(entry));
    readOut(entry, entry.plot.cursor.idx);
  } else {
    draw(entry);
  }
  if (entry.table) entry.table.replaceChildren(figuresTable(entry));
}

// The drawn lines in figures, for those who cannot see or do not trust a picture.
function figuresTable(entry) {
  const { graph, times } = entry;
  const head = element("tr", {}, element("th", { scope: "col" }, "Time"),
    ...graph.lines.map((line) => element("th", { scope: "col" }, line.label)));
  const rows = times.map((time, index) => element("tr", {}, element("th", { scope: "row" }, clock(time, "all")),
    ...graph.lines.map((line) => element("td", {}, written(entry, line.values[index])))));
  return element("table", { class: "rows" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

// Steps through the values, and shows them in all graphs.
function step(entry, steps) {
  const last = entry.times.length - 1;
  if (last < 0 || !entry.plot) return;
  const index = entry.plot.cursor.idx;
  const next = index === null || index === undefined ? last : Math.min(Math.max(index + steps, 0), last);
  for (const { plot } of entries.values()) if (plot) plot.setCursor({ left: plot.valToPos(entry.times[next], "x"), top: 1 });
  readAloud(entry, next);
}

function pressKey(entry, event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const around = entry.plot && entry.plot.cursor.left >= 0 ? entry.plot.posToVal(entry.plot.cursor.left, "x") : undefined;
  const actions = {
    ArrowLeft: () => step(entry, event.shiftKey ? -10 : -1),
    ArrowRight: () => step(entry, event.shiftKey ? 10 : 1),
    "+": () => move(0.5, 0, around),
    "=": () => move(0.5, 0, around),
    "-": () => move(2, 0, around),
    "[": () => move(1, -0.5),
    "]": () => move(1, 0.5),
    n: showNow,
  };
  const action = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
  if (action === null) return;
  event.preventDefault();
  action();
}

function newEntry(graph) {
  const box = element("div", { class: "plot", tabindex: "0", role: "group", "aria-label": graph.title + ", graph", "aria-describedby": "keys" });
  const readout = element("div", { class: "readout" });
  const entry = { graph: null, times: [], box, readout, plot: null, table: null, width: 0, node: null };
  const toggle = element("button", { type: "button", class: "quiet", "aria-expanded": "false", "aria-label": "Table of " + graph.title }, "Table");
  const caption = element("figcaption", {}, graph.title);
  entry.node = element("figure", {}, element("div", { class: "head" }, caption, toggle), readout, box);
  toggle.addEventListener("click", () => {
    if (entry.table) {
      entry.table.remove();
      entry.table = null;
    } else {
      entry.table = element("div", { class: "table-box figures", tabindex: "0" }, figuresTable(entry));
      entry.node.append(entry.table);
    }
    toggle.setAttribute("aria-expanded", String(entry.table !== null));
  });
  box.addEventListener("keydown", (event) => pressKey(entry, event));
  box.addEventListener("dblclick", showNow);
  return entry;
}

function drawSet(set) {
  offset = set.utc_offset_s;
  span = [set.from_s, set.to_s];
  const kept = new Set(set.graphs.map((graph) => graph.key));
  for (const [key, entry] of entries) {
    if (kept.has(key)) continue;
    if (entry.plot) entry.plot.destroy();
    entry.node.remove();
    entries.delete(key);
  }
  for (const graph of set.graphs) {
    if (!entries.has(graph.key)) entries.set(graph.key, newEntry(graph));
    const entry = entries.get(graph.key);
    if (!entry.node.isConnected) plots.append(entry.node);
    update(entry, graph);
  }
  const ends = shown.fixed ? clock(span[0], "all") + " to " + clock(span[1], "all") : "";
  message.textContent = set.graphs.length === 0 ? "There is no history yet." : ends;
  // Says to tests how many graphs are there.
  place.dataset.drawn = String([...entries.values()].filter((entry) => entry.plot).length);
}

function drawAgain() {
  for (const entry of entries.values()) if (entry.graph) draw(entry);
}

let loading = null;
let reloadTimer = 0;

async function load() {
  if (!place) return;
  clearTimeout(reloadTimer);
  if (loading) loading.abort();
  const request = new AbortController();
  loading = request;
  const [from, to] = wantedSpan();
  const columns = innerWidth >= 1100 ? 4 : innerWidth > 820 ? 2 : 1;
  const points = Math.min(Math.max(Math.round(plots.clientWidth / columns), 100), 4000);
  let wait = RECONNECT_MS;
  try {
    const answer = await fetch("/api/graphs?subject=" + shown.key + "&from=" + from + "&to=" + to + "&points=" + points, { signal: request.signal });
    if (answer.ok) {
      const set = await answer.json();
      drawSet(set);
      const steps = set.graphs.map((graph) => graph.step_s * 1000);
      wait = Math.min(Math.max(RELOAD_MS, ...steps), LONGEST_RELOAD_MS);
    } else {
      message.textContent = await answer.text();
    }
  } catch (error) {
    if (request.signal.aborted) return;
    if (!(error instanceof TypeError)) throw error;
    message.textContent = "The graphs could not be loaded: the program does not answer.";
  }
  loading = null;
  if (!document.hidden && !(shown.fixed && to < now)) reloadTimer = setTimeout(load, wait);
}

// --- Figures

// Makes an element like a fresh one of the server, and touches only what differs: focus and selection stay.
function patch(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(document.importNode(fresh, true));
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  while (old.childNodes.length > fresh.childNodes.length) old.lastChild.remove();
  fresh.childNodes.forEach((child, index) => {
    if (index < old.childNodes.length) patch(old.childNodes[index], child);
    else old.append(document.importNode(child, true));
  });
}

let isRefreshing = false;

async function refresh() {
  if (isRefreshing) return;
  isRefreshing = true;
  try {
    const answer = await fetch(location.pathname + location.search);
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const live = (page) => new Map([...page.querySelectorAll("[data-live]")].map((node) => [node.id, node]));
    const [had, has] = [live(document), live(fresh)];
    for (const [id, node] of had) if (!has.has(id)) node.remove();
    for (const [id, node] of has) {
      if (had.has(id)) patch(had.get(id), node);
      else document.getElementById("main").append(document.importNode(node, true));
    }
  } catch (error) {
    // The stream of events says that the program does not answer.
    if (!(error instanceof TypeError)) throw error;
  } finally {
    isRefreshing = false;
  }
}

const connection = document.getElementById("connection");
let events = null;
let lastView = Date.now();

function say(text) {
  if (connection.textContent !== text) connection.textContent = text;
}

function sayOld() {
  say("No new figures since " + clock(now, "all") + ". Trying again.");
}

function connect() {
  if (events || document.hidden) return;
  events = new EventSource("/events");
  events.onmessage = (event) => {
    const view = JSON.parse(event.data);
    now = view.unix_s;
    offset = view.utc_offset_s;
    lastView = Date.now();
    say("The figures follow each sample.");
    refresh();
  };
  events.onerror = () => {
    sayOld();
    // A refusal ends the stream for good; what broke is connected again by the browser.
    if (events && events.readyState === EventSource.CLOSED) {
      disconnect();
      setTimeout(connect, RECONNECT_MS);
    }
  };
}

function disconnect() {
  if (events) events.close();
  events = null;
}

// A browser has few connections to a server: a page that nobody sees gives its own back.
function follow() {
  if (document.hidden) {
    disconnect();
    clearTimeout(reloadTimer);
  } else {
    lastView = Date.now();
    connect();
    load();
  }
}

function begin() {
  readLink();
  if (place) {
    const keys = element("p", { class: "hint", id: "keys" },
      "Drag across a graph to zoom in, double-click to go back to now. With the keyboard on a graph: left and right read values, + and \u2212 zoom, [ and ] go earlier and later, n goes back to now.");
    place.append(timeBar(), message, plots, keys, spoken);
    pressButtons();
    if (chooser) {
      chooser.parentElement.hidden = false;
      chooser.addEventListener("change", () => show({ key: chooser.value }));
    }
    addEventListener("popstate", () => {
      readLink();
      pressButtons();
      load();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAgain);
    new ResizeObserver(() => {
      for (const entry of entries.values()) {
        const width = entry.box.clientWidth;
        if (entry.plot && width > 0 && width !== entry.width) {
          entry.width = width;
          entry.plot.setSize({ width, height: 180 });
        }
      }
    }).observe(plots);
  }
  document.addEventListener("visibilitychange", follow);
  // A page in the browser's cache of pages would hold a dead stream.
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => {
    if (event.persisted) follow();
  });
  setInterval(() => {
    if (events && Date.now() - lastView > SILENCE_MS) sayOld();
  }, RECONNECT_MS);
  follow();
}

begin();
