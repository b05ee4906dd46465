// The analyst's page: what may I ask, and what did I get? Nothing here depends on data but the noisy answers.

import { activeCurves } from "./analyst-active.js";
import { askSection, chosenOf } from "./analyst-ask.js";
import { itemForms } from "./analyst-items.js";
import { resultOf, shareOf } from "./analyst-result.js";
import { all, get, Problem, path, withQuery } from "./api.js";
import { fill, h, table } from "./dom.js";
import { foldButton, folded, modelIn } from "./folds.js";
import { instant, percent, rho } from "./format.js";
import { bar, draw, explained, main, navigate, pages, places, problem, signedIn, tabs } from "./shell.js";
import { promisedBy, unitSign } from "./words.js";

/** @typedef {[string, (id: string) => Promise<import("./dom.js").Part>]} Section */
/** @type {Section} */
const FIRST = ["Ask", asking];
/** @type {Map<string, Section>} a map, in which an address such as `constructor` names nothing */
const SECTIONS = new Map([
  ["", FIRST],
  ["history", ["My answers", history]],
  ["allowance", ["My allowance", allowance]],
  ["answer", ["An answer", answer]],
]);
const PAGE = 50;
const ROWS_AT_ONCE = 1000;
/** @type {Set<any>} the newest rows of the fits that are open */
const opened = new Set();

const session = await signedIn("analyst");
navigate("/analyst", show);
bar(session);
show();

function show() {
  const [section = "", id = ""] = places();
  const [title, task] = SECTIONS.get(section) ?? FIRST;
  const address = (/** @type {string} */ name) => (name ? `/analyst/${name}` : "/analyst");
  tabs(
    ["", "history", "allowance"].map((name) => [address(name), (SECTIONS.get(name) ?? FIRST)[0]]),
    address(section),
  );
  document.title = `${title} · Sparing`;
  return draw(main, () => task(id));
}

async function asking() {
  const datasets = await all("/v1/datasets");
  if (!datasets.length) return h.p({ class: "empty" }, "No dataset is open to your key yet.");
  const [dataset, forms] = await Promise.all([get(path("datasets", chosenOf(datasets))), itemForms()]);
  return [askSection(datasets, dataset, forms), explained(promisedBy(dataset))];
}

async function history() {
  const datasets = await all("/v1/datasets");
  const signs = signsOf(datasets);
  const next = (/** @type {string | null} */ cursor) => get(withQuery("/v1/queries", { limit: PAGE, cursor }));
  const shown = (/** @type {any[]} */ rows) => answers(rows, signs);
  const listed = pages(await next(null), next, shown, "Older answers");
  return h.section(h.h1("My answers"), listed, later(activeCurves()), later(monitors(datasets)));
}

/** The curve of each dataset that has a monitor. */
async function monitors(/** @type {any[]} */ datasets) {
  const monitored = datasets.filter((each) => each.monitor);
  if (!monitored.length) return null;
  const { monitorPart } = await import("./monitor.js");
  return Promise.all(monitored.map((each) => monitorPart(each, { asks: true })));
}

/** A place for what comes after the rest of a page. */
function later(/** @type {Promise<import("./dom.js").Part>} */ part) {
  const place = h.div();
  part.then(
    (shown) => fill(place, shown),
    (error) => fill(place, problem(error)),
  );
  return place;
}

/** @returns {Map<string, string>} the letters of the units, by dataset */
function signsOf(/** @type {any[]} */ datasets) {
  return new Map(datasets.map((each) => [each.name, unitSign(each)]));
}

function answers(/** @type {any[]} */ rows, /** @type {Map<string, string>} */ signs) {
  if (!rows.length) {
    return h.p({ class: "empty" }, "You have asked nothing yet.", h.a({ href: "/analyst" }, "Ask a query"));
  }
  const shown = h.div();
  const lines = () => folded(rows, modelOf, summed, { opened, redraw: show }).flat();
  const show = () => fill(shown, answersTable(rows, lines(), signs));
  show();
  return shown;
}

