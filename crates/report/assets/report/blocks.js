// The blocks of a page, apart from its plots.

function verdictsBlock(verdicts) {
  return element("div", { class: "verdicts" }, ...verdicts.map((verdict) =>
    element("div", { class: "verdict " + verdict.tone },
      element("div", { class: "figure" }, verdict.figure),
      element("div", {},
        verdict.context ? element("p", { class: "context" }, verdict.context) : null,
        element("p", { class: "headline" }, verdict.headline),
        ...verdict.details.map((detail) => element("p", { class: "detail" }, detail))))));
}

function findingsBlock(findings) {
  return element("div", { class: "findings" }, ...findings.map((text) => element("p", {}, text)));
}

function factsBlock(facts) {
  const list = element("dl", { class: "facts" });
  for (const fact of facts) list.append(element("dt", {}, fact.label), element("dd", {}, fact.value));
  return list;
}

// A small line without an axis: the shape of a series beside its figures.
function spark(values) {
  const known = values.filter((value) => value !== null);
  const high = Math.max(...known, 0) || 1;
  const last = Math.max(values.length - 1, 1);
  let path = "";
  let pen = "M";
  values.forEach((value, index) => {
    if (value === null) {
      pen = "M";
      return;
    }
    path += pen + ((index / last) * 100).toFixed(1) + " " + (21 - (value / high) * 20).toFixed(1);
    pen = "L";
  });
  return svg("svg", { class: "spark", viewBox: "0 0 100 22", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("line", { x1: 0, x2: 100, y1: 21.5, y2: 21.5 }), svg("path", { d: path }));
}

// Long names may break behind the signs that join their words.
function breakable(text) {
  return text.split(/(?<=[=_/])/).flatMap((part) => [part, element("wbr", {})]);
}

function cellContent(cell) {
  if (cell.spark) return [spark(cell.spark)];
  const name = cell.group === null ? cell.text
    : element("span", { class: "named" }, swatch({ group: cell.group, line: "solid" }), element("span", {}, ...breakable(cell.text)));
  return [name, cell.detail ? element("small", {}, cell.detail) : null, bar(cell.bar)];
}

// A share as a bar; what is not nothing can be seen.
function bar(share) {
  if (share === undefined || share === null) return null;
  const width = share > 0 ? Math.max(share * 100, 2) : 0;
  return svg("svg", { class: "bar", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { width: 100, height: 4, class: "ground" }), svg("rect", { width: width.toFixed(1), height: 4 }));
}

function tableRow(row) {
  return element("tr", {}, ...row.map((cell, index) => index === 0
    ? element("th", { scope: "row", class: cell.tone }, ...cellContent(cell))
    : element("td", { class: cell.tone }, ...cellContent(cell))));
}

function compareCells(a, b) {
  if (a.value !== null && b.value !== null) return a.value - b.value;
  if (a.value !== null || b.value !== null) return a.value === null ? 1 : -1;
  return a.text.localeCompare(b.text, "en", { numeric: true });
}

// Sorts by a column, the other way round when it is asked again; the first click on a number shows the largest.
function sorter(rows, body, headings) {
  let last = null;
  return (column, heading) => {
    const numeric = rows.some((row) => row[column].value !== null);
    const order = last && last.column === column ? -last.order : numeric ? -1 : 1;
    last = { column, order };
    const sorted = [...rows].sort((a, b) => order * compareCells(a[column], b[column]));
    body.replaceChildren(...sorted.map(tableRow));
    for (const node of headings) node.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order > 0 ? "ascending" : "descending");
  };
}

function tableClass(table) {
  return "rows" + (table.prose ? " prose" : "") + (table.words ? " words" : "");
}

function tableBlock(table) {
  const body = element("tbody", {}, ...table.rows.map(tableRow));
  const headings = table.columns.map(() => element("th", { scope: "col" }));
  const sort = sorter(table.rows, body, headings);
  headings.forEach((heading, column) => {
    const plain = !table.sortable || table.rows.every((row) => row[column].spark);
    if (plain) {
      heading.append(table.columns[column]);
      return;
    }
    const button = element("button", { type: "button", class: "sort" }, table.columns[column]);
    button.addEventListener("click", () => sort(column, heading));
    heading.append(button);
  });
  const caption = table.caption ? element("caption", {}, table.caption) : null;
  return element("div", { class: "table-box" }, element("table", { class: tableClass(table) },
    caption, element("thead", {}, element("tr", {}, ...headings)), body));
}

function bandsBlock(bands) {
  const key = (filled, text) => element("span", { class: "key" }, element("span", { class: filled ? "part filled" : "part" }), text);
  return element("figure", { class: "bands" },
    element("div", { class: "head" }, element("figcaption", {}, bands.title)),
    element("div", { class: "legend" }, key(true, bands.filled_label), key(false, bands.empty_label)),
    ...bands.rows.map((row) => element("div", { class: "band " + row.tone },
      element("span", { class: "what" }, row.label), element("span", { class: "start" }, row.start),
      element("span", { class: "parts", role: "img", "aria-label": partsInWords(bands, row) },
        ...row.parts.map((filled) => element("span", { class: filled ? "part filled" : "part" }))),
      element("span", { class: "end" }, row.end))));
}

function partsInWords(bands, row) {
  return row.parts.map((filled) => filled ? bands.filled_label : bands.empty_label).join(", ");
}

function listingBlock(listing) {
  const button = element("button", { type: "button" }, "Copy");
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(listing.text).then(
      () => { button.textContent = "Copied"; },
      () => { button.textContent = "Select and copy"; });
  });
  return element("div", {},
    listing.label ? element("p", { class: "lead" }, listing.label) : null,
    element("div", { class: "command" }, element("pre", { tabindex: "0" }, listing.text), button));
}

function notesBlock(notes) {
  return element("ul", { class: "notes" }, ...notes.map((note) => element("li", { class: note.tone }, note.text)));
}

function foldBlock(fold) {
  const node = element("details", { class: "fold" }, element("summary", {}, fold.summary), ...fold.blocks.map(block));
  node.addEventListener("toggle", () => drawn.filter((entry) => node.contains(entry.box)).forEach(draw));
  return node;
}

// Only files beside this one: a colon would make it a scheme.
function linkBlock(link) {
  const inside = !link.file.includes(":") && !link.file.startsWith("/");
  return element("p", { class: "text" }, inside ? element("a", { href: link.file }, link.text) : link.text);
}

const BLOCKS = {
  verdicts: verdictsBlock,
  findings: findingsBlock,
  heading: (text) => element("h3", {}, text),
  text: (text) => element("p", { class: "text" }, text),
  facts: factsBlock,
  table: tableBlock,
  estimates: estimatesBlock,
  plots: plotsBlock,
  bands: bandsBlock,
  listing: listingBlock,
  notes: notesBlock,
  fold: foldBlock,
  link: linkBlock,
};

function block({ kind, value }) {
  return BLOCKS[kind](value);
}
