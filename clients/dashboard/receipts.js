// Receipts: the cost of each query to one individual.

import { fill, h, table } from "./dom.js";
import { instant, percent } from "./format.js";
import { problem } from "./shell.js";
import { OUTCOME } from "./words.js";

const FIRST_SHOWN = 12;
const MORE_SHOWN = 100;

/** A page of receipts with a button for older ones; `next(cursor)` fetches the next page. */
export function receiptsTable(first, next, budget_rho, { concernedOnly = false } = {}) {
  let rows = first.items;
  let only = concernedOnly;
  let most = FIRST_SHOWN;
  const shown = h.div();
  const more = h.div({ class: "row" });
  function show(cursor) {
    const listed = rows.filter((row) => !only || row.outcome !== "untouched");
    fill(
      shown,
      listed.length
        ? table("Receipts, newest first", columns(budget_rho), listed.slice(0, most))
        : h.p(
            { class: "empty" },
            only && rows.length ? "None of the newest queries concerned this data." : "No query was asked yet.",
          ),
    );
    fill(
      more,
      listed.length > most
        ? h.button(
            {
              type: "button",
              onclick: () => {
                most += MORE_SHOWN;
                show(cursor);
              },
            },
            `Show ${Math.min(listed.length - most, MORE_SHOWN)} more of ${listed.length}`,
          )
        : cursor &&
            h.button(
              {
                type: "button",
                onclick: () => {
                  most += MORE_SHOWN;
                  older(cursor);
                },
              },
              "Older queries",
            ),
      h.label(
        { class: "check small" },
        h.input({
          type: "checkbox",
          checked: !only,
          onchange: (event) => {
            only = !event.target.checked;
            show(cursor);
          },
        }),
        "Show those that did not concern this data, too",
      ),
    );
  }
  async function older(cursor) {
    try {
      let page = await next(cursor);
      rows = [...rows, ...page.items];
      // Queries that concern one person may be rare: go on until one is found, some pages at most.
      for (
        let pages = 0;
        only && page.next && pages < 20 && page.items.every((row) => row.outcome === "untouched");
        pages += 1
      ) {
        page = await next(page.next);
        rows = [...rows, ...page.items];
      }
      show(page.next);
    } catch (error) {
      fill(more, problem(error));
    }
  }
  show(first.next);
  return h.div(shown, more);
}

function columns(budget_rho) {
  return [
    { title: "Query", number: true, cell: (row) => `#${row.sequence}` },
    { title: "At", cell: (row) => h.time({ datetime: row.at }, instant(row.at)) },
    { title: "Asked", class: "words", cell: (row) => [row.words, asker(row.asker)] },
    { title: "Outcome", class: "short", cell: (row) => OUTCOME[row.outcome] },
    {
      title: "Of the limit",
      number: true,
      cell: (row) =>
        row.charged_rho === null
          ? ""
          : h.span(
              { class: "share", title: `ρ ${row.charged_rho}` },
              Number(row.charged_rho) ? percent(Number(row.charged_rho) / Number(budget_rho)) : "0 %",
            ),
    },
  ];
}

function asker(told) {
  const words = [told?.organisation && `asked by an analyst of ${told.organisation}`, told?.purpose]
    .filter(Boolean)
    .join("; ");
  return words ? h.div({ class: "small soft" }, words) : null;
}
