// Registration: a form that builds the schema row by row beside the JSON it makes. No domain is read off the data.

import { post } from "./api.js";
import { field, fill, h, select } from "./dom.js";
import { number } from "./format.js";
import { explained, form } from "./shell.js";

/**
 * @typedef {Record<string, any>} Edited what inputs write into
 * @typedef {{ tell: () => void, show: () => void }} Redraw the JSON alone, or the form too
 */

/** @type {[string, string][]} */
const COLUMN_TYPES = [
  ["category", "category, listed"],
  ["size", "category, numbered"],
  ["integer", "whole number"],
  ["real", "number"],
  ["date", "date"],
  ["datetime", "time, in UTC"],
  ["boolean", "true or false"],
  ["budget", "own limit in ρ"],
];
const AT_LEAST_ONE = { type: "number", min: "1" };
const ANY_NUMBER = { type: "number", step: "any" };

const newColumn = () => ({ name: "", type: "category" });
const newState = () => ({
  name: "",
  epsilon: 1,
  delta: "1e-6",
  capacity: 10000,
  tables: [{ name: "people", kind: "individuals", key: "person_id", columns: [newColumn()] }],
});

export function registerSection(/** @type {(address: string) => void} */ go) {
  const state = newState();
  const tables = h.div();
  const meaning = h.p({ class: "soft" });
  const json = h.textarea({ "aria-label": "The registration as JSON", spellcheck: "false", rows: "18", oninput });
  let byHand = false;
  function oninput() {
    byHand = true;
  }
  function tell() {
    meaning.textContent =
      `ε = ${state.epsilon}: all answers together change the odds of any guess about a person by at most a factor of` +
      ` ${number(Math.exp(state.epsilon))}.`;
    if (!byHand) json.value = JSON.stringify(registration(state), null, 2);
  }
  function show() {
    fill(tables, tableForms(state, { tell, show }));
    tell();
  }
  const register = async () => {
    const made = await post("/v1/datasets", JSON.parse(json.value));
    go(`/curator/${made.name}`);
  };
  show();
  return [
    h.section(
      h.h1("Register a dataset"),
      h.p(
        "A registration is public and for good: analysts see the guarantee, the tables and the domains. Declare",
        " domains from what you know about the columns; a domain that is read off the data would tell something about",
        " the people in it.",
      ),
      h.div(
        { class: "columns" },
        h.div({ class: "stack" }, guaranteeFields(state, tell), meaning, tables),
        form(field("The registration, as it will be sent", json), register, { button: "Register" }),
      ),
    ),
    explained({ epsilon: String(state.epsilon), delta: state.delta }),
  ];
}

/**
 * An input that writes into a member of `target`; an empty one of numbers writes nothing there.
 * @param {string} label
 * @param {Edited} target
 * @param {string} name
 * @param {() => void} changed
 * @param {import("./dom.js").Attributes} [attributes]
 */
function bound(label, target, name, changed, attributes = {}) {
  const input = h.input({ value: String(target[name] ?? ""), autocomplete: "off", ...attributes });
  input.addEventListener("input", () => {
    const number = input.value === "" ? undefined : Number(input.value);
    target[name] = input.type === "number" ? number : input.value;
    changed();
  });
  return field(label, input);
}

function guaranteeFields(/** @type {Edited} */ state, /** @type {() => void} */ tell) {
  const epsilon = h.input({ type: "range", min: "-2", max: "3", step: "0.1", value: "0" });
  epsilon.setAttribute("aria-label", "epsilon, logarithmic");
  epsilon.addEventListener("input", () => {
    state.epsilon = Number((2 ** Number(epsilon.value)).toPrecision(2));
    tell();
  });
  return [
    h.div(
      { class: "fields" },
      bound("Name", state, "name", tell, { pattern: "[a-z0-9][a-z0-9_\\-]*", placeholder: "web-visits" }),
      bound("Individuals, at most", state, "capacity", tell, AT_LEAST_ONE),
    ),
    h.div(
      { class: "fields" },
      field("ε for each person", epsilon),
      bound("δ", state, "delta", tell, { placeholder: "1e-6" }),
    ),
  ];
}

