// The individual's page: what has been done with my data, and what can I do?

import { all, get, path, post, withQuery } from "./api.js";
import { download, field, fill, h, table } from "./dom.js";
import { csv, instant, percent, small } from "./format.js";
import { figure } from "./plots.js";
import { receiptsTable } from "./receipts.js";
import { bar, draw, explained, form, problem, signedIn } from "./shell.js";
import { OUTCOME, receiptsLead } from "./words.js";

const NEWEST = 1000;
const session = await signedIn("individual");
const main = document.getElementById("main");
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
    const chart = figure(() => timeline(first.items, account), { low: true });
    setTimeout(chart.update);
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
        chart.node,
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
  const words =
    spent === 0
      ? "Nothing of your limit is spent."
      : `${percent(spent)} of your limit is spent. ${percent(1 - spent)} is left.`;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 100 8");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", words);
  for (const [kind, x, width] of [
    ["spent", 0, 100 * spent],
    ["left", 100 * spent, 100 * (1 - spent)],
  ]) {
    const part = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({ class: kind, x, y: 0, width, height: 8 }))
      part.setAttribute(name, String(value));
    svg.append(part);
  }
  const soFar = account.epsilon_so_far_time_uniform;
  const promise = `You were promised ε = ${Number(account.promise_epsilon.toPrecision(3))}, δ = ${small(account.delta)}, over everything that is ever asked.`;
  return h.div(
    { class: "gauge" },
    svg,
    h.p({ class: "lead" }, words),
    h.p(
      { class: "soft" },
      `${promise} ${soFar === null ? "" : `So far ε = ${Number(soFar.toPrecision(3))} at most has been used.`}`,
    ),
  );
}

function timeline(rows, account) {
  const shown = rows.filter((row) => row.outcome === "charged" || row.outcome === "left_out").reverse();
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
    rows: [...shown].reverse(),
    get traces() {
      const { blue, orange } = this.colours;
      const charged = shown.filter((row) => row.outcome === "charged"),
        left = shown.filter((row) => row.outcome === "left_out");
      return [
        {
          type: "bar",
          x: charged.map((row) => row.sequence),
          y: charged.map(share),
          marker: { color: blue },
          customdata: charged.map((row) => row.words),
          hovertemplate: "%{customdata}: %{y:.2g} %<extra></extra>",
        },
        {
          type: "scatter",
          mode: "markers",
          x: left.map((row) => row.sequence),
          y: left.map(() => 0),
          marker: { color: orange, symbol: "circle-open", size: 7 },
          customdata: left.map((row) => row.words),
          hovertemplate: "%{customdata}: left you out<extra></extra>",
        },
      ];
    },
    layout: {
      xaxis: { title: { text: "number of the query; rings: left you out" } },
      yaxis: { ticksuffix: " %", rangemode: "tozero", nticks: 4 },
      margin: { l: 44, r: 12, t: 4, b: 40 },
    },
    setColours(colours) {
      this.colours = colours;
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
