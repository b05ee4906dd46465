// The controls of the query form, which write into its state.

import { choiceOf, chosenIn, columnsFor, ownInputs } from "./analyst-items.js";
import {
  columnsOf,
  countedIn,
  firstPart,
  formOf,
  hasOneNumber,
  isAlone,
  isByItem,
  isWorkedOut,
  mayClip,
  mayReuse,
  mechanismOf,
  mechanismsOf,
} from "./analyst-query.js";
import { get, path } from "./api.js";
import { columnWords, entriesOf, individualsOf } from "./columns.js";
import { check, field, h, select } from "./dom.js";
import { firstValue, hasValue, isNumber, isTime, listedOf, setter, valueControl } from "./values.js";
import { isPure } from "./words.js";

/**
 * @typedef {import("./analyst-query.js").State} State
 * @typedef {(redraw: boolean) => void} Changed the form is drawn anew, or only what it makes
 */

/** @type {[string, string][]} */
const EQUALITY = [
  ["eq", "="],
  ["ne", "≠"],
  ["in", "one of"],
];
/** @type {[string, string][]} */
const ORDER = [
  ["lt", "<"],
  ["le", "≤"],
  ["gt", ">"],
  ["ge", "≥"],
];
/** @type {[string, string, string, string][]} kinds, in words, as an item's own, and the amount to begin with */
const NOISES = [
  ["share", "worst case, share of the budget", "", "0.01"],
  ["half_width", "error bar ±, 95 %", "error bar ±", "40"],
  ["sigma", "standard deviation σ", "σ", "20"],
  ["rho", "worst case in ρ", "", "0.001"],
];
/** The precisions of what is worked out: a part of the cost for each linear item. */
const OF_COST = ["share", "rho"];
/** @type {[string, string, string, string]} of Laplace noise alone */
const SCALE = ["scale", "scale b of the Laplace noise", "", "20"];
/** @type {[string, string, string, string]} where charges are ε */
const WORST_EPSILON = ["rho", "worst case in ε", "", "0.01"];
/** @type {[string, string][]} */
const MECHANISMS = [
  ["gaussian", "Gaussian"],
  ["laplace", "Laplace"],
];
const UNITS = ["year", "quarter", "month", "week", "day", "weekday"];

/** @returns {import("./analyst-query.js").Item} */
export function newItem(/** @type {import("./analyst-items.js").Forms} */ forms, /** @type {string} */ what) {
  const [kind] = chosenIn(what);
  const own = ownInputs(/** @type {import("./analyst-items.js").Form} */ (forms.get(kind)));
  const inputs = Object.fromEntries(own.map(([member, { value }]) => [member, String(value)]));
  return { what, precision: "", weight: "", inputs };
}

/** The ways to state how much noise of the query's law there is. */
function noisesOf(/** @type {State} */ state) {
  if (isWorkedOut(state)) return NOISES.filter(([kind]) => OF_COST.includes(kind));
  const listed = mechanismOf(state) === "laplace" ? [...NOISES, SCALE] : NOISES;
  return isPure(state.dataset) ? listed.map((each) => (each[0] === "rho" ? WORST_EPSILON : each)) : listed;
}

/** States the noise anew where it cannot be stated so any more; no group is by a column whose values are counted. */
function settle(/** @type {State} */ state) {
  const noises = noisesOf(state);
  if (!noises.some(([kind]) => kind === state.noise)) [[state.noise, , , state.amount]] = noises;
  state.by = state.by.filter(({ column }) => !countedIn(state).includes(column));
}

export function controlsOf(/** @type {State} */ state, /** @type {any[]} */ datasets, /** @type {Changed} */ changed) {
  settle(state);
  const columns = Object.keys(columnsOf(state)).filter((name) => hasValue(columnsOf(state)[name]));
  return [
    sourceFields(state, datasets, changed),
    itemFields(state, changed),
    conditionFields(state, columns, changed),
    columns.length > 0 && mayGroup(state) && groupFields(state, columns, changed),
    noiseFields(state, changed),
  ];
}

