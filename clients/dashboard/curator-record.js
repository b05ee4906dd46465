// One individual's record as it is, edited in place. A change is sent once it was read and confirmed.

import { get, patch, withQuery } from "./api.js";
import { columnWords, individualsOf } from "./columns.js";
import { field, fill, h, select } from "./dom.js";
import { rowsPart } from "./record.js";
import { draw, problem } from "./shell.js";
import { domainOf, hasValue, literal, valueInput, valueWords } from "./values.js";

/**
 * @typedef {{ column: string, is: unknown, becomes: unknown }} Change
 * @typedef {{ node: HTMLElement, value: () => unknown }} Control of a column, and the value that it holds
 */

/** The record, which is fetched once it is asked for. */
export function recordPart(dataset, at, /** @type {string} */ individual) {
  const shown = h.div({ class: "stack" });
  const show = (/** @type {import("./dom.js").Part} */ done = null) =>
    draw(shown, async () => {
      const told = await get(withQuery(at("record"), { individual }));
      return [done, ...tablesOf(dataset, told, correct)];
    });
  const correct = async (/** @type {Change[]} */ changes) => {
    const wished = Object.fromEntries(changes.map(({ column, becomes }) => [column, becomes]));
    await show(doneNote(changes, await patch(withQuery(at("individual"), { individual }), wished)));
  };
  const ontoggle = (/** @type {Event} */ event) => {
    const { open } = /** @type {HTMLDetailsElement} */ (event.target);
    if (open) show();
  };
  const words = dataset.archived ? "Show the record …" : "Correct the record …";
  return h.details({ ontoggle }, h.summary(words), shown);
}

/** The individual's own row, to be corrected where the dataset takes corrections, and its rows of events. */
function tablesOf(dataset, told, /** @type {(changes: Change[]) => Promise<void>} */ correct) {
  const people = individualsOf(dataset);
  const { [people]: own, ...events } = told.tables;
  return [
    dataset.archived ? rowsPart("The record", own) : recordForm(dataset.tables[people].columns, own.rows[0], correct),
    ...Object.entries(events).map(([name, held]) => [h.h3(name), rowsPart(`Rows in ${name}`, held)]),
  ];
}

function recordForm(columns, row, /** @type {(changes: Change[]) => Promise<void>} */ correct) {
  const asked = h.div({ "aria-live": "polite" });
  const forget = () => fill(asked); // what was to be confirmed is not what the fields say any more
  const editable = Object.keys(row).filter((name) => hasValue(columns[name]));
  /** @type {Map<string, Control>} */
  const controls = new Map(editable.map((name) => [name, controlOf(columns[name], row[name])]));
  const ask = (/** @type {Event} */ event) => {
    event.preventDefault();
    const changes = [...controls]
      .map(([column, { value }]) => ({ column, is: row[column], becomes: value() }))
      .filter(({ is, becomes }) => is !== becomes);
    fill(asked, changes.length ? question(changes, correct, forget) : h.p("Nothing differs from the record."));
  };
  const others = Object.keys(row).filter((name) => !controls.has(name));
  const fields = [...controls].map(([name, { node }]) => field(name, node, columnWords(columns[name])));
  const button = h.div({ class: "row" }, h.button({ type: "submit" }, "Correct …"));
  return h.div(
    { class: "card" },
    h.form(
      { onsubmit: ask, oninput: forget },
      h.div({ class: "fields" }, fields),
      others.map((name) => h.p({ class: "soft" }, `${name}: ${valueWords(row[name])}`)),
      controls.size ? button : h.p({ class: "empty" }, "The record has no column of one value."),
      asked,
    ),
  );
}

/** @returns {Control} of a listed domain a choice, of which each option is a value as JSON */
function controlOf(column, /** @type {unknown} */ value) {
  const domain = domainOf(column);
  if (domain.length) {
    /** @type {[string, string][]} */
    const options = [null, ...domain].map((each) => [JSON.stringify(each), valueWords(each)]);
    const node = select("value", options, JSON.stringify(value));
    return { node, value: () => JSON.parse(node.value) };
  }
  const bounds = column.type === "datetime" ? {} : { min: column.lower, max: column.upper };
  const node = valueInput(column, { ...bounds, value: value ?? "", placeholder: valueWords(null) });
  return { node, value: () => (node.value === "" ? null : literal(column, node.value)) };
}

/** Each change in words, which is sent once it is confirmed. */
function question(
  /** @type {Change[]} */ changes,
  /** @type {(changes: Change[]) => Promise<void>} */ correct,
  /** @type {() => void} */ forget,
) {
  const refused = h.div();
  const send = async () => {
    confirm.disabled = true;
    await correct(changes).catch((/** @type {unknown} */ error) => fill(refused, problem(error)));
    confirm.disabled = false;
  };
  const confirm = h.button({ type: "button", class: "main", onclick: send }, "Correct it");
  return h.div(
    { class: "note" },
    h.ul(changes.map((each) => h.li(changeWords(each, "becomes")))),
    h.p("The events stay, and so does what was charged. The acts keep which columns were corrected."),
    h.div({ class: "row" }, confirm, h.button({ type: "button", onclick: forget }, "Leave it")),
    refused,
  );
}

const changeWords = (/** @type {Change} */ { column, is, becomes }, /** @type {string} */ verb) => [
  h.code(column),
  `: ${valueWords(is)} ${verb} ${valueWords(becomes)}`,
];

/** What was corrected; a value that the service has moved to a bound is said to be. */
function doneNote(/** @type {Change[]} */ changes, report) {
  const isMoved = (/** @type {string} */ column) =>
    Object.hasOwn(report.clipped, column) && report.clipped[column] > 0 && ", and was moved to the nearer bound";
  return h.div(
    { class: "note", role: "status" },
    h.strong("The record is corrected."),
    h.ul(changes.map((each) => h.li(changeWords(each, "became"), isMoved(each.column)))),
  );
}
