// The query that the form stands for, as JSON and as Python.

import { chosenIn, ownInputs } from "./analyst-items.js";
import { isNumber, isTime, literal } from "./values.js";
import { isPure } from "./words.js";

/**
 * @typedef {{ column: string, sign: string, value: string, values: string[] }} Condition `values` are those of "one of"
 * @typedef {{ column: string, part: string }} Group a width of bins or a part of the calendar; empty for every value
 *
 * @typedef {object} Item a number to compute; where there are several, each has a precision of its own
 * @property {string} what its kind, and the column it is of
 * @property {string} precision σ or half width
 * @property {string} weight of a cost that is divided; empty for 1
 * @property {Record<string, string>} inputs beside the column, by member
 *
 * @typedef {object} State of the form
 * @property {import("./analyst-items.js").Forms} forms of the items that can be asked for
 * @property {any} dataset
 * @property {string} table
 * @property {Condition[]} where
 * @property {Group[]} by
 * @property {Item[]} items
 * @property {string} mechanism the law of the noise that is wished for
 * @property {string} noise
 * @property {string} amount σ or half width of one item, or the cost of all
 * @property {string} clip of one item
 * @property {boolean} reuse
 */

/** The columns of the chosen table by name. */
export const columnsOf = (/** @type {State} */ state) => state.dataset.tables[state.table].columns;

const DISTINCT_MAX = 100; // integers up to so many are groups of their own to begin with
const BINS = 10; // about so many otherwise

/** How a column is cut into groups to begin with: bins of a round width, years, or each of its values. */
export function firstPart(column) {
  if (isTime(column)) return "year";
  const span = column.upper - column.lower;
  if (!isNumber(column) || (column.type === "integer" && span < DISTINCT_MAX)) return "";
  const power = 10 ** Math.floor(Math.log10(span / BINS));
  const width = power * ([1, 2, 5].find((digit) => digit * power >= span / BINS) ?? 10);
  return String(Number(width.toPrecision(1)));
}

/** The values of a condition, of which all signs but one have one. */
function valuesOf(/** @type {State} */ state, /** @type {Condition} */ { column, sign, value, values }) {
  return (sign === "in" ? values : [value]).map((text) => literal(columnsOf(state)[column], text));
}

function groupOf(/** @type {State} */ state, /** @type {Group} */ { column, part }) {
  if (!part) return column;
  return isTime(columnsOf(state)[column]) ? { bucket: { column, by: part } } : { bin: { column, width: Number(part) } };
}

/** Whether each item has a precision of its own, in place of one cost that they share. */
export const isByItem = (/** @type {State} */ { items, noise }) =>
  items.length > 1 && (noise === "sigma" || noise === "half_width");

/** The form of an item of a query. @returns {import("./analyst-items.js").Form} */
export function formOf(/** @type {State} */ state, /** @type {{ what: string }} */ { what }) {
  const [kind] = chosenIn(what);
  return /** @type {import("./analyst-items.js").Form} */ (state.forms.get(kind));
}

/** The columns whose values are counted, by which nothing can be grouped beside that. */
export const countedIn = (/** @type {State} */ state) =>
  state.items
    .filter((item) => formOf(state, item).inputs.column?.kind === "countable")
    .map(({ what }) => chosenIn(what)[1]);

/** Whether the one item stands alone. */
export const isAlone = (/** @type {State} */ state) => formOf(state, state.items[0]).stands_alone;

/** Whether an earlier answer may do. */
export const mayReuse = (/** @type {State} */ state) => formOf(state, state.items[0]).may_reuse;

/** Whether an item is worked out from linear ones, whose precision is a part of the cost. */
export const isWorkedOut = (/** @type {State} */ state) => state.items.some((item) => formOf(state, item).is_composite);

/** Whether an individual has one number in an item, by which Laplace noise is priced. */
export function hasOneNumber(/** @type {State} */ state, /** @type {import("./analyst-items.js").Form} */ form) {
  const isOfEvents = state.dataset.tables[state.table].kind === "events";
  return form.one_number === "always" || (form.one_number === "of individuals" && !isOfEvents);
}

/** The laws of noise that the dataset prices for this query: Laplace noise is for one number of each person. */
export function mechanismsOf(/** @type {State} */ state) {
  if (isPure(state.dataset)) return ["laplace"];
  const [first] = state.items;
  const isInGroups = state.dataset.tables[state.table].kind === "events" && state.by.length > 0;
  const isOne = state.items.length === 1 && hasOneNumber(state, formOf(state, first)) && !isInGroups;
  return isOne ? ["gaussian", "laplace"] : ["gaussian"];
}

/** The law of the noise: the one that is wished for, where it can be had. */
export function mechanismOf(/** @type {State} */ state) {
  const possible = mechanismsOf(state);
  return possible.includes(state.mechanism) ? state.mechanism : possible[0];
}

