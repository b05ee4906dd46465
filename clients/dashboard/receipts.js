// Receipts: the cost of each query to one individual.

import { fill, h, table } from "./dom.js";
import { entryNumber, foldButton, folded, modelIn } from "./folds.js";
import { instant, percent } from "./format.js";
import { problem } from "./shell.js";
import { OUTCOME } from "./words.js";

const FIRST_SHOWN = 12;
const MORE_SHOWN = 100;
const PAGES_MAX = 20;

/**
 * Receipts with a button for older ones; `next(cursor)` fetches the next page.
 * @typedef {{ items: any[], next: string | null }} Page
 * @param {Page} first
 * @param {(cursor: string) => Promise<Page>} next
 * @param {string} limit in the unit of the dataset
 * @param {string} sign the letter of that unit, with a space
 */
export function receiptsTable(first, next, limit, sign, { concernedOnly = false } = {}) {
  let { items: rows, next: cursor } = first;
  let only = concernedOnly;
  let most = FIRST_SHOWN;
  /** @type {Set<any>} */
  const opened = new Set();
  const shown = h.div();
  const more = h.div({ class: "row" });
  const untouched = h.input({ type: "checkbox", checked: !only, onchange: toggle });
  const choice = h.label({ class: "check small" }, untouched, "Show those that did not concern this data, too");
  function show() {
    const concerned = rows.filter((row) => !only || row.outcome !== "untouched");
    const listed = folded(concerned, modelOf, summed, { opened, redraw: show });
    const none = only && rows.length ? "None of the newest queries concerned this data." : "No query was asked yet.";
    const columns = columnsOf(limit, sign);
    const list = () => table("Receipts, newest first", columns, listed.slice(0, most).flat());
    fill(shown, listed.length ? list() : h.p({ class: "empty" }, none));
    fill(more, moreButton(listed.length), choice);
  }
  function toggle() {
    only = !untouched.checked;
    show();
  }
  function moreButton(/** @type {number} */ listed) {
    const text = `Show ${Math.min(listed - most, MORE_SHOWN)} more of ${listed}`;
    if (listed > most) return h.button({ type: "button", onclick: further }, text);
    return cursor && h.button({ type: "button", onclick: older }, "Older queries");
  }
  function further() {
    most += MORE_SHOWN;
    show();
  }
  async function older() {
    try {
      const added = await nextConcerned(cursor, next, only);
      rows = [...rows, ...added.items];
      cursor = added.next;
      further();
    } catch (error) {
      fill(more, problem(error));
    }
  }
  show();
  return h.div(shown, more);
}

/** Queries that concern one person may be rare: go on until one is found, some pages at most. */
async function nextConcerned(cursor, next, only) {
  const items = [];
  for (let pages = 0; cursor && pages < PAGES_MAX; pages += 1) {
    const page = await next(cursor);
    items.push(...page.items);
    cursor = page.next;
    if (!only || page.items.some((row) => row.outcome !== "untouched")) break;
  }
  return { items, next: cursor };
}

function columnsOf(/** @type {string} */ limit, /** @type {string} */ sign) {
  return [
    { title: "Query", number: true, cell: entryNumber },
    { title: "At", cell: (row) => h.time({ datetime: row.at }, instant(row.at)) },
    {
      title: "Asked",
      class: "words",
      cell: (row) => [row.words, asker(row.asker), row.fold && h.div(foldButton(row))],
    },
    { title: "Outcome", class: "short", cell: (row) => row.outcomes ?? OUTCOME[row.outcome] },
    { title: "Of the limit", number: true, cell: (row) => cost(row.charged_rho, limit, sign) },
  ];
}

/** The steps of one fit are of one model and one analyst. */
function modelOf(row) {
  const model = modelIn(row.asked);
  return model && JSON.stringify([model, row.dataset, row.asker]);
}

/** One line for several steps, the newest first: their charges together, and each outcome that is among them. */
function summed(/** @type {any[]} */ steps) {
  const outcomes = [...new Set(steps.map((step) => step.outcome))];
  const told = (outcome) => `${steps.filter((step) => step.outcome === outcome).length}: ${OUTCOME[outcome]}`;
  const isKept = steps.every((step) => step.charged_rho !== null);
  return {
    ...steps[0],
    first: steps[steps.length - 1].sequence,
    charged_rho: isKept ? String(steps.reduce((sum, step) => sum + Number(step.charged_rho), 0)) : null,
    outcomes: outcomes.length > 1 ? outcomes.map(told).join(", ") : null,
  };
}

function cost(/** @type {string | null} */ charged, /** @type {string} */ limit, /** @type {string} */ sign) {
  if (charged === null) return "";
  const share = percent(Number(charged) / Number(limit));
  return h.span({ class: "share", title: `${sign}${charged}` }, Number(charged) ? share : "0 %");
}

function asker(told) {
  const organisation = told?.organisation && `asked by an analyst of ${told.organisation}`;
  const words = [organisation, told?.purpose].filter(Boolean).join("; ");
  return words && h.div({ class: "small soft" }, words);
}
