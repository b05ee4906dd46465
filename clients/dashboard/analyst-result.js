// An answer: a number or a chart with error bars, the same as JSON and CSV.

import { cautions, coverageOf, ofItem } from "./analyst-preview.js";
import { around } from "./chart.js";
import { download, h, table } from "./dom.js";
import { figure } from "./figure.js";
import { csv, measured, number, rounded } from "./format.js";
import { activeWords, worstCaseWords } from "./words.js";

const CHARTED_MAX = 2000;
const LISTED_MAX = 500;
const NAMED_MAX = 3;

/**
 * @typedef {object} Row a number that was asked for
 * @property {string} item
 * @property {string} name
 * @property {number} value not a number where there is none
 * @property {number} low
 * @property {number} high
 * @property {number} width the distance to the further end
 */

/** An answer of a dataset, which may be gone; on a page of its own it has no link to it. */
export function resultOf(answer, dataset, { isForNobody = false, isAlone = false } = {}) {
  const rows = rowsOf(answer);
  const share = shareOf(answer.axes);
  const json = () => download(`${answer.id}.json`, "application/json", JSON.stringify(answer, null, 2));
  const cells = () =>
    rows.map((row) => [row.item, row.name, row.value, row.low, row.high, row.width, answer.coverage_certified]);
  const columns = ["select", "name", "value", "low_95", "high_95", "half_width_95", "coverage_certified"];
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
      caveats(answer),
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
  if (answer.estimates) return estimatesOf(answer.estimates.rows);
  const items = answer.axes.at(-1).select;
  const places = items.flatMap((item, at) => new Array(item.size).fill(at)); // of a group's numbers, their items
  return answer.values.map((value, at) => {
    const place = places[at % places.length];
    const width = ofItem(answer.half_width_95, place);
    const name = nameOf(answer.labels[at], at, items.length > 1);
    return { item: items[place].select, name, value, low: value - width, high: value + width, width };
  });
}

/** @returns {Row[]} */
function estimatesOf(/** @type {any[]} */ rows) {
  const areSeveral = new Set(rows.map(({ label }) => label.select)).size > 1;
  return rows.map(({ label, ...row }, at) => {
    const [value, low, high] = [row.value ?? Number.NaN, row.low ?? -Infinity, row.high ?? Infinity];
    const width = Math.max(high - value, value - low);
    return { item: label.select, name: nameOf(label, at, areSeveral), value, low, high, width };
  });
}

/** Why an estimate may be less than its number says. */
function caveats(answer) {
  const rows = answer.estimates?.rows ?? [];
  const named = (/** @type {any[]} */ some) =>
    [
      ...some
        .slice(0, NAMED_MAX)
        .map(({ label: { select, ...groups } }) => [select, ...Object.values(groups)].join(" of ")),
      ...(some.length > NAMED_MAX ? [`${some.length - NAMED_MAX} more`] : []),
    ].join("; ");
  const few = rows.filter((row) => !row.is_reliable);
  const coarse = rows.filter((row) => row.is_interpolated);
  return [
    few.length > 0 && ` Hardly anybody was counted for ${named(few)}, and the noise may be all there is.`,
    coarse.length > 0 &&
      ` More than a tenth of the rows are in the bin of ${named(coarse)}, within which it is interpolated.`,
  ];
}

function nameOf(label, /** @type {number} */ at, /** @type {boolean} */ areSeveral) {
  if (!label) return String(at);
  const { select, ...groups } = label;
  return Object.values(groups).map(String).join(", ") || (areSeveral ? select : String(at));
}

function withinWords(/** @type {Row[]} */ rows) {
  const widths = new Set(rows.map((row) => row.width));
  const within = widths.size === 1 && isEven(rows[0]) ? `± ${rounded(rows[0].width)}` : "its error bar";
  const alone = rows.length === 1 ? "" : ", each number by itself";
  return `Within ${within} of what was counted with a probability of at least 95 %${alone}`;
}

