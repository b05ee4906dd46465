// A value of a column: the control in which it is chosen or written, and what it stands for in JSON.

import { columnWords } from "./columns.js";
import { h, select } from "./dom.js";

const LISTED_MAX = 500; // categories in a select

export const isNumber = (column) => column.type === "integer" || column.type === "real";
export const isTime = (column) => column.type === "date" || column.type === "datetime";

/** Whether a row has one value in the column that can be asked about. */
export const hasValue = (column) => column.type !== "budget" && column.type !== "vector";

/** A value of the column's domain, to begin with. */
export function firstValue(column) {
  if (column.type === "boolean") return "true";
  if (column.type === "category") return String(column.categories ? column.categories[0] : 0);
  return String(column.lower);
}

/** A literal of the column's type; text that is none is sent as it is, and refused with the field's name. */
export function literal(column, /** @type {string} */ text) {
  if (column.type === "boolean") return text === "true";
  if (isTime(column)) return text;
  const listed = column.categories?.find((/** @type {unknown} */ each) => String(each) === text);
  if (column.categories) return listed ?? text;
  return text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text);
}

/** Sets a member of `target` to what a control holds. */
export function setter(/** @type {any} */ target, /** @type {string} */ name, /** @type {() => void} */ changed) {
  return (/** @type {Event} */ event) => {
    const control = /** @type {HTMLInputElement} */ (event.target);
    target[name] = control.type === "checkbox" ? control.checked : control.value;
    changed();
  };
}

/** The values that a person chooses from; none where they are written. @returns {unknown[]} */
export function domainOf(column) {
  const domain = column.type === "boolean" ? [true, false] : (column.categories ?? []);
  return domain.length <= LISTED_MAX ? domain : [];
}

/** The same as text. */
export const listedOf = (column) => domainOf(column).map(String);

/** An input in which a value is written. */
export function valueInput(column, /** @type {import("./dom.js").Attributes} */ attributes) {
  const type = isNumber(column) ? "number" : column.type === "date" ? "date" : "text";
  return h.input({ type, step: isNumber(column) && "any", ...attributes });
}

export function valueControl(column, each, /** @type {() => void} */ changed) {
  const told = { "aria-label": "Value", title: columnWords(column) };
  const set = setter(each, "value", changed);
  const listed = listedOf(column);
  if (listed.length) return select("value", listed, each.value, { ...told, onchange: set });
  return valueInput(column, { ...told, value: each.value, oninput: set });
}

const NUMBERS_SHOWN = 8; // of a vector

/** A stored value; of a vector the first numbers, as a download has all. */
export function valueWords(/** @type {unknown} */ value) {
  if (!Array.isArray(value)) return value === "" ? "“”" : String(value ?? "no value");
  if (value.length <= NUMBERS_SHOWN) return value.join(", ");
  return `${value.slice(0, NUMBERS_SHOWN).join(", ")}, … (${value.length} numbers)`;
}
