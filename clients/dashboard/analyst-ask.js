// The query form, beside the JSON and the Python it makes, with a preview as one types.

import { columnsOf, firstValue, pythonOf, queryOf } from "./analyst-query.js";
import { resultOf } from "./analyst-result.js";
import { get, path, post } from "./api.js";
import { columnWords, individualsOf } from "./columns.js";
import { calmly, field, fill, h, select } from "./dom.js";
import { number, percent, rho } from "./format.js";
import { problem } from "./shell.js";

/**
 * @typedef {import("./analyst-query.js").State} State
 * @typedef {(redraw: boolean) => void} Changed the form is drawn anew, or only what it makes
 */

/** @type {[string, string][]} */
const SIGNS = [
  ["eq", "="],
  ["ne", "≠"],
  ["lt", "<"],
  ["le", "≤"],
  ["gt", ">"],
  ["ge", "≥"],
  ["in", "one of"],
];
/** @type {[string, string][]} */
const NOISES = [
  ["sigma", "standard deviation σ"],
  ["half_width", "error bar ±, 95 %"],
  ["rho", "worst case in ρ"],
];
const LISTED_MAX = 500; // categories in a select
const CALM_MS = 500;

export function askSection(/** @type {any[]} */ datasets) {
  const state = firstState(datasets);
  const controls = h.div({ class: "stack" });
  const json = h.textarea({
    "aria-label": "The query as JSON",
    spellcheck: "false",
    rows: "14",
    oninput: () => look(),
  });
  const python = h.pre({ tabindex: "0" });
  const { preview, result, button, look, ask } = asking(state, json);
  function show() {
    fill(controls, controlsOf(state, datasets, changed));
    tell();
  }
  function tell() {
    json.value = JSON.stringify(queryOf(state), null, 2);
    python.textContent = pythonOf(state);
    look();
  }
  const changed = (/** @type {boolean} */ redraw) => (redraw ? show() : tell());
  show();
  return h.section(
    h.h1("Ask"),
    h.form(
      { class: "columns", onsubmit: ask },
      h.div({ class: "stack" }, controls, preview, h.div({ class: "row" }, button), result),
      h.div(
        { class: "stack" },
        field("The query as JSON; edit it for what the form does not have", json),
        h.h2("The same in Python"),
        python,
      ),
    ),
  );
}

/** @returns {State} */
function firstState(/** @type {any[]} */ datasets) {
  const asked = new URLSearchParams(location.search).get("dataset");
  const dataset = datasets.find((each) => each.name === asked) ?? datasets[0];
  const table = individualsOf(dataset);
  const noise = { noise: "sigma", amount: "20", clip: "", reuse: true };
  return { dataset, table, where: [], by: [], what: "count", ...noise };
}

/** What the service says to the query in `json`: a preview as it changes, and its answer. */
function asking(/** @type {State} */ state, /** @type {HTMLTextAreaElement} */ json) {
  const preview = h.div({ "aria-live": "polite" });
  const result = h.div({ "aria-live": "polite" });
  const button = h.button({ type: "submit", class: "main" }, "Ask");
  let key = crypto.randomUUID();
  const at = (/** @type {string[]} */ ...parts) => path("datasets", state.dataset.name, "queries", ...parts);
  const lookCalmly = calmly(async () => {
    try {
      const told = await post(at("preview"), JSON.parse(json.value));
      const allowances = await get("/v1/allowances");
      const own = allowances.find((/** @type {any} */ each) => each.dataset === state.dataset.name);
      fill(preview, previewOf(told, state.dataset, own));
      button.disabled = false;
    } catch (error) {
      const isJson = !(error instanceof SyntaxError);
      fill(preview, problem(isJson ? error : new Error(`The JSON is not complete: ${error.message}`)));
      button.disabled = true;
    }
  }, CALM_MS);
  const look = () => {
    key = crypto.randomUUID();
    lookCalmly();
  };
  async function ask(/** @type {Event} */ event) {
    event.preventDefault();
    button.disabled = true;
    fill(result, h.p({ class: "empty", role: "status" }, "Waiting for the answer …"));
    try {
      const headers = { "Idempotency-Key": key };
      fill(result, resultOf(await post(at(), JSON.parse(json.value), { headers })));
      look();
    } catch (error) {
      fill(result, problem(error)); // the key stays: asking again fetches an answer that was lost
    } finally {
      button.disabled = false;
    }
  }
  return { preview, result, button, look, ask };
}

/** Sets a member of the state to what a control holds. */
function setter(/** @type {any} */ target, /** @type {string} */ name, /** @type {() => void} */ changed) {
  return (/** @type {Event} */ event) => {
    const control = /** @type {HTMLInputElement} */ (event.target);
    target[name] = control.type === "checkbox" ? control.checked : control.value;
    changed();
  };
}

function controlsOf(/** @type {State} */ state, /** @type {any[]} */ datasets, /** @type {Changed} */ changed) {
  const columns = Object.keys(columnsOf(state)).filter((name) => columnsOf(state)[name].type !== "budget");
  return [
    sourceFields(state, datasets, columns, changed),
    conditionFields(state, columns, changed),
    columns.length > 0 && groupFields(state, columns, changed),
    noiseFields(state, () => changed(false)),
  ];
}