function sourceFields(/** @type {State} */ state, /** @type {any[]} */ datasets, /** @type {Changed} */ changed) {
  const from = (/** @type {any} */ dataset, /** @type {string} */ table) => {
    const isOther = isPure(dataset) !== isPure(state.dataset);
    Object.assign(state, { dataset, table, where: [], by: [], items: [newItem(state.forms, "count")] });
    if (isOther) [[state.noise, , , state.amount]] = noisesOf(state);
    changed(true);
  };
  const names = datasets.map((each) => each.name);
  const tables = Object.keys(state.dataset.tables);
  const dataset = select("dataset", names, state.dataset.name, {
    onchange: async () => {
      const chosen = await get(path("datasets", dataset.value));
      if (dataset.value === chosen.name) from(chosen, individualsOf(chosen)); // not another since
    },
  });
  const table = select("table", tables, state.table, { onchange: () => from(state.dataset, table.value) });
  return h.div({ class: "fields" }, field("Dataset", dataset), field("From", table));
}

/** What is computed: one number or several, each with its own precision or its part of the cost. */
function itemFields(/** @type {State} */ state, /** @type {Changed} */ changed) {
  const kinds = kindsOf(state);
  const isOne = isAlone(state) || isPure(state.dataset);
  const mayStandBeside = (/** @type {string} */ what) =>
    !formOf(state, { what }).stands_alone && !state.items.some((each) => each.what === what);
  const free = isOne ? [] : kinds.filter(([what]) => mayStandBeside(what));
  const add = () => {
    state.items.push(newItem(state.forms, free[0][0]));
    if (isByItem(state)) for (const each of state.items) each.precision ||= amountFor(state, each.what);
    changed(true);
  };
  const button = h.button({ type: "button", disabled: !free.length, onclick: add }, "Add another number");
  return h.div(
    { class: "stack" },
    state.items.map((_, at) => itemForm(state, kinds, at, changed)),
    !isPure(state.dataset) && h.div(button),
  );
}

/** Whether groups can be asked for: of events an individual may be in several, which pure DP does not price. */
const mayGroup = (/** @type {State} */ state) => !isPure(state.dataset) || state.table === individualsOf(state.dataset);

/** @returns {[string, string][]} what can be computed from the columns of the table */
function kindsOf(/** @type {State} */ state) {
  const { kind } = state.dataset.tables[state.table];
  const isOffered = (/** @type {import("./analyst-items.js").Form} */ form) =>
    (form.table === null || form.table === kind) &&
    !(form.stands_alone && state.items.length > 1) &&
    (!isPure(state.dataset) || hasOneNumber(state, form));
  return [...state.forms.values()]
    .filter(isOffered)
    .flatMap((form) =>
      columnsFor(form, columnsOf(state)).map((name) => [
        choiceOf(form.kind, name),
        form.words.replace("{column}", () => name),
      ]),
    );
}

/** A precision at which an item costs as much as a count at the form's amount: wider by the bound of its column. */
function amountFor(/** @type {State} */ state, /** @type {string} */ what) {
  const [, name] = chosenIn(what);
  const column = columnsOf(state)[name];
  const isOfNumbers = formOf(state, { what }).inputs.column?.kind === "numbers";
  const bound = isOfNumbers ? Math.max(Math.abs(column.lower), Math.abs(column.upper)) : 1;
  return String(Number((Number(state.amount) * bound).toPrecision(3)));
}

