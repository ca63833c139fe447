// Builds the page from the JSON object in #data.

const report = JSON.parse(document.getElementById("data").textContent);

function sectionNode(section, index) {
  return element("section", { id: "s" + index },
    section.heading ? element("h2", {}, section.heading) : null,
    section.lead ? element("p", { class: "lead" }, section.lead) : null,
    ...section.blocks.map(block));
}

function hasGroups(section) {
  return section.blocks.some((item) => item.kind === "plots" && item.value.charts.some((chart) =>
    chart.series.some((series) => series.group !== null)));
}

function contents() {
  const named = report.sections.map((section, index) => ({ section, index })).filter(({ section }) => section.heading);
  if (named.length < 4) return null;
  return element("nav", { "aria-label": "Contents" },
    ...named.map(({ section, index }) => element("a", { href: "#s" + index }, section.heading)));
}

function build() {
  report.groups.forEach((group, index) => { if (group.shown) chosen.shown.add(index); });
  const root = document.getElementById("report");
  root.replaceChildren(element("h1", {}, report.title),
    report.subtitle ? element("p", { class: "subtitle" }, report.subtitle) : "", contents() || "");
  const choosing = report.groups.length > 1 ? report.sections.map(hasGroups) : [];
  const first = choosing.indexOf(true);
  const last = choosing.lastIndexOf(true);
  let inside = null;
  report.sections.forEach((section, index) => {
    if (index === first) {
      inside = element("div", {});
      root.append(inside);
    }
    (inside && index <= last ? inside : root).append(sectionNode(section, index));
  });
  root.append(element("footer", {}, report.footer));
  if (inside) inside.prepend(chooser());
  else drawAll();
}

build();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
addEventListener("beforeprint", () => { document.documentElement.classList.add("paper"); drawAll(); });
addEventListener("afterprint", () => { document.documentElement.classList.remove("paper"); drawAll(); });
let lastWidth = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === lastWidth) return;
  lastWidth = innerWidth;
  drawAll();
});
