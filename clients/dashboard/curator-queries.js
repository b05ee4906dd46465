// The ledger as a curator reads it: each query in words, its public cost, the people it charged and left out.

import { get, path, withQuery } from "./api.js";
import { calmly, field, fill, h, select, table } from "./dom.js";
import { count, instant, percent } from "./format.js";
import { draw, problem } from "./shell.js";

const PAGE = 50;

export function queriesTable(rows, dataset) {
  if (!rows.length) return h.p({ class: "empty" }, "No query was asked yet.");
  return table(
    "Queries, newest first",
    [
      { title: "Query", number: true, cell: (row) => `#${row.sequence}` },
      { title: "At", cell: (row) => h.time({ datetime: row.asked_at }, instant(row.asked_at)) },
      { title: "Analyst", cell: (row) => (row.kind === "burn" ? "" : row.analyst) },
      { title: "Asked", class: "words", cell: (row) => row.words },
      { title: "Counted", number: true, cell: (row) => count(row.charged) },
      { title: "Left out", number: true, cell: (row) => count(row.left_out) },
      {
        title: "Worst case",
        number: true,
        cell: (row) =>
          h.span(
            { class: "share", title: `ρ ${row.worst_case_rho}` },
            percent(Number(row.worst_case_rho) / Number(dataset.budget_rho)),
          ),
      },
    ],
    rows,
  );
}

export async function queriesSection({ dataset, watch }) {
  const at = path("datasets", dataset.name, "ledger");
  const analysts = new Map();
  const search = h.input({ type: "search", name: "search", placeholder: "area 1295", maxlength: "200" });
  const analyst = select("analyst", [["", "everyone"]], "");
  const shown = h.div();
  const more = h.div({ class: "row" });
  let rows = [];

  async function load(cursor = null) {
    const page = await get(withQuery(at, { limit: PAGE, cursor, search: search.value.trim(), analyst: analyst.value }));
    rows = cursor ? [...rows, ...page.items] : page.items;
    for (const row of rows) if (row.kind === "query") analysts.set(row.analyst_id, row.analyst);
    fill(
      analyst,
      [["", "everyone"], ...analysts].map(([value, text]) =>
        h.option({ value, selected: value === analyst.value }, text),
      ),
    );
    fill(
      shown,
      rows.length || !(search.value || analyst.value)
        ? queriesTable(rows, dataset)
        : h.p({ class: "empty" }, "No query matches."),
    );
    fill(
      more,
      page.next &&
        h.button(
          { type: "button", onclick: () => load(page.next).catch((error) => fill(more, problem(error))) },
          "Older queries",
        ),
    );
  }

  const again = calmly(() => load().catch((error) => fill(shown, problem(error))));
  search.addEventListener("input", again);
  analyst.addEventListener("change", again);
  watch.on(() => rows.length <= PAGE && again());
  await draw(shown, async () => {
    await load();
    return [...shown.childNodes];
  });
  return h.section(
    h.h1("Queries"),
    h.div({ class: "fields" }, field("Search", search, "Every word must be in the query."), field("Analyst", analyst)),
    shown,
    more,
    h.p(
      { class: "small soft" },
      "Worst case: the most that a query may charge anyone, as a share of the dataset's budget. Counted: the people it charged. No analyst sees these numbers of people.",
    ),
  );
}