/** A button that does something to the state, after which the form is drawn anew. */
const acting = (
  /** @type {string} */ text,
  /** @type {() => void} */ act,
  /** @type {Redraw} */ { show },
  plain = false,
) => h.button({ type: "button", class: plain && "plain", onclick: () => [act(), show()] }, text);

function tableForms(/** @type {Edited} */ state, /** @type {Redraw} */ redraw) {
  const add = () =>
    state.tables.push({
      name: "events",
      kind: "events",
      key: state.tables[0].key,
      rows_per_individual: 100,
      columns: [newColumn()],
    });
  return [
    state.tables.map((/** @type {Edited} */ _, /** @type {number} */ place) => tableForm(state, place, redraw)),
    h.div(acting("Add a table of events", add, redraw)),
  ];
}

function tableForm(/** @type {Edited} */ state, /** @type {number} */ place, /** @type {Redraw} */ redraw) {
  const table = state.tables[place];
  const isPeople = table.kind === "individuals";
  const { tell } = redraw;
  return h.fieldset(
    { class: "card" },
    h.legend(isPeople ? "Table of individuals" : "Table of events"),
    h.div(
      { class: "fields" },
      bound("Name", table, "name", tell),
      bound("Key column", table, "key", tell),
      !isPeople && bound("Rows of one individual, at most", table, "rows_per_individual", tell, AT_LEAST_ONE),
      !isPeople && bound("Rows of all together, at most", table, "rows_capacity", tell, AT_LEAST_ONE),
    ),
    table.columns.map((/** @type {Edited} */ _, /** @type {number} */ at) => columnForm(table.columns, at, redraw)),
    h.div(
      { class: "row" },
      acting("Add a column", () => table.columns.push(newColumn()), redraw),
      place > 0 && acting("Remove this table", () => state.tables.splice(place, 1), redraw, true),
    ),
  );
}

function columnForm(/** @type {Edited[]} */ columns, /** @type {number} */ at, /** @type {Redraw} */ redraw) {
  const column = columns[at];
  const type = select("type", COLUMN_TYPES, column.type, {
    onchange: () => {
      column.type = type.value;
      redraw.show();
    },
  });
  return h.div(
    { class: "fields" },
    bound("Column", column, "name", redraw.tell),
    field("Type", type),
    domainFields(column, redraw.tell),
    acting("Remove", () => columns.splice(at, 1), redraw, true),
  );
}

function domainFields(/** @type {Edited} */ column, /** @type {() => void} */ tell) {
  switch (column.type) {
    case "category":
      return bound("Categories, separated by commas", column, "categories", tell);
    case "size":
      return bound("How many", column, "size", tell, AT_LEAST_ONE);
    case "integer":
    case "real":
      return [bound("Lowest", column, "lower", tell, ANY_NUMBER), bound("Highest", column, "upper", tell, ANY_NUMBER)];
    case "date":
    case "datetime": {
      const placeholder = column.type === "date" ? "2026-03-31" : "2026-03-31T23:59:59Z";
      return [
        bound("First", column, "lower", tell, { placeholder }),
        bound("Last", column, "upper", tell, { placeholder }),
      ];
    }
    default:
      return null;
  }
}

/** The body of POST /v1/datasets. */
function registration(/** @type {Edited} */ state) {
  return {
    name: state.name,
    guarantee: { epsilon: String(state.epsilon), delta: state.delta },
    capacity: state.capacity,
    tables: Object.fromEntries(state.tables.map((/** @type {Edited} */ each) => [each.name, tableOf(each)])),
  };
}

function tableOf(/** @type {Edited} */ { name: _, columns, ...table }) {
  const named = columns.filter((/** @type {Edited} */ column) => column.name);
  return {
    ...table,
    columns: Object.fromEntries(named.map((/** @type {Edited} */ each) => [each.name, columnOf(each)])),
  };
}

function columnOf(/** @type {Edited} */ { type, categories = "", size, lower, upper }) {
  const listed = categories.split(",").map((/** @type {string} */ each) => each.trim());
  if (type === "category") return { type, categories: listed.filter(Boolean) };
  if (type === "size") return { type: "category", size };
  return { type, lower, upper }; // JSON leaves out what is undefined
}
