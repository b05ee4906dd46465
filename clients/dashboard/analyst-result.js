// An answer: a number or a chart with error bars, the same as JSON and CSV.

import { around } from "./chart.js";
import { download, h } from "./dom.js";
import { figure } from "./figure.js";
import { csv, number } from "./format.js";

const CHARTED_MAX = 2000;
const LISTED_MAX = 500;

export function resultOf(answer) {
  const width = answer.half_width_95;
  const rows = answer.values.map((value, at) => ({ name: nameOf(answer.labels?.[at], at), value }));
  const one = rows.length === 1;
  const within = `Within ± ${number(width)} of what was counted with a probability of at least 95 %`;
  const json = () => download(`${answer.id}.json`, "application/json", JSON.stringify(answer, null, 2));
  const cells = () => rows.map((row) => [row.name, row.value, width]);
  const sheet = () => download(`${answer.id}.csv`, "text/csv", csv(["name", "value", "half_width_95"], cells()));
  return h.section(
    one
      ? h.p({ class: "result" }, number(rows[0].value), " ", h.small(`± ${number(width)}`))
      : figure(chartOf(rows, width)),
    h.p(
      { class: "soft" },
      `${within}${one ? "" : ", each number by itself"}.`,
      answer.coverage_certified
        ? " No one can have been left out for lack of budget."
        : " People may have been left out for lack of budget.",
      answer.reused && " This answer was given before, and cost nothing.",
    ),
    h.div(
      { class: "row" },
      h.button({ type: "button", onclick: json }, "JSON"),
      h.button({ type: "button", onclick: sheet }, "CSV"),
      h.a({ href: `/analyst/answer/${answer.id}` }, "Its own address"),
    ),
  );
}

function nameOf(label, at) {
  if (label === undefined || label === null) return String(at);
  if (typeof label !== "object") return String(label);
  const { select, ...groups } = label;
  const told = Object.values(groups).map(String).join(", ");
  return told || (typeof select === "string" && select) || String(at);
}

/** @returns {import("./figure.js").Told} each number with its error bar */
function chartOf(rows, width) {
  const shown = rows.slice(0, CHARTED_MAX);
  const top = rows.reduce((best, row) => (row.value > best.value ? row : best));
  const cut = rows.length > CHARTED_MAX ? `; the first ${number(CHARTED_MAX)} of ${number(rows.length)}` : "";
  const values = shown.map((row) => row.value);
  const [least, most] = [Math.min(0, ...values) - 1.1 * width, Math.max(0, ...values) + 1.1 * width];
  return {
    title: `${top.name} is largest with ${number(top.value)} ± ${number(width)}${cut}`,
    columns: [
      { title: "Group", cell: (row) => row.name },
      { title: "Value", number: true, cell: (row) => number(row.value) },
      { title: "95 % error bar", number: true, cell: () => `± ${number(width)}` },
    ],
    rows: shown.slice(0, LISTED_MAX),
    drawing: {
      x: { range: around(shown.map((_, at) => at)), names: shown.map((row) => row.name) },
      y: { range: [least, most] },
      dots: shown.map((row, at) => ({
        x: at,
        y: row.value,
        error: width,
        colour: "blue",
        tip: `${row.name}: ${number(row.value)} ± ${number(width)}`,
      })),
    },
  };
}
