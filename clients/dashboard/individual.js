// The individual's page: what has been done with my data, and what can I do?

import { all, get, Problem, path, post, withQuery } from "./api.js";
import { around, shape } from "./chart.js";
import { download, field, fill, h } from "./dom.js";
import { figure } from "./figure.js";
import { csv, instant, percent } from "./format.js";
import { receiptsTable } from "./receipts.js";
import { rowsPart } from "./record.js";
import { bar, draw, explained, form, main, problem, signedIn } from "./shell.js";
import { OUTCOME, promiseWords, receiptsLead, unitSign } from "./words.js";

const NEWEST = 1000;
const session = await signedIn("individual");
main.classList.add("narrow");
bar(session);
show();

function show() {
  return draw(main, async () => {
    const [account] = await get("/v1/me/budgets");
    const receipts = (/** @type {string | null} */ cursor) =>
      get(withQuery("/v1/me/receipts", { limit: NEWEST, cursor }));
    const [first, asked] = await Promise.all([receipts(null), get(path("me", "erasure", account.dataset))]);
    document.title = `Your privacy in ${account.dataset} · Sparing`;
    const epsilon = String(Number(account.promise_epsilon.toPrecision(4)));
    return [
      h.section(
        h.h1(`Your privacy in ${account.dataset}`),
        h.p({ class: "soft" }, `Kept under the key ${session.individual}.`),
        gauge(account),
        account.paused && paused(),
        account.left_out_for_good && leftOutForGood(),
      ),
      h.section(
        h.h2(receiptsLead(account)),
        figure(timeline(first.items, account), { low: true }),
        receiptsTable(first, receipts, account.promise_rho, unitSign(account), { concernedOnly: true }),
      ),
      controls(account, asked.requested),
      explained({ epsilon, delta: account.delta }),
    ];
  });
}

const paused = () =>
  h.div(
    { class: "note" },
    h.strong("You have paused."),
    h.p("No query uses your data, and nothing of your limit is spent, until you resume."),
  );

const leftOutForGood = () =>
  h.div(
    { class: "note" },
    h.strong("You are left out for good."),
    h.p("A query asked for more than was left of your limit. By this dataset's rule no later query uses your data."),
  );

function gauge(account) {
  const spent = Math.min(account.share_spent, 1);
  const words = spent
    ? `${percent(spent)} of your limit is spent. ${percent(1 - spent)} is left.`
    : "Nothing of your limit is spent.";
  const bar = shape("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": words });
  bar.append(
    shape("rect", { class: "spent", x: 0, y: 0, width: 100 * spent, height: 8 }),
    shape("rect", { class: "left", x: 100 * spent, y: 0, width: 100 * (1 - spent), height: 8 }),
  );
  return h.div({ class: "gauge" }, bar, h.p({ class: "lead" }, words), h.p({ class: "soft" }, promiseWords(account)));
}

/** @returns {import("./figure.js").Told} each query that concerned the individual, by its cost */
function timeline(rows, account) {
  const used = (row) => row.outcome === "charged" || row.outcome === "shortened";
  const shown = rows.filter((row) => used(row) || row.outcome === "left_out");
  const [charged, left] = [shown.filter(used), shown.filter((row) => !used(row))];
  const share = (row) => (100 * Number(row.charged_rho ?? 0)) / Number(account.promise_rho);
  return {
    title: shown.length
      ? `Each query that used your data, by the share of your limit that it took`
      : "No query has used your data among the newest ones",
    columns: [
      { title: "At", cell: (row) => instant(row.at) },
      { title: "Asked", cell: (row) => row.words },
      { title: "Outcome", cell: (row) => OUTCOME[row.outcome] },
      { title: "Share", number: true, cell: (row) => percent(share(row) / 100) },
    ],
    rows: shown,
    drawing: {
      x: {
        range: around(shown.map((row) => row.sequence)),
        whole: true,
        title: "number of the query; rings: left you out",
      },
      y: { range: [0, 1.05 * Math.max(0.001, ...charged.map(share))], unit: " %" },
      bars: charged.map((row) => ({
        from: row.sequence - 0.4,
        to: row.sequence + 0.4,
        y: share(row),
        colour: "blue",
        tip: `${row.words}: ${percent(share(row) / 100)}`,
      })),
      dots: left.map((row) => ({
        x: row.sequence,
        y: 0,
        colour: "orange",
        ring: true,
        tip: `${row.words}: left you out`,
      })),
    },
  };
}

const card = (/** @type {string} */ title, /** @type {import("./dom.js").Part[]} */ ...parts) =>
  h.div({ class: "card" }, h.h3(title), parts);

function controls(account, /** @type {boolean} */ isErasureAsked) {
  const record = h.div();
  const showRecord = () => draw(record, () => ownRecord(account.dataset));
  return h.section(
    { class: "no-print" },
    h.h2("What you can do"),
    h.div(
      { class: "cards" },
      pauseCard(account),
      lowerCard(account),
      card(
        "My record",
        h.p("Everything that the dataset holds about you."),
        h.div(h.button({ type: "button", onclick: showRecord }, "Show it")),
      ),
      downloadCard(account),
      erasureCard(account, isErasureAsked),
    ),
    record,
  );
}

