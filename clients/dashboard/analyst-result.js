// An answer: a number or a chart with error bars, the same as JSON and CSV.

import { download, h, table } from "./dom.js";
import { csv, number } from "./format.js";
import { figure } from "./plots.js";

const CHARTED_MAX = 2000;
const LISTED_MAX = 500;

export function resultOf(answer) {
  const width = answer.half_width_95;
  const rows = answer.values.map((value, at) => ({
    name: nameOf(answer.labels?.[at], at),
    value,
    low: value - width,
    high: value + width,
  }));
  const one = rows.length === 1;
  const chart = one ? null : figure(() => chartOf(rows, width));
  if (chart) setTimeout(chart.update);
  return h.section(
    one ? h.p({ class: "result" }, number(rows[0].value), " ", h.small(`± ${number(width)}`)) : chart.node,
    h.p(
      { class: "soft" },
      `Within ± ${number(width)} of what was counted with a probability of at least 95 %${one ? "" : ", each number by itself"}.`,
      answer.coverage_certified
        ? " No one can have been left out for lack of budget."
        : " People may have been left out for lack of budget.",
      answer.reused && " This answer was given before, and cost nothing.",
    ),
    h.div(
      { class: "row" },
      h.button(
        {
          type: "button",
          onclick: () => download(`${answer.id}.json`, "application/json", JSON.stringify(answer, null, 2)),
        },
        "JSON",
      ),
      h.button(
        {
          type: "button",
          onclick: () =>
            download(
              `${answer.id}.csv`,
              "text/csv",
              csv(
                ["name", "value", "half_width_95"],
                rows.map((row) => [row.name, row.value, width]),
              ),
            ),
        },
        "CSV",
      ),
      h.a({ href: `/analyst/answer/${answer.id}` }, "Its own address"),
    ),
    !one && rows.length <= LISTED_MAX && h.details(h.summary("All numbers"), table("The answer", columns(width), rows)),
  );
}

const columns = (width) => [
  { title: "Group", cell: (row) => row.name },
  { title: "Value", number: true, cell: (row) => number(row.value) },
  { title: "95 % error bar", number: true, cell: () => `± ${number(width)}` },
];

function nameOf(label, at) {
  if (label === undefined || label === null) return String(at);
  if (typeof label !== "object") return String(label);
  const { select, ...groups } = label;
  const told = Object.values(groups).map(String).join(", ");
  return [told, typeof select === "string" && told === "" ? select : null].filter(Boolean).join(" ") || String(at);
}

function chartOf(rows, width) {
  const shown = rows.slice(0, CHARTED_MAX);
  const top = rows.reduce((best, row) => (row.value > best.value ? row : best), rows[0]);
  return {
    title: `${top.name} is largest with ${number(top.value)} ± ${number(width)}${rows.length > CHARTED_MAX ? `; the first ${number(CHARTED_MAX)} of ${number(rows.length)}` : ""}`,
    columns: columns(width),
    rows: shown.slice(0, LISTED_MAX),
    get traces() {
      const { blue, soft } = this.colours;
      const bars = { array: shown.map(() => width), color: soft, thickness: 1, width: shown.length > 60 ? 0 : 4 };
      return [
        {
          type: "scatter",
          mode: "markers",
          x: shown.map((row) => row.name),
          y: shown.map((row) => row.value),
          error_y: bars,
          marker: { color: blue, size: shown.length > 200 ? 4 : 8 },
          hovertemplate: "%{x}: %{y:,.6~g}<extra></extra>",
        },
      ];
    },
    layout: { xaxis: { type: "category", nticks: 20 }, yaxis: { rangemode: "tozero" } },
    setColours(colours) {
      this.colours = colours;
    },
  };
}
