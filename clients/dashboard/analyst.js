// The analyst's page: what may I ask, and what did I get? Nothing here depends on data but the noisy answers.

import { askSection } from "./analyst-ask.js";
import { resultOf } from "./analyst-result.js";
import { get, path, withQuery } from "./api.js";
import { h, table } from "./dom.js";
import { instant, percent, rho } from "./format.js";
import { bar, draw, explained, main, navigate, pages, signedIn, tabs } from "./shell.js";
import { promisedBy } from "./words.js";

/** @type {Record<string, [string, (id: string) => Promise<import("./dom.js").Part>]>} */
const SECTIONS = {
  "": ["Ask", asking],
  history: ["My answers", history],
  allowance: ["My allowance", allowance],
  answer: ["An answer", answer],
};
const PAGE = 50;

const session = await signedIn("analyst");
navigate("/analyst", show);
bar(session);
show();

function show() {
  const [section = "", id = ""] = location.pathname.split("/").slice(2).map(decodeURIComponent);
  const [title, task] = SECTIONS[section] ?? SECTIONS[""];
  const address = (/** @type {string} */ name) => (name ? `/analyst/${name}` : "/analyst");
  tabs(
    ["", "history", "allowance"].map((name) => [address(name), SECTIONS[name][0]]),
    address(section),
  );
  document.title = `${title} · Sparing`;
  return draw(main, () => task(id));
}

async function asking() {
  const datasets = await get("/v1/datasets");
  if (!datasets.length) return h.p({ class: "empty" }, "No dataset is open to your key yet.");
  return [askSection(datasets), explained(promisedBy(datasets[0]))];
}

async function history() {
  const next = (/** @type {string | null} */ cursor) => get(withQuery("/v1/queries", { limit: PAGE, cursor }));
  return h.section(h.h1("My answers"), pages(await next(null), next, answers, "Older answers"));
}

function answers(/** @type {any[]} */ rows) {
  if (!rows.length) {
    return h.p({ class: "empty" }, "You have asked nothing yet.", h.a({ href: "/analyst" }, "Ask a query"));
  }
  const isRepeat = (row) => rows.some((other) => other.id === row.id && other.released_at < row.released_at);
  const repeat = () => h.div({ class: "small soft" }, "the same answer as before, free of charge");
  const link = (row) => h.a({ href: `/analyst/answer/${row.id}` }, row.words);
  return table(
    "Your answers, newest first",
    [
      { title: "At", cell: (row) => h.time({ datetime: row.released_at }, instant(row.released_at)) },
      { title: "Dataset", cell: (row) => row.dataset },
      { title: "Asked", class: "words", cell: (row) => [link(row), isRepeat(row) && repeat()] },
      { title: "Numbers", number: true, cell: (row) => row.dimension },
      { title: "Worst case, ρ", number: true, cell: (row) => rho(row.worst_case_rho) },
    ],
    rows,
  );
}

async function answer(/** @type {string} */ id) {
  const told = await get(path("queries", id));
  return h.section(h.h1(`Answer of ${instant(told.released_at)}`), resultOf(told));
}

async function allowance() {
  const rows = await get("/v1/allowances");
  return h.section(
    h.h1("My allowance"),
    rows.length ? allowances(rows) : h.p({ class: "empty" }, "No dataset is open to your key."),
    h.p(
      { class: "soft" },
      "An allowance bounds the sum of the worst cases of your queries. The curator sets it. What people are really",
      " charged is less, and is not shown to analysts.",
    ),
  );
}

const allowances = (/** @type {any[]} */ rows) =>
  table(
    "Allowances by dataset",
    [
      { title: "Dataset", cell: (row) => row.dataset },
      { title: "Allowance, ρ", number: true, cell: (row) => rho(row.allowance_rho) },
      { title: "Used, ρ", number: true, cell: (row) => rho(row.spent_rho) },
      { title: "Left, ρ", number: true, cell: (row) => rho(row.left_rho) },
      { title: "Used", number: true, cell: usedShare },
    ],
    rows,
  );

const usedShare = (row) => Number(row.allowance_rho) > 0 && percent(Number(row.spent_rho) / Number(row.allowance_rho));
