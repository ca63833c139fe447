// Elements, colours, and numbers as people read them. Text only ever enters the page as text nodes.

function fillElement(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value);
  }
  for (const child of children) if (child !== null && child !== undefined && child !== "") node.append(child);
  return node;
}

function element(name, attributes, ...children) {
  return fillElement(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
  return fillElement(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

const COLORS = 8;

function seriesColor(number) {
  return "series-" + ((number % COLORS) + 1);
}

const SECONDS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

// 5400 -> "1 h 30 min", 0.5 -> "0.5 s": the form of span in crates/text, on an axis of minutes.
function duration(seconds) {
  if (seconds < 1) return seconds === 0 ? "0" : +seconds.toPrecision(3) + "\u00a0s";
  let rest = seconds;
  const parts = [];
  for (const [unit, name] of SECONDS) {
    const count = unit === 1 ? +rest.toFixed(1) : Math.floor(rest / unit);
    rest -= count * unit;
    if (count > 0) parts.push(count + "\u00a0" + name);
  }
  return parts.join("\u00a0");
}

// The figures below are those of crates/text, without the zeros at their ends.

// Three significant digits, two below 1, no exponent.
function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 99.95) return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
  return String(+value.toPrecision(size >= 1 ? 3 : 2));
}

// 250 -> "250 us", 1500 -> "1.5 ms". What would be rounded up to a thousand of a unit is one of the next.
function microseconds(us) {
  if (us >= 999500) return short(us / 1e6) + "\u00a0s";
  if (us >= 999.5) return short(us / 1e3) + "\u00a0ms";
  return (us >= 9.995 ? Math.round(us) : short(us)) + "\u00a0\u00b5s";
}

const SIZES = [[1024 ** 4, "TiB"], [1024 ** 3, "GiB"], [1024 ** 2, "MiB"], [1024, "KiB"]];

function bytes(value) {
  for (const [size, name] of SIZES) {
    if (value < size * (1 - 0.5 / 1024)) continue;
    const figure = value / size;
    return (figure >= 99.95 ? Math.round(figure) : +figure.toPrecision(3)) + "\u00a0" + name;
  }
  return Math.round(value) + "\u00a0B";
}

const FORMATS = { number: short, microseconds, percent: (value) => short(value) + "%", bytes };

// 1, 2 and 5 of every power of ten between two values, or as few of them as have room.
function logSteps(low, high, most = 8) {
  let steps = [];
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    steps = logStepsOf(factors, low, high);
    if (steps.length <= most) break;
  }
  return steps.length < 2 ? logStepsOf([1, 3], low, high) : steps;
}

function logStepsOf(factors, low, high) {
  const steps = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const factor of factors) {
      const step = +(factor * 10 ** power).toPrecision(6);
      if (step >= low * 0.9999 && step <= high * 1.0001) steps.push(step);
    }
  }
  return steps;
}

// Widens a range to the nearest 1, 2 or 5.
function logRange(low, high) {
  const below = (value) => Math.floor(Math.log10(value) + 1e-9);
  const steps = logStepsOf([1, 2, 5], 10 ** below(low), 10 ** (below(high) + 1));
  const from = Math.max(...steps.filter((step) => step <= low * 1.001));
  const to = Math.min(...steps.filter((step) => step >= high * 0.999));
  return from < to ? [from, to] : [from / 2, to * 2];
}
