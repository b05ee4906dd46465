// The schema as a form: tables, columns and domains, row by row. No domain is read off the data.

import { entriesOf } from "./columns.js";
import { check, field, h, select } from "./dom.js";
import { setter } from "./values.js";

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
  ["vector", "list of whole numbers"],
  ["budget", "own limit in ρ"],
];
export const AT_LEAST_ONE = { type: "number", min: "1" };
const ANY_NUMBER = { type: "number", step: "any" };
const WHOLE_NUMBER = { type: "number" };

/** @type {[string, string][]} */
const UNKNOWN = [
  ["reject", "refuse the upload"],
  ["create", "bring the individual in"],
  ["drop", "leave them out, and count them"],
];

/** @returns {Edited} */
export const newColumn = () => ({ name: "", type: "category" });

/** @returns {Edited} a table of events, whose rows name individuals in the column `key` */
export const newEvents = (/** @type {string} */ key) => ({
  name: "events",
  kind: "events",
  key,
  rows_per_individual: 100,
  unknown_individuals: "reject",
  columns: [newColumn()],
});

/**
 * An input that writes into a member of `target`; an empty one of numbers writes nothing there.
 * @param {string} label
 * @param {Edited} target
 * @param {string} name
 * @param {() => void} changed
 * @param {import("./dom.js").Attributes} [attributes]
 */
export function bound(label, target, name, changed, { isLong = false, ...attributes } = {}) {
  const input = (isLong ? h.textarea : h.input)({
    value: String(target[name] ?? ""),
    autocomplete: "off",
    ...attributes,
  });
  input.addEventListener("input", () => {
    const number = input.value === "" ? undefined : Number(input.value);
    target[name] = input.type === "number" ? number : input.value;
    changed();
  });
  return field(label, input);
}

/** A button that does something to the state, after which the form is drawn anew. */
export const acting = (
  /** @type {string} */ text,
  /** @type {() => void} */ act,
  /** @type {Redraw} */ { show },
  plain = false,
) => h.button({ type: "button", class: plain && "plain", onclick: () => [act(), show()] }, text);

export function tableForm(/** @type {Edited} */ state, /** @type {number} */ place, /** @type {Redraw} */ redraw) {
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
      !isPeople && unknownField(table, tell),
      confirmation(table, isPeople ? PEOPLE_KEY : EVENTS_KEY, tell),
    ),
    table.columns.map((/** @type {Edited} */ _, /** @type {number} */ at) => columnForm(table.columns, at, redraw)),
    h.div(
      { class: "row" },
      acting("Add a column", () => table.columns.push(newColumn()), redraw),
      place > 0 && acting("Remove this table", () => state.tables.splice(place, 1), redraw, true),
    ),
  );
}

const PEOPLE_KEY = "The key column names the individual whose privacy is kept";
const EVENTS_KEY = "The key column names the individual, whose rows are bounded by more than this file";

/** A box to tick before what was read off a file may be registered; none where a person has stated it. */
const confirmation = (/** @type {Edited} */ proposed, /** @type {string} */ words, /** @type {() => void} */ tell) => {
  if (proposed.isProposed === undefined) return null;
  const confirm = (/** @type {Event} */ event) => {
    proposed.isProposed = !(/** @type {HTMLInputElement} */ (event.target).checked);
    tell();
  };
  return check(words, { checked: !proposed.isProposed, onchange: confirm });
};

/** In a registration it stands beside what was read off a file, until that is confirmed; the service refuses it. */
const CONFIRM = "read off a file: state it from elsewhere, or confirm it";

function unknownField(/** @type {Edited} */ table, /** @type {() => void} */ tell) {
  const onchange = setter(table, "unknown_individuals", tell);
  return field("Rows of unknown individuals", select("unknown", UNKNOWN, table.unknown_individuals, { onchange }));
}

export function columnForm(
  /** @type {Edited[]} */ columns,
  /** @type {number} */ at,
  /** @type {Redraw} */ redraw,
  isAlone = false,
) {
  const column = columns[at];
  const type = select("type", COLUMN_TYPES, column.type, {
    onchange: () => {
      column.type = type.value;
      redraw.show();
    },
  });
  return h.div(
    { class: isAlone ? "fields" : "fields part" },
    bound("Column", column, "name", redraw.tell),
    field("Type", type),
    domainFields(column, redraw.tell),
    confirmation(column, "This domain is public without the file", redraw.tell),
    !isAlone && acting("Remove", () => columns.splice(at, 1), redraw, true),
  );
}

function domainFields(/** @type {Edited} */ column, /** @type {() => void} */ tell) {
  switch (column.type) {
    case "category":
      return bound("Categories, one a line", column, "categories", tell, { isLong: true, rows: "3" });
    case "size":
      return bound("How many", column, "size", tell, AT_LEAST_ONE);
    case "vector":
      return [
        bound("Length", column, "length", tell, AT_LEAST_ONE),
        bound("Lowest", column, "lower", tell, WHOLE_NUMBER),
        bound("Highest", column, "upper", tell, WHOLE_NUMBER),
      ];
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

export function tableOf(/** @type {Edited} */ { name: _, columns, isProposed = false, ...table }) {
  const named = columns.filter((/** @type {Edited} */ column) => column.name);
  return {
    ...table,
    ...(isProposed && { confirm: CONFIRM }),
    columns: Object.fromEntries(named.map((/** @type {Edited} */ each) => [each.name, columnOf(each)])),
  };
}

export function columnOf(/** @type {Edited} */ { isProposed = false, ...column }) {
  return { ...declared(column), ...(isProposed && { confirm: CONFIRM }) };
}

function declared(/** @type {Edited} */ { type, categories = "", size, length, lower, upper }) {
  if (type === "category") return { type, categories: entriesOf(categories) };
  if (type === "size") return { type: "category", size };
  if (type === "vector") return { type, length, lower, upper };
  return { type, lower, upper }; // JSON leaves out what is undefined
}
