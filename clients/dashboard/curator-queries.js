// The ledger as a curator reads it: each query in words, its public cost, the people it charged and left out.

import { get, pageWithItems, path, withQuery } from "./api.js";
import { calmly, field, fill, h, select, table } from "./dom.js";
import { entryNumber, foldButton, ledgerLines } from "./folds.js";
import { count, instant, portion } from "./format.js";
import { pages, problem } from "./shell.js";
import { unitSign } from "./words.js";

const PAGE = 50;

export function queriesTable(rows, dataset) {
  if (!rows.length) return h.p({ class: "empty" }, "No query was asked yet.");
  return ledgerLines(rows, (lines) => linesTable(lines, dataset), counts);
}

function linesTable(/** @type {any[]} */ lines, dataset) {
  return table(
    "Queries, newest first",
    [
      { title: "Query", number: true, cell: entryNumber },
      { title: "At", cell: (row) => h.time({ datetime: row.asked_at }, instant(row.asked_at)) },
      { title: "Analyst", cell: (row) => (row.kind === "burn" ? "" : row.analyst) },
      { title: "Asked", class: "words", cell: (row) => [row.words, row.fold && h.div(foldButton(row))] },
      { title: "Counted", number: true, cell: (row) => row.counted ?? count(row.charged) },
      { title: "Left out", number: true, cell: (row) => row.omitted ?? count(row.left_out) },
      {
        title: "Worst case",
        number: true,
        cell: (row) =>
          h.span(
            { class: "share", title: `${unitSign(dataset)}${row.worst_case_rho}` },
            portion(Number(row.worst_case_rho) / Number(dataset.budget_rho)),
          ),
      },
    ],
    lines,
  );
}

/** The least and the most people of several steps. */
function counts(/** @type {any[]} */ steps) {
  const between = (/** @type {number[]} */ numbers) =>
    [...new Set([Math.min(...numbers), Math.max(...numbers)])].map(count).join(" to ");
  return { counted: between(steps.map((step) => step.charged)), omitted: between(steps.map((step) => step.left_out)) };
}

export async function queriesSection({ dataset, watch }) {
  const at = path("datasets", dataset.name, "ledger");
  /** @type {Map<string, string>} */
  const analysts = new Map([["", "everyone"]]);
  const search = h.input({ type: "search", name: "search", placeholder: "area 1295", maxlength: "200" });
  const analyst = select("analyst", [...analysts], "");
  const shown = h.div();
  let isFirst = true;

  async function load(/** @type {string | null} */ cursor = null) {
    isFirst = cursor === null;
    const query = { limit: PAGE, search: search.value.trim(), analyst: analyst.value };
    const page = await pageWithItems((place) => get(withQuery(at, { ...query, cursor: place })), cursor);
    for (const row of page.items) if (row.kind === "query") analysts.set(row.analyst_id, row.analyst);
    const chosen = analyst.value;
    fill(
      analyst,
      [...analysts].map(([value, text]) => h.option({ value, selected: value === chosen }, text)),
    );
    return page;
  }
  function list(/** @type {any[]} */ rows, /** @type {boolean} */ isWhole) {
    const isSearched = search.value || analyst.value;
    const none = isWhole ? "No query matches." : "No query matches among those looked at so far.";
    return isSearched && !rows.length ? h.p({ class: "empty" }, none) : queriesTable(rows, dataset);
  }
  const show = async () => pages(await load(), load, list, "Older queries");
  const again = calmly(async () => fill(shown, await show().catch(problem)));
  search.addEventListener("input", again);
  analyst.addEventListener("change", again);
  watch.on(() => isFirst && again());
  fill(shown, await show());
  return h.section(
    h.h1("Queries"),
    h.div({ class: "fields" }, field("Search", search, "Every word must be in the query."), field("Analyst", analyst)),
    shown,
    h.p(
      { class: "small soft" },
      "Worst case: the most that a query may charge anyone, as a share of the dataset's budget. Counted: the people it",
      " charged. No analyst sees these numbers of people.",
    ),
  );
}
