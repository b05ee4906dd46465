// The overview: what is left, how it moves, which people the next queries would lose.

import { get, path, post, put, withQuery } from "./api.js";
import { individualsOf } from "./columns.js";
import { activeChart, budgetsChart, forecastChart, historyChart } from "./curator-charts.js";
import { queriesTable } from "./curator-queries.js";
import { calmly, field, fill, h, select } from "./dom.js";
import { figure } from "./figure.js";
import { accounting, count, guarantee, number, percent } from "./format.js";
import { draw, facts, form, problem } from "./shell.js";
import { askingWords, budgetsTitle, isPure, unitLetter } from "./words.js";

const SHOWN = 200;
const NEWEST = 8;
const KINDS = 20;

export async function overviewSection({ dataset, watch, asking }) {
  if (!dataset.individuals) return empty(dataset);
  const at = (...parts) => path("datasets", dataset.name, ...parts);
  const lead = h.p({ class: "lead", "aria-live": "polite" });
  const numbers = h.div();
  const newest = h.div();
  const [budgets, history, active] = [figure(), figure(), figure(null, { low: true })];
  async function show() {
    const [summary, points, ledger] = await Promise.all([
      get(at("budgets", "summary")),
      get(at("budgets", "history")),
      get(withQuery(at("ledger"), { limit: SHOWN })),
    ]);
    const rows = ledger.items.filter((row) => row.kind === "query");
    lead.textContent = budgetsTitle(summary);
    fill(numbers, facts(numbersOf(dataset, summary)));
    fill(newest, queriesTable(ledger.items.slice(0, NEWEST), dataset));
    budgets.show(budgetsChart(dataset, summary));
    history.show(historyChart(points));
    active.show(activeChart(rows));
    return rows;
  }
  const rows = await show();
  watch.on(calmly(show, 400));
  const all = h.a({ href: `/curator/${dataset.name}/queries` }, "All queries");
  return [
    asking.length > 0 && requestsPart(dataset, asking.length),
    h.section(h.h1({ class: "visually-hidden" }, `Overview of ${dataset.name}`), lead, numbers),
    h.div({ class: "columns" }, budgets, history),
    forecastPart(dataset, rows, at),
    h.section(active),
    dataset.monitor && (await exhaustedPart(dataset, watch)),
    h.section(h.header(h.h2("Newest queries"), all), newest),
    alarmPart(at),
  ];
}

async function exhaustedPart(dataset, watch) {
  const { monitorPart } = await import("./monitor.js");
  return monitorPart(dataset, { watch });
}

const requestsPart = (dataset, /** @type {number} */ asking) =>
  h.div(
    { class: "note problem" },
    h.strong(askingWords(asking)),
    h.a({ href: `/curator/${dataset.name}/people` }, "See the requests"),
  );

function empty(dataset) {
  const table = individualsOf(dataset);
  const upload = `Client().datasets.upload(dataset="${dataset.name}", table="${table}", file="${table}.csv")`;
  const commands = [
    "pip install ./clients/python",
    `export SPARING_URL=${location.origin} SPARING_API_KEY=<your curator key>`,
    `python -c 'from sparing import Client; print(${upload})'`,
  ];
  return h.section(
    { class: "narrow" },
    h.h1(`${dataset.name} has no people yet`),
    h.p("Three commands fill it; the pages under Data do the same."),
    h.pre(commands.join("\n")),
    h.a({ class: "button", href: `/curator/${dataset.name}/data` }, "Upload a file"),
  );
}

/** @returns {([string, string] | false)[]} */
function numbersOf(dataset, summary) {
  return [
    [count(summary.individuals), summary.individuals === 1 ? "person" : "people"],
    [count(summary.sequence), "queries answered"],
    [guarantee(dataset), `promised to each person${accounting(dataset)}`],
    summary.promise_epsilon_advisory !== null && [
      `ε = ${number(summary.promise_epsilon_advisory)}`,
      "advisory: what that is worth while all noise is Gaussian",
    ],
    summary.worst_case_ended_after !== null && [
      count(summary.worst_case_ended_after),
      "queries that worst-case accounting would have answered",
    ],
    summary.paused > 0 && [count(summary.paused), "paused"],
    summary.left_out_for_good > 0 && [count(summary.left_out_for_good), "left out for good"],
    summary.erasures_asked > 0 && [count(summary.erasures_asked), "ask to be erased"],
    [count(summary.exhausted), "with nothing left"],
  ];
}

