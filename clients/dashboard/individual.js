// The individual's page: what has been done with my data, and what can I do?

import { all, get, path, post, withQuery } from "./api.js";
import { around, shape } from "./chart.js";
import { download, field, fill, h, table } from "./dom.js";
import { figure } from "./figure.js";
import { csv, instant, percent } from "./format.js";
import { receiptsTable } from "./receipts.js";
import { bar, draw, explained, form, main, problem, signedIn } from "./shell.js";
import { OUTCOME, promiseWords, receiptsLead } from "./words.js";

const NEWEST = 1000;
const session = await signedIn("individual");
main.classList.add("narrow");
bar(session);
show();

function show() {
  return draw(main, async () => {
    const [account] = await get("/v1/me/budgets");
    const [first, asked] = await Promise.all([
      get(withQuery("/v1/me/receipts", { limit: NEWEST })),
      get(path("me", "erasure", account.dataset)),
    ]);
    document.title = `Your privacy in ${account.dataset} · Sparing`;
    return [
      h.section(
        h.h1(`Your privacy in ${account.dataset}`),
        h.p({ class: "soft" }, `Kept under the key ${session.individual}.`),
        gauge(account),
        account.paused &&
          h.div(
            { class: "note" },
            h.strong("You have paused."),
            h.p("No query uses your data, and nothing of your limit is spent, until you resume."),
          ),
      ),
      h.section(
        h.h2(receiptsLead(account)),
        figure(timeline(first.items, account), { low: true }),
        receiptsTable(
          first,
          (cursor) => get(withQuery("/v1/me/receipts", { limit: NEWEST, cursor })),
          account.promise_rho,
          { concernedOnly: true },
        ),
      ),
      controls(account, asked.requested),
      explained({ epsilon: String(Number(account.promise_epsilon.toPrecision(4))), delta: account.delta }),
    ];
  });
}

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
  const shown = rows.filter((row) => row.outcome === "charged" || row.outcome === "left_out");
  const [charged, left] = ["charged", "left_out"].map((outcome) => shown.filter((row) => row.outcome === outcome));
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

function controls(account, erasureAsked) {
  const at = (...parts) => path("me", "budgets", account.dataset, ...parts);
  const record = h.div();
  const saved = h.div({ "aria-live": "polite" });
  const spent = Number(account.spent_rho),
    limit = Number(account.budget_rho);
  return h.section(
    { class: "no-print" },
    h.h2("What you can do"),
    h.div(
      { class: "cards" },
      h.div(
        { class: "card" },
        h.h3(account.paused ? "Resume" : "Pause"),
        h.p(
          account.paused
            ? "Take part in queries again, from the next one on."
            : "Take part in no query until you resume. Nothing is spent meanwhile, and no analyst is told.",
        ),
        form(
          [],
          async () => {
            await post(at(account.paused ? "resume" : "lower"), account.paused ? undefined : { pause: true });
            await show();
          },
          { button: account.paused ? "Resume" : "Pause", main: false },
        ),
      ),
      h.div(
        { class: "card" },
        h.h3("Lower my limit"),
        h.p(
          `Your limit can be lowered to as little as the ${percent(account.share_spent)} that is spent. It can never be raised again.`,
        ),
        form(
          [
            field(
              "New limit, per cent of the present one",
              h.input({ name: "share", type: "number", min: "0", max: "100", step: "any", required: true }),
            ),
          ],
          async ({ share }) => {
            const lower = Math.max((Number(share) / 100) * limit, spent);
            if (!confirm(`Lower your limit to ${share} % of what it is? This cannot be undone.`)) return null;
            await post(at("lower"), { limit_rho: lower.toFixed(15) });
            await show();
            return null;
          },
          { button: "Lower it", main: false },
        ),
      ),
      h.div(
        { class: "card" },
        h.h3("My record"),
        h.p("Everything that the dataset holds about you."),
        h.div(h.button({ type: "button", onclick: () => draw(record, () => ownRecord(account.dataset)) }, "Show it")),
      ),
      h.div(
        { class: "card" },
        h.h3("Download"),
        h.p("Your account, every receipt and your record."),
        h.div(
          { class: "row" },
          h.button({ type: "button", onclick: () => save(account, "csv", saved) }, "CSV"),
          h.button({ type: "button", onclick: () => save(account, "json", saved) }, "JSON"),
        ),
        saved,
      ),
      h.div(
        { class: "card" },
        h.h3("Be erased"),
        erasureAsked
          ? h.p("You have asked to be erased. The curator sees your request.")
          : [
              h.p("Ask the curator to erase your record and your charges."),
              form(
                [],
                async () => {
                  if (!confirm("Ask the curator to erase your record? Your key ends with it.")) return null;
                  await post(path("me", "erasure", account.dataset));
                  await show();
                  return null;
                },
                { button: "Ask for it", main: false },
              ),
            ],
      ),
    ),
    record,
  );
}

async function ownRecord(dataset) {
  const told = await get(path("me", "record", dataset));
  return h.section(
    h.h2("Your record"),
    Object.entries(told.tables).map(([name, each]) => {
      const columns = Object.keys(each.rows[0] ?? {});
      return h.section(
        h.h3(name),
        each.count === 0
          ? h.p({ class: "soft" }, "Nothing.")
          : table(
              `Your rows in ${name}`,
              columns.map((column) => ({
                title: column,
                cell: (row) => (row[column] === null ? "empty" : String(row[column])),
              })),
              each.rows.slice(0, 100),
            ),
        each.count > 100 && h.p({ class: "soft small" }, `${each.count} rows in all; the download has up to 1,000.`),
      );
    }),
  );
}

async function save(account, kind, told) {
  fill(told, h.p({ class: "small soft", role: "status" }, "Fetching every receipt …"));
  try {
    const [receipts, record] = await Promise.all([all("/v1/me/receipts"), get(path("me", "record", account.dataset))]);
    const name = `my-privacy-in-${account.dataset}`;
    if (kind === "json")
      download(`${name}.json`, "application/json", JSON.stringify({ account, receipts, record }, null, 2));
    else
      download(
        `${name}.csv`,
        "text/csv",
        csv(
          ["query", "at", "asked", "outcome", "charged_rho"],
          receipts.map((row) => [row.sequence, row.at, row.words, OUTCOME[row.outcome], row.charged_rho]),
        ),
      );
    fill(told, h.p({ class: "small soft" }, "Saved."));
  } catch (error) {
    fill(told, problem(error));
  }
}
