// The auditor's page: does the record hold?

import { Problem, get, path, withQuery } from "./api.js";
import { chainPart } from "./chain.js";
import { field, fill, h, table } from "./dom.js";
import { count, instant, rho } from "./format.js";
import { bar, draw, form, main, navigate, problem, signedIn } from "./shell.js";

const session = await signedIn("auditor");
const go = navigate("/auditor", show);
bar(session);
show();

function show() {
  const name = decodeURIComponent(location.pathname.split("/")[2] ?? "") || session.dataset;
  if (!name) {
    fill(
      main,
      h.section(
        { class: "narrow" },
        h.h1("Which dataset?"),
        form(
          [field("Name of the dataset", h.input({ name: "dataset", required: true, autocomplete: "off" }))],
          async ({ dataset }) => go(`/auditor/${encodeURIComponent(dataset.trim())}`),
          { button: "Show its ledger" },
        ),
      ),
    );
    return;
  }
  document.title = `The chain of ${name} · Sparing`;
  draw(main, async () => {
    const page = await get(withQuery(path("datasets", name, "ledger"), { limit: 50 })).catch((error) => {
      throw error.status === 404
        ? new Problem({ title: "There is no such dataset, or your key is not for it.", request_id: error.request_id })
        : error;
    });
    const newest = page.items[0];
    return [
      h.section(
        { class: "narrow" },
        h.h1(`The record of ${name}`),
        newest
          ? h.p({ class: "lead" }, `${count(newest.sequence)} entries; the newest is of ${instant(newest.asked_at)}.`)
          : h.p({ class: "lead" }, "The ledger is empty."),
        h.p(
          "The chain shows that no entry was changed, dropped or put in between since you last looked. It cannot show that the numbers of people in an entry are right: for that the service verifies with the data, which only the curator can start.",
        ),
      ),
      chainPart(name),
      newest && entries(name, page),
    ];
  });
}

function entries(name, page) {
  let rows = page.items;
  const shown = h.div(),
    more = h.div();
  function list(cursor) {
    fill(
      shown,
      table(
        "Entries, newest first",
        [
          { title: "Entry", number: true, cell: (row) => `#${row.sequence}` },
          { title: "At", cell: (row) => h.time({ datetime: row.asked_at }, instant(row.asked_at)) },
          { title: "Kind", cell: (row) => row.kind },
          { title: "Analyst", cell: (row) => row.analyst },
          { title: "Asked", class: "words", cell: (row) => row.words },
          { title: "Worst case, ρ", number: true, cell: (row) => rho(row.worst_case_rho) },
          {
            title: "Hash",
            cell: (row) => h.code({ title: row.hash ?? "" }, row.hash ? `${row.hash.slice(0, 12)}…` : ""),
          },
        ],
        rows,
      ),
    );
    fill(more, cursor && h.button({ type: "button", onclick: () => older(cursor) }, "Older entries"));
  }
  async function older(cursor) {
    try {
      const next = await get(withQuery(path("datasets", name, "ledger"), { limit: 50, cursor }));
      rows = [...rows, ...next.items];
      list(next.next);
    } catch (error) {
      fill(more, problem(error));
    }
  }
  list(page.next);
  return h.section(h.h2("Entries"), shown, more);
}