function forecastPart(dataset, rows, at) {
  const options = kindsOf(dataset, rows);
  const kind = select("kind", options, options[0][0]);
  const amounts = h.div({ class: "fields" }, ...amountFields(kind.value, dataset));
  const curve = figure();
  const shown = h.div();
  const update = calmly(async () => {
    const numbers = [...amounts.querySelectorAll("input")].map((input) => Number(input.value));
    const query = JSON.parse(kind.value);
    query.noise[wayOf(query.noise)] = numbers.length === 1 ? numbers[0] : numbers;
    try {
      curve.show(forecastChart(await post(at("forecast"), query)));
      if (!curve.isConnected) fill(shown, curve);
    } catch (error) {
      fill(shown, problem(error));
    }
  });
  kind.addEventListener("change", () => {
    fill(amounts, ...amountFields(kind.value, dataset));
    update();
  });
  amounts.addEventListener("input", update);
  update();
  return h.section(
    h.h2("What the next queries would meet"),
    h.div({ class: "fields" }, h.div({ class: "wide" }, field("Kind of query", kind)), amounts),
    shown,
  );
}

/**
 * The kinds of query that were asked last, and a count of each table.
 * @returns {[string, string][]}
 */
function kindsOf(dataset, entries) {
  // Of parameters by their hash only the analyst who sent them can make a query again; a tick charges nobody.
  const again = (query) => !query.select[0].exhausted && !JSON.stringify(query).includes('"sha256":');
  const rows = entries.filter((row) => row.query && again(row.query));
  const asked = new Map(rows.map((row) => [row.words, row.query]).reverse()); // the newest of each is kept
  const newest = [...new Set(rows.map((row) => row.words))].slice(0, KINDS);
  const counted = (from) => ({
    version: 1,
    from,
    select: [{ count: {} }],
    ...(isPure(dataset) ? { mechanism: "laplace", noise: { scale: 20 } } : { noise: { sigma: 20 } }),
    per_individual: { l2_clip: 1 },
  });
  /** @type {(query: unknown, words: string) => [string, string]} */
  const option = (query, words) => [JSON.stringify(query), words];
  return [
    ...newest.map((words, place) => option(asked.get(words), `${place ? "" : "like the last: "}${words}`)),
    ...Object.keys(dataset.tables).map((name) =>
      option(counted(name), `count of all ${name}, clipped to 1 per person`),
    ),
  ];
}

/** @type {Record<string, (noise: any, dataset: any) => string>} what a noise is stated by */
const WAYS = {
  sigma: () => "Noise σ",
  scale: () => "Noise b",
  half_width: ({ confidence }) => `Error bar ±, ${percent(confidence)}`,
  share: () => "Worst case, share of the budget",
  rho: (_, dataset) => `Worst case in ${unitLetter(dataset)}`,
};

/** The name of the amount that a noise is stated by. */
const wayOf = (/** @type {Record<string, unknown>} */ noise) => Object.keys(WAYS).find((way) => way in noise) ?? "";

/** One field for the amount of a query's noise, or one for each item that has its own. */
function amountFields(/** @type {string} */ text, dataset) {
  const { noise } = JSON.parse(text);
  const way = wayOf(noise);
  const label = WAYS[way](noise, dataset);
  const bounds = { type: "number", min: "0", max: way === "share" && "1", step: "any" };
  return [noise[way]]
    .flat()
    .map((value, place, { length }) =>
      field(length === 1 ? label : `${label} of item ${place + 1}`, h.input({ name: way, ...bounds, value })),
    );
}

function alarmPart(at) {
  const shown = h.div();
  draw(shown, async () => {
    const alarm = await get(at("alarm"));
    const rang =
      alarm.rang_at_sequence !== null &&
      `It rang at sequence ${count(alarm.rang_at_sequence)}. Setting it anew arms it again.`;
    return [rang && h.div({ class: "note problem" }, rang), alarmForm(alarm, at)];
  });
  return h.section(
    h.h2("An alarm before the cliff"),
    h.p({ class: "soft" }, "It rings when so many cannot afford another typical query."),
    shown,
  );
}

function alarmForm(alarm, at) {
  const value = alarm.share === null ? "" : String(100 * alarm.share);
  const bounds = { type: "number", min: "0.01", max: "100", step: "any" };
  const share = h.input({ name: "share", ...bounds, value, placeholder: "none" });
  const hint = "A line in the service's log, once. Empty for no alarm.";
  return form(
    h.div({ class: "fields" }, field("Per cent of the people", share, hint)),
    async (data) => {
      await put(at("alarm"), { share: data.share === "" ? null : Number(data.share) / 100 });
      if (data.share === "") return "No alarm is set.";
      return `It rings when ${data.share} % cannot afford another typical query.`;
    },
    { button: "Set the alarm", main: false },
  );
}
