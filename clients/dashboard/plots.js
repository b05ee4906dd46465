// Charts: a sentence as title, direct labels, at most two hues and grey, and a table of the data behind each.

import { h, fill, table } from "./dom.js";

const SCRIPT = "/assets/charts.js";
// The one script that is loaded by address; the policy of the pages lets no other be made from text.
const address =
  globalThis.trustedTypes?.createPolicy("charts", { createScriptURL: () => SCRIPT }).createScriptURL(SCRIPT) ?? SCRIPT;
let loading = null;
const drawn = new Map();

function library() {
  loading ??= new Promise((resolve, reject) => {
    const script = h.script();
    script.src = address;
    script.onload = () => resolve(globalThis.Plotly);
    script.onerror = () => reject(new Error("The chart library did not load."));
    document.head.append(script);
  });
  return loading;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * A figure. `make()` gives {title, traces, layout, columns, rows}; call `update()` when its data has changed.
 */
export function figure(make, { low = false } = {}) {
  const title = h.figcaption();
  const chart = h.div({ class: low ? "chart low" : "chart", role: "img" });
  const data = h.div({ class: "table-small" });
  const behind = h.details(h.summary("The data as a table"), data);
  const node = h.figure(title, chart, behind);
  behind.addEventListener("toggle", () => behind.open && drawTable());
  let told = null;

  function drawTable() {
    if (told) fill(data, table(told.title, told.columns, told.rows));
  }

  async function update() {
    told = make();
    told.setColours?.(
      Object.fromEntries(
        ["ink", "soft", "line", "blue", "pale", "orange"].map((name) => [
          name,
          colour(name === "pale" ? "--blue-soft" : `--${name}`),
        ]),
      ),
    );
    title.textContent = told.title;
    chart.setAttribute("aria-label", `Chart: ${told.title}`);
    if (behind.open) drawTable();
    const Plotly = await library().catch((error) => fill(chart, h.p({ class: "empty" }, error.message)) && null);
    if (Plotly && chart.isConnected)
      await Plotly.react(chart, told.traces, layout(told.layout), {
        displayModeBar: false,
        responsive: true,
        staticPlot: false,
        doubleClick: false,
        scrollZoom: false,
      });
  }

  drawn.set(node, update);
  return { node, update };
}

function layout(own) {
  const axis = {
    gridcolor: colour("--line"),
    zeroline: false,
    linecolor: colour("--soft"),
    tickcolor: colour("--line"),
    fixedrange: true,
    automargin: true,
    title: { standoff: 8, font: { size: 12 } },
  };
  return {
    font: { family: "system-ui, sans-serif", size: 13, color: colour("--soft") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 44, r: 12, t: 8, b: 40 },
    showlegend: false,
    hoverlabel: { bgcolor: colour("--paper"), bordercolor: colour("--soft"), font: { color: colour("--ink") } },
    ...own,
    xaxis: titled({ ...axis, showgrid: false, ...own.xaxis }),
    yaxis: titled({ ...axis, ...own.yaxis }),
  };
}

const titled = (axis) => ({ ...axis, title: { standoff: 8, font: { size: 12 }, ...axis.title } });

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const [node, update] of drawn) node.isConnected ? update() : drawn.delete(node);
});

/** A direct label at a point of the chart. */
export const label = (text, x, y, color, more = {}) => ({
  text,
  x,
  y,
  xanchor: "left",
  yanchor: "bottom",
  showarrow: false,
  font: { color, size: 12 },
  ...more,
});
