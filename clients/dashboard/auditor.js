// The auditor's page: does the record hold?

import { get, Problem, path, withQuery } from "./api.js";
import { chainPart } from "./chain.js";
import { field, fill, h, table } from "./dom.js";
import { entryNumber, foldButton, ledgerLines } from "./folds.js";
import { count, instant, rho } from "./format.js";
import { bar, draw, form, main, navigate, pages, places, signedIn } from "./shell.js";
import { unitLetter } from "./words.js";

const session = await signedIn("auditor");
const go = navigate("/auditor", show);
bar(session);
show();

function show() {
  const name = places()[0] || session.dataset;
  if (!name) return fill(main, choosing());
  document.title = `The chain of ${name} · Sparing`;
  return draw(main, () => ledger(name));
}

function choosing() {
  const name = h.input({ name: "dataset", required: true, autocomplete: "off" });
  return h.section(
    { class: "narrow" },
    h.h1("Which dataset?"),
    form(
      field("Name of the dataset", name),
      async ({ dataset }) => void go(`/auditor/${encodeURIComponent(dataset.trim())}`),
      { button: "Show its ledger" },
    ),
  );
}

async function ledger(/** @type {string} */ name) {
  const next = (/** @type {string | null} */ cursor) =>
    get(withQuery(path("datasets", name, "ledger"), { limit: 50, cursor }));
  const first = await next(null).catch((error) => {
    if (error.status !== 404) throw error;
    throw new Problem({
      ...error.told,
      title: "There is no such dataset, or your key is not for it.",
      detail: undefined,
    });
  });
  const newest = first.items[0];
  return [
    h.section(
      { class: "narrow" },
      h.h1(`The record of ${name}`),
      h.p(
        { class: "lead" },
        newest
          ? `${count(newest.sequence)} entries; the newest is of ${instant(newest.asked_at)}.`
          : "The ledger is empty.",
      ),
      h.p(
        "The chain shows that no entry was changed, dropped or put in between since you last looked. It cannot show",
        " that the numbers of people in an entry are right: for that the service verifies with the data, which only",
        " the curator can start.",
      ),
    ),
    chainPart(name),
    newest && h.section(h.h2("Entries"), pages(first, next, entries, "Older entries")),
  ];
}

const entries = (/** @type {any[]} */ rows) => ledgerLines(rows, entriesTable);

/** An auditor does not read datasets: their entries name what they are priced by. */
const unitOf = (/** @type {any[]} */ lines) =>
  lines.some((row) => row.mechanism === "laplace pure") ? "epsilon" : "rho";

const entriesTable = (/** @type {any[]} */ lines) =>
  table(
    "Entries, newest first",
    [
      { title: "Entry", number: true, cell: entryNumber },
      { title: "At", cell: (row) => h.time({ datetime: row.asked_at }, instant(row.asked_at)) },
      { title: "Kind", cell: (row) => row.kind },
      { title: "Analyst", cell: (row) => row.analyst },
      { title: "Asked", class: "words", cell: (row) => [row.words, row.fold && h.div(foldButton(row))] },
      {
        title: `Worst case, ${unitLetter({ unit: unitOf(lines) })}`,
        number: true,
        cell: (row) => rho(row.worst_case_rho),
      },
      { title: "Hash", cell: (row) => !row.fold && hashOf(row) },
    ],
    lines,
  );

const hashOf = (/** @type {any} */ row) => h.code({ title: row.hash }, `${row.hash.slice(0, 12)}…`);