function pauseCard(account) {
  const at = (/** @type {string} */ act) => path("me", "budgets", account.dataset, act);
  const [button, words, act] = account.paused
    ? ["Resume", "Take part in queries again, from the next one on.", () => post(at("resume"))]
    : [
        "Pause",
        "Take part in no query until you resume. Nothing is spent meanwhile, and no analyst is told.",
        () => post(at("lower"), { pause: true }),
      ];
  return card(
    button,
    h.p(words),
    form([], () => act().then(show), { button, main: false }),
  );
}

function lowerCard(account) {
  const least = leastShare(account);
  const share = h.input({ name: "share", type: "number", step: "any", required: true });
  const lower = async (/** @type {Record<string, string>} */ data) => {
    const wished = Number(data.share);
    if (wished < least || wished > 100) {
      throw new Problem({ title: limitWords(account, least), detail: "Nothing was changed." });
    }
    if (!confirm(`Lower your limit to ${wished} % of what it is? This cannot be undone.`)) return;
    await post(path("me", "budgets", account.dataset, "lower"), { limit_rho: limitOf(account, wished) });
    await show();
  };
  const hint = `From ${least} to 100.`;
  return card(
    "Lower my limit",
    h.p(
      `${percent(taken(account))} of your limit is ${takenWords(account)}, so the smallest new limit is ${least} %`,
      " of the present one: with it no further query uses your data. A limit can never be raised again.",
    ),
    form(field("New limit, per cent of the present one", share, hint), lower, { button: "Lower it", main: false }),
  );
}

const takenWords = (account) =>
  Number(account.reserve_rho) ? "spent or kept for the count of the exhausted" : "spent";

const limitWords = (account, /** @type {number} */ least) =>
  `A new limit is at least ${least} % of the present one, which is ${takenWords(account)}, and at most 100 %.`;

/** The limit in ρ, with the part of it that is kept for the count of the exhausted. */
const wholeLimit = (account) => Number(account.budget_rho) + Number(account.reserve_rho);

const taken = (account) => Number(account.lowest_limit_rho) / (wholeLimit(account) || 1);

/** The smallest new limit in per cent, to two places, rounded up. */
const leastShare = (account) => Math.min(100, Math.ceil(1e4 * taken(account)) / 100);

/** The limit in ρ; the smallest one is to the last digit, so that no rounding leads below it. */
function limitOf(account, /** @type {number} */ share) {
  const wished = ((share / 100) * wholeLimit(account)).toFixed(15);
  return Number(wished) <= Number(account.lowest_limit_rho) ? account.lowest_limit_rho : wished;
}

function downloadCard(account) {
  const saved = h.div({ "aria-live": "polite" });
  const button = (/** @type {"csv" | "json"} */ kind) =>
    h.button({ type: "button", onclick: () => save(account, kind, saved) }, kind.toUpperCase());
  return card(
    "Download",
    h.p("Your account, every receipt and your record."),
    h.div({ class: "row" }, button("csv"), button("json")),
    saved,
  );
}

function erasureCard(account, /** @type {boolean} */ isAsked) {
  const ask = async () => {
    if (!confirm("Ask the curator to erase your record? Your key ends with it.")) return;
    await post(path("me", "erasure", account.dataset));
    await show();
  };
  if (isAsked) return card("Be erased", h.p("You have asked to be erased. The curator sees your request."));
  return card(
    "Be erased",
    h.p("Ask the curator to erase your record and your charges."),
    form([], ask, { button: "Ask for it", main: false }),
  );
}

async function ownRecord(/** @type {string} */ dataset) {
  const told = await get(path("me", "record", dataset));
  return h.section(
    h.h2("Your record"),
    Object.entries(told.tables).map(([name, each]) => h.section(h.h3(name), rowsPart(`Your rows in ${name}`, each))),
  );
}

async function save(account, /** @type {"csv" | "json"} */ kind, /** @type {Element} */ told) {
  fill(told, h.p({ class: "small soft", role: "status" }, "Fetching every receipt …"));
  try {
    const [receipts, record] = await Promise.all([all("/v1/me/receipts"), get(path("me", "record", account.dataset))]);
    const name = `my-privacy-in-${account.dataset}.${kind}`;
    if (kind === "json") download(name, "application/json", JSON.stringify({ account, receipts, record }, null, 2));
    else download(name, "text/csv", receiptsCsv(receipts));
    fill(told, h.p({ class: "small soft" }, "Saved."));
  } catch (error) {
    fill(told, problem(error));
  }
}

function receiptsCsv(/** @type {any[]} */ receipts) {
  const columns = ["query", "at", "asked", "outcome", "charged_rho"];
  const cells = receipts.map((row) => [row.sequence, row.at, row.words, OUTCOME[row.outcome], row.charged_rho]);
  return csv(columns, cells);
}
