// The steps of one fit, queries in a row that differ in their parameters alone, as one line that opens to show each.

import { fill, h } from "./dom.js";

/** @type {Set<unknown>} of ledgers, the oldest entries of the lines that are open */
const openedEntries = new Set();

/** @typedef {{ count: number, isOpen: boolean, toggle: () => void }} Fold */

/**
 * Rows in groups: each by itself, or those of one model in a row as a line of their own, and they after it once it is
 * opened.
 * @template {object} Row
 * @param {Row[]} rows
 * @param {(row: Row) => string | null} modelOf what the rows of one line have in common; null for a row by itself
 * @param {(steps: Row[]) => Row} summed the line
 * @param {{ opened: Set<unknown>, redraw: () => void, keyOf?: (steps: Row[]) => unknown }} state the keys of the lines
 * that are open: of each its newest row, or what `keyOf` makes of its rows
 * @returns {(Row & { fold?: Fold })[][]}
 */
export function folded(rows, modelOf, summed, { opened, redraw, keyOf = ([newest]) => newest }) {
  return runsOf(rows, modelOf).map((steps) => {
    const key = keyOf(steps);
    if (steps.length === 1) return steps;
    const isOpen = opened.has(key);
    const toggle = () => {
      if (!opened.delete(key)) opened.add(key);
      redraw();
    };
    const line = { ...summed(steps), fold: { count: steps.length, isOpen, toggle } };
    return isOpen ? [line, ...steps] : [line];
  });
}

/**
 * Entries of a ledger, newest first, in which the steps of a fit, of one model and one analyst, are one line.
 * @param {any[]} rows
 * @param {(lines: any[]) => import("./dom.js").Part} draw
 * @param {(steps: any[]) => object} summed what the line says beside the newest step
 */
export function ledgerLines(rows, draw, summed = () => ({})) {
  const shown = h.div();
  const line = (steps) => ({
    ...steps[0],
    first: lastOf(steps).sequence,
    worst_case_rho: worstOf(steps),
    ...summed(steps),
  });
  const keyOf = (steps) => lastOf(steps).query_id; // a newer step leaves it open
  const show = () =>
    fill(shown, draw(folded(rows, entryModel, line, { opened: openedEntries, redraw: show, keyOf }).flat()));
  show();
  return shown;
}

const lastOf = (/** @type {any[]} */ steps) => steps[steps.length - 1];
const worstOf = (/** @type {any[]} */ steps) =>
  String(steps.reduce((sum, step) => sum + Number(step.worst_case_rho), 0));

function entryModel(/** @type {any} */ row) {
  const model = modelIn(row.query);
  return model && JSON.stringify([model, row.analyst_id]);
}

/** The number of an entry, and of a line of several both ends. */
export const entryNumber = (/** @type {any} */ row) => `${row.first ? `#${row.first} to ` : ""}#${row.sequence}`;

/**
 * The query of a step but for its parameters, as text; null for any other query.
 * @param {any} query in its canonical form
 */
export function modelIn(query) {
  const gradient = query?.select?.[0]?.gradient;
  return gradient ? JSON.stringify({ ...query, select: [{ gradient: { ...gradient, parameters: null } }] }) : null;
}

/** The button of a line of several steps. */
export const foldButton = (/** @type {{ fold?: Fold }} */ row) =>
  row.fold &&
  h.button(
    { type: "button", class: "plain", "aria-expanded": String(row.fold.isOpen), onclick: row.fold.toggle },
    `${row.fold.count} steps`,
  );

/**
 * @template Row
 * @param {Row[]} rows
 * @param {(row: Row) => string | null} modelOf
 */
function runsOf(rows, modelOf) {
  /** @type {Row[][]} */
  const runs = [];
  /** @type {string | null} */
  let before = null;
  for (const row of rows) {
    const model = modelOf(row);
    if (model !== null && model === before) runs[runs.length - 1].push(row);
    else runs.push([row]);
    before = model;
  }
  return runs;
}