/** The noise as the interface takes it. */
function noiseOf(/** @type {State} */ state) {
  const { items, noise, amount } = state;
  const stated = isByItem(state) ? items.map((each) => Number(each.precision)) : Number(amount);
  const weights = items.map((each) => Number(each.weight || 1));
  const isDivided = !isByItem(state) && weights.some((each) => each !== weights[0]);
  return { [noise]: stated, ...(noise === "half_width" && { confidence: 0.95 }), ...(isDivided && { weights }) };
}

/** A bound of one person's part, of a query with one item that is not worked out. */
export const mayClip = (/** @type {State} */ state) => state.items.length === 1 && !isWorkedOut(state);

const clipOf = (/** @type {State} */ state) => mayClip(state) && state.clip !== "" && Number(state.clip);

/** The inputs of an item beside its column. @returns {Record<string, number>} */
const inputsOf = (/** @type {State} */ state, /** @type {Item} */ item) =>
  Object.fromEntries(ownInputs(formOf(state, item)).map(([member]) => [member, Number(item.inputs[member])]));

/** The query as the interface takes it. */
export function queryOf(/** @type {State} */ state) {
  const conditions = state.where.map((each) => {
    const values = valuesOf(state, each);
    return { [each.sign]: [{ col: each.column }, each.sign === "in" ? values : values[0]] };
  });
  const clip = clipOf(state);
  return {
    version: 1,
    from: state.table,
    select: state.items.map((item) => {
      const [kind, column] = chosenIn(item.what);
      return { [kind]: { ...(column && { column }), ...inputsOf(state, item) } };
    }),
    ...(conditions.length && { where: conditions.length === 1 ? conditions[0] : { and: conditions } }),
    ...(state.by.length && { group_by: state.by.map((each) => groupOf(state, each)) }),
    ...(clip !== false && { per_individual: { l2_clip: clip } }),
    noise: noiseOf(state),
    ...(mechanismOf(state) === "laplace" && { mechanism: "laplace" }),
    ...(mayReuse(state) && { reuse: state.reuse }),
  };
}

/** @type {Record<string, string>} */
const SIGNS = { eq: "==", ne: "!=", lt: "<", le: "<=", gt: ">", ge: ">=" };

function py(/** @type {unknown} */ value) {
  if (typeof value === "boolean") return value ? "True" : "False";
  return JSON.stringify(value);
}

function pythonCondition(/** @type {State} */ state, /** @type {Condition} */ each) {
  const values = valuesOf(state, each).map(py);
  if (each.sign === "in") return `(col("${each.column}").is_in([${values.join(", ")}]))`;
  return `(col("${each.column}") ${SIGNS[each.sign]} ${values[0]})`;
}

function pythonGroup(/** @type {State} */ state, /** @type {Group} */ { column, part }) {
  if (!part) return py(column);
  return isTime(columnsOf(state)[column]) ? `col("${column}").by("${part}")` : `col("${column}").bins(width=${part})`;
}

const CALLED = { sum: "sum_" };

/** The same query, asked by the client. */
export function pythonOf(/** @type {State} */ state) {
  const chosen = state.items.map(({ what }) => chosenIn(what));
  const called = (/** @type {string} */ kind) => CALLED[kind] ?? kind;
  const where = state.where.map((each) => pythonCondition(state, each)).join(" & ");
  const by = state.by.map((each) => pythonGroup(state, each)).join(", ");
  const usesColumn = where || by.includes("col(");
  const names = new Set(["Client", ...(usesColumn ? ["col"] : []), ...chosen.map(([kind]) => called(kind))]);
  const items = chosen.map(([kind, column], at) => {
    const inputs = Object.entries(inputsOf(state, state.items[at])).map(([name, value]) => `${name}=${value}`);
    return `${called(kind)}(${[...(column ? [py(column)] : []), ...inputs].join(", ")})`;
  });
  const selected = items.length > 1 ? `[${items.join(", ")}]` : items[0];
  const noise = Object.entries(noiseOf(state)).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  if (mechanismOf(state) === "laplace") noise.push('mechanism="laplace"');
  const clip = clipOf(state);
  return [
    `from sparing import ${[...names].join(", ")}`,
    "",
    "with Client() as client:  # SPARING_URL and SPARING_API_KEY",
    "    answer = client.queries.ask(",
    `        dataset=${py(state.dataset.name)}, from_=${py(state.table)}, select=${selected},`,
    where && `        where=${where},`,
    by && `        group_by=[${by}],`,
    clip !== false && `        l2_clip=${clip},`,
    `        ${noise.join(", ")},${state.reuse || !mayReuse(state) ? "" : " reuse=False,"}`,
    "    )",
    `    print(${isWorkedOut(state) ? "answer.averages" : "answer.values, answer.half_width_95"})`,
  ]
    .filter((line, at) => line || at === 1)
    .join("\n");
}