function sourceFields(
  /** @type {State} */ state,
  /** @type {any[]} */ datasets,
  /** @type {string[]} */ columns,
  /** @type {Changed} */ changed,
) {
  const from = (/** @type {any} */ dataset, /** @type {string} */ table) => {
    Object.assign(state, { dataset, table, where: [], by: [], what: "count" });
    changed(true);
  };
  const ofTypes = (/** @type {string} */ kind, /** @type {string[]} */ types) =>
    columns
      .filter((name) => types.includes(columnsOf(state)[name].type))
      .map((name) => /** @type {[string, string]} */ ([`${kind} ${name}`, `${kind} of ${name}`]));
  const what = ["count", ...ofTypes("sum", ["integer", "real"]), ...ofTypes("histogram", ["category", "boolean"])];
  const names = datasets.map((each) => each.name);
  const tables = Object.keys(state.dataset.tables);
  const dataset = select("dataset", names, state.dataset.name, {
    onchange: () => {
      const chosen = datasets[names.indexOf(dataset.value)];
      from(chosen, individualsOf(chosen));
    },
  });
  const table = select("table", tables, state.table, { onchange: () => from(state.dataset, table.value) });
  const kind = select("what", what, state.what, { onchange: setter(state, "what", () => changed(false)) });
  return h.div({ class: "fields" }, field("Dataset", dataset), field("From", table), field("What", kind));
}

function conditionFields(/** @type {State} */ state, /** @type {string[]} */ columns, /** @type {Changed} */ changed) {
  const add = () => {
    const [column] = columns;
    state.where.push({ column, sign: "eq", value: firstValue(columnsOf(state)[column]) });
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
  const renamed = () => {
    each.value = firstValue(columnsOf(state)[each.column]);
    changed(true);
  };
  const remove = () => {
    state.where.splice(at, 1);
    changed(true);
  };
  const name = { "aria-label": "Column", onchange: setter(each, "column", renamed) };
  const sign = { "aria-label": "Comparison", onchange: setter(each, "sign", () => changed(true)) };
  return h.div(
    { class: "fields" },
    select("column", columns, each.column, name),
    select("sign", SIGNS, each.sign, sign),
    valueControl(columnsOf(state)[each.column], each, () => changed(false)),
    h.button({ type: "button", class: "plain", onclick: remove }, "Remove"),
  );
}

function valueControl(column, each, /** @type {() => void} */ changed) {
  const set = setter(each, "value", changed);
  const value = String(each.value);
  const listed = column.type === "boolean" ? ["true", "false"] : (column.categories ?? []).map(String);
  if (listed.length && listed.length <= LISTED_MAX && each.sign !== "in") {
    return select("value", listed, value, { "aria-label": "Value", onchange: set });
  }
  return h.input({ "aria-label": "Value", value, oninput: set, title: columnWords(column) });
}

function groupFields(/** @type {State} */ state, /** @type {string[]} */ columns, /** @type {Changed} */ changed) {
  const box = (/** @type {string} */ name) => {
    const checked = state.by.includes(name);
    const toggle = () => {
      state.by = state.by.includes(name) ? state.by.filter((each) => each !== name) : [...state.by, name];
      changed(false);
    };
    return h.label({ class: "check" }, h.input({ type: "checkbox", checked, onchange: toggle }), name);
  };
  return h.fieldset({ class: "checks" }, h.legend("By, every group of the declared values"), columns.map(box));
}

function noiseFields(/** @type {State} */ state, /** @type {() => void} */ changed) {
  const amount = { type: "number", min: "0", step: "any" };
  const clip = h.input({
    ...amount,
    value: state.clip,
    placeholder: "natural bound",
    oninput: setter(state, "clip", changed),
  });
  const noise = select("noise", NOISES, state.noise, { onchange: setter(state, "noise", changed) });
  const reuse = h.input({ type: "checkbox", checked: state.reuse, onchange: setter(state, "reuse", changed) });
  return [
    h.div(
      { class: "fields" },
      field("One person's part, at most", clip, "L2 norm of the numbers that one person adds to"),
    ),
    h.div(
      { class: "fields" },
      field("Noise as", noise),
      field("Amount", h.input({ ...amount, value: state.amount, oninput: setter(state, "amount", changed) })),
      h.label({ class: "check" }, reuse, "An earlier answer will do"),
    ),
  ];
}

function previewOf(told, dataset, allowance) {
  const limit = Number(allowance?.allowance_rho);
  const used = limit > 0 ? (Number(allowance.spent_rho) + Number(told.worst_case_rho)) / limit : null;
  const tooMuch = used !== null && used > 1;
  const each = told.dimension > 1 ? `, on each of ${number(told.dimension)} numbers` : "";
  const share = percent(Number(told.worst_case_rho) / Number(dataset.budget_rho));
  return h.div(
    { class: tooMuch ? "note problem" : "note" },
    h.strong(`± ${number(told.half_width_95)} with 95 % confidence${each}`),
    h.p(
      `Worst case ${share} of each person's budget (ρ ${rho(told.worst_case_rho)}).`,
      used !== null && ` Your allowance would be ${percent(used)} used${tooMuch ? ": it does not suffice." : "."}`,
    ),
    h.p(
      told.coverage_certified
        ? "Certified: no one can have been left out for lack of budget."
        : "Not certified: people may have been left out for lack of budget.",
    ),
    h.p({ class: "small soft" }, told.words, `; the answer leaves after ${number(told.public_cost.delay_ms)} ms.`),
  );
}
