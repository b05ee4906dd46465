// An answer: a number or a chart with error bars, the same as JSON and CSV.

import { cautions, coverageOf, ofItem } from "./analyst-preview.js";
import { around } from "./chart.js";
import { download, h, table } from "./dom.js";
import { figure } from "./figure.js";
import { csv, measured, number, rounded } from "./format.js";
import { activeWords, worstCaseWords } from "./words.js";

const CHARTED_MAX = 2000;
const LISTED_MAX = 500;

/** @typedef {{ item: string, name: string, value: number, width: number }} Row a number, and its half width */

/** An answer of a dataset, which may be gone; on a page of its own it has no link to it. */
export function resultOf(answer, dataset, { isForNobody = false, isAlone = false } = {}) {
  const rows = rowsOf(answer);
  const share = shareOf(answer.axes);
  const json = () => download(`${answer.id}.json`, "application/json", JSON.stringify(answer, null, 2));
  const cells = () => rows.map((row) => [row.item, row.name, row.value, row.width, answer.coverage_certified]);
  const columns = ["select", "name", "value", "half_width_95", "coverage_certified"];
  const sheet = () => download(`${answer.id}.csv`, "text/csv", csv(columns, cells()));
  return h.section(
    shownNumbers(rows),
    cautions(answer.warnings ?? [], isForNobody),
    h.p(
      { class: "soft" },
      `${withinWords(rows)}. `,
      answer.mechanism === "laplace" && `The noise is Laplace noise with scale ${rounded(answer.scale)}. `,
      share !== null ? activeWords(share) : coverageOf(answer),
      answer.notes.map((/** @type {string} */ words) => ` ${words}`),
      answer.reused && " It cost nothing.",
    ),
    h.p({ class: "soft" }, worstCaseWords(answer, dataset)),
    h.div(
      { class: "row" },
      h.button({ type: "button", onclick: json }, "JSON"),
      h.button({ type: "button", onclick: sheet }, "CSV"),
      !isAlone && h.a({ href: `/analyst/answer/${answer.id}` }, "Its own address"),
    ),
  );
}

/** The share that those have left who are counted as active; null of an answer to another query. */
export function shareOf(/** @type {any[]} */ axes) {
  const [, share] = /^active\((.+)\)$/.exec(axes.at(-1).select[0].select) ?? [];
  return share === undefined ? null : Number(share);
}

/** @returns {Row[]} */
function rowsOf(answer) {
  const items = answer.axes.at(-1).select;
  const places = items.flatMap((item, at) => new Array(item.size).fill(at)); // of a group's numbers, their items
  return answer.values.map((value, at) => {
    const place = places[at % places.length];
    return {
      item: items[place].select,
      name: nameOf(answer.labels[at], at, items.length > 1),
      value,
      width: ofItem(answer.half_width_95, place),
    };
  });
}

function nameOf(label, /** @type {number} */ at, /** @type {boolean} */ areSeveral) {
  if (!label) return String(at);
  const { select, ...groups } = label;
  return Object.values(groups).map(String).join(", ") || (areSeveral ? select : String(at));
}

function withinWords(/** @type {Row[]} */ rows) {
  const widths = new Set(rows.map((row) => row.width));
  const within = widths.size === 1 ? `± ${rounded(rows[0].width)}` : "its error bar";
  const alone = rows.length === 1 ? "" : ", each number by itself";
  return `Within ${within} of what was counted with a probability of at least 95 %${alone}`;
}

/** One number large, a number for each item as a list, and groups as a chart for each item. */
function shownNumbers(/** @type {Row[]} */ rows) {
  const items = [...new Set(rows.map((row) => row.item))];
  const [first] = rows;
  if (rows.length === 1) {
    return h.p({ class: "result" }, measured(first.value, first.width), " ", h.small(`± ${rounded(first.width)}`));
  }
  if (items.length === rows.length) return table("The numbers", columnsOf("What"), rows);
  return items.map((item) =>
    figure(
      chartOf(
        rows.filter((row) => row.item === item),
        items.length > 1 ? `${item}: ` : "",
      ),
    ),
  );
}

const columnsOf = (/** @type {string} */ title) => [
  { title, cell: (/** @type {Row} */ row) => row.name },
  { title: "Value", number: true, cell: (/** @type {Row} */ row) => measured(row.value, row.width) },
  { title: "95 % error bar", number: true, cell: (/** @type {Row} */ row) => `± ${rounded(row.width)}` },
];

const told = (/** @type {Row} */ row) => `${measured(row.value, row.width)} ± ${rounded(row.width)}`;

/** @returns {import("./figure.js").Told} each number with its error bar */
function chartOf(/** @type {Row[]} */ rows, /** @type {string} */ of) {
  const shown = rows.slice(0, CHARTED_MAX);
  const top = rows.reduce((best, row) => (row.value > best.value ? row : best));
  const cut = rows.length > CHARTED_MAX ? `; the first ${number(CHARTED_MAX)} of ${number(rows.length)}` : "";
  return {
    title: `${of}${top.name} is largest with ${told(top)}${cut}`,
    columns: columnsOf("Group"),
    rows: shown.slice(0, LISTED_MAX),
    drawing: drawingOf(shown, top.width),
  };
}

/** @returns {import("./chart.js").Drawing} bars of bins where the groups are these, and dots side by side otherwise */
function drawingOf(/** @type {Row[]} */ rows, /** @type {number} */ width) {
  const values = rows.map((row) => row.value);
  const bins = rows.map((row) => binOf(row.name));
  const areBins = bins.every(([from, to]) => from < to);
  const place = (/** @type {number} */ at) => (areBins ? (bins[at][0] + bins[at][1]) / 2 : at);
  return {
    x: areBins
      ? { range: [bins[0][0], bins[bins.length - 1][1]] }
      : { range: around(rows.map((_, at) => at)), names: rows.map((row) => row.name) },
    y: { range: [Math.min(0, ...values) - 1.1 * width, Math.max(0, ...values) + 1.1 * width] },
    bars: areBins ? rows.map((row, at) => ({ from: bins[at][0], to: bins[at][1], ...marked(row) })) : [],
    dots: rows.map((row, at) => ({ x: place(at), error: row.width, ...marked(row), ring: areBins })),
  };
}

/** @returns {{ y: number, colour: "blue", tip: string }} */
const marked = (/** @type {Row} */ row) => ({ y: row.value, colour: "blue", tip: `${row.name}: ${told(row)}` });

/** The edges of a bin of numbers from its label, `[1.5, 2)`; of another label none that are in order. */
function binOf(/** @type {string} */ name) {
  const [, from = "", to = ""] = /^\[([^,]+), ([^,]+)[)\]]$/.exec(name) ?? [];
  return [from, to].map((text) => (text ? Number(text) : Number.NaN));
}