/** One number large, a number for each item as a list, and groups as a chart for each item. */
function shownNumbers(/** @type {Row[]} */ rows) {
  const items = [...new Set(rows.map((row) => row.item))];
  const [first] = rows;
  if (rows.length === 1) {
    return h.p({ class: "result" }, valueText(first), " ", h.small(errorText(first)));
  }
  if (items.length === rows.length) return table("The numbers", columnsOf("What"), rows);
  return items.map((item) => {
    const own = rows.filter((row) => row.item === item);
    if (own.every((row) => Number.isNaN(row.value))) return table(item, columnsOf("Group"), own);
    return figure(chartOf(own, items.length > 1 ? `${item}: ` : ""));
  });
}

const columnsOf = (/** @type {string} */ title) => [
  { title, cell: (/** @type {Row} */ row) => row.name },
  { title: "Value", number: true, cell: valueText },
  { title: "95 % error bar", number: true, cell: errorText },
];

const valueText = (/** @type {Row} */ row) =>
  Number.isNaN(row.value) ? "no value" : measured(row.value, Number.isFinite(row.width) ? row.width : row.value);

/** Whether both ends are as far away: those of a number that was counted, and of few that are worked out. */
const isEven = (/** @type {Row} */ { value, low, high, width }) => Math.abs(low + high - 2 * value) <= 1e-9 * width;

/** The half width, or both ends. */
function errorText(/** @type {Row} */ row) {
  const { low, high, width } = row;
  if (isEven(row)) return `± ${rounded(width)}`;
  if (!Number.isFinite(high - low)) return "any number";
  return `${measured(low, high - low)} to ${measured(high, high - low)}`;
}

const told = (/** @type {Row} */ row) =>
  isEven(row) ? `${valueText(row)} ${errorText(row)}` : `${valueText(row)} (${errorText(row)})`;

/** @returns {import("./figure.js").Told} each number with its error bar */
function chartOf(/** @type {Row[]} */ all, /** @type {string} */ of) {
  const rows = all.filter((row) => Number.isFinite(row.value));
  const shown = rows.slice(0, CHARTED_MAX);
  const top = rows.reduce((best, row) => (row.value > best.value ? row : best));
  const cut = rows.length > CHARTED_MAX ? `; the first ${number(CHARTED_MAX)} of ${number(rows.length)}` : "";
  return {
    title: `${of}${top.name} is largest with ${told(top)}${cut}`,
    columns: columnsOf("Group"),
    rows: all.slice(0, LISTED_MAX),
    drawing: drawingOf(shown),
  };
}

/** @returns {import("./chart.js").Drawing} bars of bins where the groups are these, and dots side by side otherwise */
function drawingOf(/** @type {Row[]} */ rows) {
  const ends = rows.map((row) => endsOf(row));
  const [lowest, highest] = [Math.min(0, ...ends.flat()), Math.max(0, ...ends.flat())];
  const bins = rows.map((row) => binOf(row.name));
  const areBins = bins.every(([from, to]) => from < to);
  const place = (/** @type {number} */ at) => (areBins ? (bins[at][0] + bins[at][1]) / 2 : at);
  return {
    x: areBins
      ? { range: [bins[0][0], bins[bins.length - 1][1]] }
      : { range: around(rows.map((_, at) => at)), names: rows.map((row) => row.name) },
    y: { range: [lowest - (highest - lowest) / 20, highest + (highest - lowest) / 20] },
    bars: areBins ? rows.map((row, at) => ({ from: bins[at][0], to: bins[at][1], ...marked(row) })) : [],
    dots: rows.map((row, at) => ({ x: place(at), ends: ends[at], ...marked(row), ring: areBins })),
  };
}

/** The ends of an error bar; those of a number without any are at the number. @returns {[number, number]} */
const endsOf = (/** @type {Row} */ { value, low, high }) => [
  Number.isFinite(low) ? low : value,
  Number.isFinite(high) ? high : value,
];

/** @returns {{ y: number, colour: "blue", tip: string }} */
const marked = (/** @type {Row} */ row) => ({ y: row.value, colour: "blue", tip: `${row.name}: ${told(row)}` });

/** The edges of a bin of numbers from its label, `[1.5, 2)`; of another label none that are in order. */
function binOf(/** @type {string} */ name) {
  const [, from = "", to = ""] = /^\[([^,]+), ([^,]+)[)\]]$/.exec(name) ?? [];
  return [from, to].map((text) => (text ? Number(text) : Number.NaN));
}