function answersTable(/** @type {any[]} */ rows, /** @type {any[]} */ lines, /** @type {Map<string, string>} */ signs) {
  const isRepeat = (row) => rows.some((other) => other.id === row.id && other.released_at < row.released_at);
  const repeat = () => h.div({ class: "small soft" }, "the same answer as before, free of charge");
  const link = (row) => (row.fold ? [row.words, " "] : h.a({ href: `/analyst/answer/${row.id}` }, row.words));
  const note = (row) => (row.fold ? foldButton(row) : isRepeat(row) && repeat());
  return table(
    "Your answers, newest first",
    [
      { title: "At", cell: (row) => h.time({ datetime: row.released_at }, instant(row.released_at)) },
      { title: "Dataset", cell: (row) => row.dataset },
      { title: "Asked", class: "words", cell: (row) => [link(row), note(row)] },
      { title: "Numbers", number: true, cell: (row) => row.dimension },
      { title: "Worst case", number: true, cell: (row) => charged(row, row.worst_case_rho, signs) },
    ],
    lines,
  );
}

/** The steps of one fit are of one model and one dataset. */
function modelOf(row) {
  const model = modelIn(row.query);
  return model && JSON.stringify([model, row.dataset]);
}

/** One line for several steps, the newest first: their worst cases together, that of a repeated answer once. */
function summed(/** @type {any[]} */ steps) {
  const worst = new Map(steps.map((step) => [step.id, Number(step.worst_case_rho)]));
  return { ...steps[0], worst_case_rho: String([...worst.values()].reduce((sum, each) => sum + each, 0)) };
}

async function answer(/** @type {string} */ id) {
  const [told, row, datasets] = await Promise.all([get(path("queries", id)), rowOf(id), all("/v1/datasets")]);
  const dataset = datasets.find((each) => each.name === row.dataset) ?? null; // it may be gone
  return h.section(
    h.h1(row.words),
    h.p({ class: "soft" }, `Asked of ${row.dataset}, answered ${instant(told.released_at)}.`),
    resultOf(told, dataset, { isAlone: true }),
    h.details(h.summary("The query as JSON"), h.pre({ tabindex: "0" }, JSON.stringify(row.query, null, 2))),
    shareOf(told.axes) !== null && later(activeCurves(told.id)),
  );
}

/** An own answer as it is listed, with what was asked of which dataset. */
async function rowOf(/** @type {string} */ id) {
  let cursor = null;
  do {
    const page = await get(withQuery("/v1/queries", { limit: ROWS_AT_ONCE, cursor }));
    const row = page.items.find((/** @type {any} */ each) => each.id === id);
    if (row) return row;
    cursor = page.next;
  } while (cursor);
  throw new Problem({ title: "There is no such answer of yours." });
}

/** An amount with the letter of its dataset's unit. */
const charged = (row, /** @type {string | null} */ amount, /** @type {Map<string, string>} */ signs) =>
  amount === null ? rho(amount) : `${signs.get(row.dataset) ?? ""}${rho(amount)}`;

async function allowance() {
  const [rows, datasets] = await Promise.all([get("/v1/allowances"), all("/v1/datasets")]);
  return h.section(
    h.h1("My allowance"),
    rows.length ? allowances(rows, signsOf(datasets)) : h.p({ class: "empty" }, "No dataset is open to your key."),
    h.p(
      { class: "soft" },
      "An allowance bounds the sum of the worst cases of your queries. The curator sets it. What people are really",
      " charged is less, and is not shown to analysts.",
    ),
  );
}

const allowances = (/** @type {any[]} */ rows, /** @type {Map<string, string>} */ signs) =>
  table(
    "Allowances by dataset",
    [
      { title: "Dataset", cell: (row) => row.dataset },
      { title: "Allowance", number: true, cell: (row) => charged(row, row.allowance_rho, signs) },
      { title: "Used", number: true, cell: (row) => charged(row, row.spent_rho, signs) },
      { title: "Left", number: true, cell: (row) => charged(row, row.left_rho, signs) },
      { title: "Used share", number: true, cell: usedShare },
    ],
    rows,
  );

const usedShare = (row) => Number(row.allowance_rho) > 0 && percent(Number(row.spent_rho) / Number(row.allowance_rho));