function itemForm(
  /** @type {State} */ state,
  /** @type {[string, string][]} */ kinds,
  /** @type {number} */ at,
  /** @type {Changed} */ changed,
) {
  const item = state.items[at];
  const areSeveral = state.items.length > 1;
  const form = formOf(state, item);
  const laws = String(mechanismsOf(state));
  const counted = String(countedIn(state));
  const renamed = () => {
    Object.assign(item, { ...newItem(state.forms, item.what), weight: item.weight });
    if (isByItem(state)) item.precision = amountFor(state, item.what);
    const isOther = form !== formOf(state, item) || laws !== String(mechanismsOf(state));
    changed(areSeveral || isOther || counted !== String(countedIn(state)));
  };
  const remove = () => {
    state.items.splice(at, 1);
    changed(true);
  };
  const tell = () => changed(false);
  const positive = { type: "number", min: "0", step: "any" };
  const precision = { ...positive, value: item.precision, oninput: setter(item, "precision", tell) };
  const own = ownInputs(form).map(([member, { label, hint }]) => {
    const share = { ...positive, max: "1", value: item.inputs[member], oninput: setter(item.inputs, member, tell) };
    return field(label, h.input(share), hint);
  });
  const weight = { ...positive, value: item.weight, placeholder: "1", oninput: setter(item, "weight", tell) };
  const [, , sign] = NOISES.find(([kind]) => kind === state.noise) ?? NOISES[0];
  return h.div(
    { class: "fields" },
    field("What", select("what", kinds, item.what, { onchange: setter(item, "what", renamed) })),
    own,
    isByItem(state) && field(`Its ${sign}`, h.input(precision)),
    areSeveral && !isByItem(state) && field("Its part of the cost", h.input(weight)),
    areSeveral && h.button({ type: "button", class: "plain", onclick: remove }, "Remove"),
  );
}

function conditionFields(/** @type {State} */ state, /** @type {string[]} */ columns, /** @type {Changed} */ changed) {
  const add = () => {
    const [column] = columns;
    state.where.push({ column, sign: "eq", value: firstValue(columnsOf(state)[column]), values: [] });
    changed(true);
  };
  return h.div(
    { class: "field" },
    "Where",
    state.where.map((_, at) => conditionForm(state, columns, at, changed)),
    h.div(h.button({ type: "button", disabled: columns.length === 0, onclick: add }, "Add a condition")),
  );
}

function conditionForm(
  /** @type {State} */ state,
  /** @type {string[]} */ columns,
  /** @type {number} */ at,
  /** @type {Changed} */ changed,
) {
  const each = state.where[at];
  const column = columnsOf(state)[each.column];
  const renamed = () => {
    Object.assign(each, { sign: "eq", value: firstValue(columnsOf(state)[each.column]), values: [] });
    changed(true);
  };
  const remove = () => {
    state.where.splice(at, 1);
    changed(true);
  };
  const name = { "aria-label": "Column", onchange: setter(each, "column", renamed) };
  const sign = { "aria-label": "Comparison", onchange: setter(each, "sign", () => changed(true)) };
  const signs = isNumber(column) || isTime(column) ? [...EQUALITY, ...ORDER] : EQUALITY;
  const values = each.sign === "in" ? severalControl : valueControl;
  return h.div(
    { class: "fields condition" },
    select("column", columns, each.column, name),
    select("sign", signs, each.sign, sign),
    values(column, each, () => changed(false)),
    h.button({ type: "button", class: "plain", onclick: remove }, "Remove"),
  );
}

/** Boxes to tick, or lines to write: a value may hold a comma. */
function severalControl(column, each, /** @type {() => void} */ changed) {
  const listed = listedOf(column);
  const box = (/** @type {string} */ value) => {
    const onchange = () => {
      const others = each.values.filter((/** @type {string} */ other) => other !== value);
      each.values = others.length < each.values.length ? others : [...others, value];
      changed();
    };
    return check(value, { checked: each.values.includes(value), onchange });
  };
  if (listed.length) {
    return h.fieldset({ class: "checks listed" }, h.legend({ class: "visually-hidden" }, "Values"), listed.map(box));
  }
  const oninput = (/** @type {Event} */ event) => {
    each.values = entriesOf(/** @type {HTMLTextAreaElement} */ (event.target).value).map(String);
    changed();
  };
  const lines = h.textarea({ rows: "4", value: each.values.join("\n"), oninput, title: columnWords(column) });
  return field("Values, one a line", lines);
}

