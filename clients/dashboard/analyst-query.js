// The query that the form stands for, as JSON and as Python.

/**
 * @typedef {{ column: string, sign: string, value: unknown }} Condition
 *
 * @typedef {object} State of the form
 * @property {any} dataset
 * @property {string} table
 * @property {Condition[]} where
 * @property {string[]} by
 * @property {string} noise
 * @property {string} amount
 * @property {string} clip
 * @property {string} what a functional, and the column it is of
 * @property {boolean} reuse
 */

/** The columns of the chosen table by name. */
export const columnsOf = (/** @type {State} */ state) => state.dataset.tables[state.table].columns;

/** A value of the column's domain, to begin with. */
export function firstValue(column) {
  if (column.type === "boolean") return "true";
  if (column.type === "category") return column.categories ? column.categories[0] : 0;
  return column.lower;
}

function literal(column, text) {
  if (column.type === "boolean") return text === "true" || text === true;
  if (column.type === "date" || column.type === "datetime") return String(text);
  if (column.type !== "category") return Number(text);
  const known = column.categories?.find((each) => String(each) === String(text));
  return known ?? (column.categories ? text : Number(text));
}

/** The values of a condition, of which all signs but one have one. */
function valuesOf(/** @type {State} */ state, /** @type {Condition} */ { column, sign, value }) {
  const texts = sign === "in" ? String(value).split(",") : [value];
  return texts.map((text) => literal(columnsOf(state)[column], typeof text === "string" ? text.trim() : text));
}

/** The query as the interface takes it. */
export function queryOf(/** @type {State} */ state) {
  const [kind, column] = state.what.split(" ");
  const conditions = state.where.map((each) => {
    const values = valuesOf(state, each);
    return { [each.sign]: [{ col: each.column }, each.sign === "in" ? values : values[0]] };
  });
  const amount = Number(state.amount);
  return {
    version: 1,
    from: state.table,
    select: [{ [kind]: column ? { column } : {} }],
    ...(conditions.length && { where: conditions.length === 1 ? conditions[0] : { and: conditions } }),
    ...(state.by.length && { group_by: state.by }),
    ...(state.clip && { per_individual: { l2_clip: Number(state.clip) } }),
    noise: state.noise === "half_width" ? { half_width: amount, confidence: 0.95 } : { [state.noise]: amount },
    reuse: state.reuse,
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

/** The same query, asked by the client. */
export function pythonOf(/** @type {State} */ state) {
  const [kind, column] = state.what.split(" ");
  const where = state.where.map((each) => pythonCondition(state, each)).join(" & ");
  const called = kind === "sum" ? "sum_" : kind;
  const names = ["Client", ...(where ? ["col"] : []), called];
  const selected = column ? `${called}("${column}")` : `${called}()`;
  const confidence = state.noise === "half_width" ? ", confidence=0.95" : "";
  return [
    `from sparing import ${names.join(", ")}`,
    "",
    "with Client() as client:  # SPARING_URL and SPARING_API_KEY",
    "    answer = client.queries.ask(",
    `        dataset=${py(state.dataset.name)}, from_=${py(state.table)}, select=${selected},`,
    where && `        where=${where},`,
    state.by.length > 0 && `        group_by=${py(state.by)},`,
    state.clip && `        l2_clip=${state.clip},`,
    `        ${state.noise}=${state.amount}${confidence},${state.reuse ? "" : " reuse=False,"}`,
    "    )",
    "    print(answer.values, answer.half_width_95)",
  ]
    .filter((line, at) => line || at === 1)
    .join("\n");
}
