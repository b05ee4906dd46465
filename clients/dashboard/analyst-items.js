// The items that the form offers, as the service lists them: their words, inputs and facts.

import { madeDocument } from "./api.js";

/**
 * @typedef {{ kind: "numbers" | "numeric" | "countable" | "share", label: string, hint: string, value: number }} Input
 *
 * @typedef {object} Form of an item, `x-form` in the document of the interface
 * @property {string} kind the key of the item
 * @property {string} words what is computed, with `{column}` where its name stands
 * @property {Record<string, Input>} inputs by member of the item
 * @property {"individuals" | "events" | null} table the only kind of table that it is of
 * @property {boolean} stands_alone
 * @property {boolean} may_reuse
 * @property {boolean} is_composite worked out from linear items
 * @property {"always" | "of individuals" | "no"} one_number whether an individual has one number in it
 *
 * @typedef {Map<string, Form>} Forms by kind, in the order of the language
 */

/** @returns {Promise<Forms>} */
export async function itemForms() {
  const forms = await madeDocument("items.json");
  return new Map(forms.map((/** @type {Form} */ form) => [form.kind, form]));
}

/** @type {Record<string, string[]>} the columns that an input may be of, by their types */
const TYPES = {
  numbers: ["integer", "real"],
  numeric: ["integer", "real", "boolean"],
  countable: ["category", "boolean"],
};

/** The columns that an item may be of; one without a name where it is of none. @returns {string[]} */
export function columnsFor(/** @type {Form} */ form, /** @type {Record<string, any>} */ columns) {
  const { column } = form.inputs;
  if (!column) return [""];
  return Object.keys(columns).filter((name) => TYPES[column.kind].includes(columns[name].type));
}

/** The inputs beside the column. @returns {[string, Input][]} */
export const ownInputs = (/** @type {Form} */ form) =>
  Object.entries(form.inputs).filter(([member]) => member !== "column");

/** A choice of an item and a column, as a select has it. */
export const choiceOf = (/** @type {string} */ kind, /** @type {string} */ column) =>
  column ? `${kind} ${column}` : kind;

/** The kind and the column of a choice. @returns {[string, string]} */
export function chosenIn(/** @type {string} */ choice) {
  const [kind, column = ""] = choice.split(" ");
  return [kind, column];
}