function groupFields(/** @type {State} */ state, /** @type {string[]} */ columns, /** @type {Changed} */ changed) {
  return h.fieldset(
    { class: "checks" },
    h.legend("By, every group of the declared values"),
    columns.filter((name) => !countedIn(state).includes(name)).map((name) => groupField(state, name, changed)),
  );
}

/** A box, and once it is ticked how a number or a time is cut into groups. */
function groupField(/** @type {State} */ state, /** @type {string} */ name, /** @type {Changed} */ changed) {
  const column = columnsOf(state)[name];
  const group = state.by.find((each) => each.column === name) ?? { column: name, part: firstPart(column) };
  const checked = state.by.includes(group);
  const part = partControl(column, group, () => changed(false));
  if (part) part.hidden = !checked;
  const onchange = () => {
    const laws = String(mechanismsOf(state));
    state.by = state.by.includes(group) ? state.by.filter((each) => each !== group) : [...state.by, group];
    if (part) part.hidden = !state.by.includes(group);
    changed(laws !== String(mechanismsOf(state)));
  };
  return h.span({ class: "group" }, check(name, { checked, onchange }), part);
}

function partControl(column, group, /** @type {() => void} */ changed) {
  const set = setter(group, "part", changed);
  if (isTime(column)) {
    const units = column.type === "datetime" ? [...UNITS, "hour"] : UNITS;
    return select("part", units, group.part, { "aria-label": `Part of ${group.column}`, onchange: set });
  }
  if (!isNumber(column)) return null;
  const width = { type: "number", min: "0", step: "any", value: group.part, oninput: set };
  const placeholder = column.type === "integer" ? "each value" : "width";
  return h.input({ ...width, required: column.type === "real", placeholder, "aria-label": `Width of ${group.column}` });
}

function noiseFields(/** @type {State} */ state, /** @type {Changed} */ changed) {
  const tell = () => changed(false);
  const positive = { type: "number", min: "0", step: "any" };
  const placeholder = "natural bound";
  const clip = h.input({ ...positive, value: state.clip, placeholder, oninput: setter(state, "clip", tell) });
  const noises = noisesOf(state);
  const kinds = noises.map(([kind, words]) => /** @type {[string, string]} */ ([kind, words]));
  const restated = setter(state, "noise", () => {
    const [, , , first] = noises.find(([kind]) => kind === state.noise) ?? noises[0];
    state.amount = first;
    for (const each of state.items) each.precision = isByItem(state) ? amountFor(state, each.what) : "";
    changed(true);
  });
  const noise = select("noise", kinds, state.noise, { onchange: restated });
  const amount = h.input({ ...positive, value: state.amount, oninput: setter(state, "amount", tell) });
  return [
    mayClip(state) &&
      h.div(
        { class: "fields" },
        field("One person's part, at most", clip, "L2 norm of the numbers that one person adds to"),
      ),
    isPure(state.dataset) &&
      h.p(
        { class: "small soft" },
        "Charges are in ε here, and the noise is Laplace noise: a Gaussian has no finite charge. Each query is of one",
        " number for each person.",
      ),
    h.div(
      { class: "fields" },
      mechanismsOf(state).length > 1 && field("Noise", lawControl(state, changed)),
      field("Noise as", noise),
      isByItem(state) ? null : field("Amount", amount),
      mayReuse(state) &&
        check("An earlier answer will do", { checked: state.reuse, onchange: setter(state, "reuse", tell) }),
    ),
  ];
}

/** The law of the noise, where there is a choice; another one is stated in its first way. */
function lawControl(/** @type {State} */ state, /** @type {Changed} */ changed) {
  const chosen = setter(state, "mechanism", () => {
    [[state.noise, , , state.amount]] = noisesOf(state);
    changed(true);
  });
  return select("mechanism", MECHANISMS, mechanismOf(state), { onchange: chosen });
}
