// The overview: what is left, how it moves, which people the next queries would lose.

import { get, path, post, put, withQuery } from "./api.js";
import { queriesTable } from "./curator-queries.js";
import { calmly, field, fill, h, select } from "./dom.js";
import { count, guarantee, instant, number, percent } from "./format.js";
import { figure, label } from "./plots.js";
import { draw, facts, form, problem } from "./shell.js";
import { activeTitle, budgetsTitle, forecastTitle } from "./words.js";

const SHOWN = 200;

export async function overviewSection({ dataset, watch }) {
  if (!dataset.individuals) return empty(dataset);
  const at = (...parts) => path("datasets", dataset.name, ...parts);
  const state = { dataset };
  async function fetchAll() {
    [state.summary, state.history, state.ledger] = await Promise.all([
      get(at("budgets", "summary")),
      get(at("budgets", "history")),
      get(withQuery(at("ledger"), { limit: SHOWN })),
    ]);
    state.rows = state.ledger.items.filter((row) => row.kind === "query");
  }
  await fetchAll();

  const lead = h.p({ class: "lead", "aria-live": "polite" });
  const numbers = h.div();
  const newest = h.div();
  const budgets = figure(() => budgetsChart(state));
  const history = figure(() => historyChart(state));
  const active = figure(() => activeChart(state), { low: true });
  const askedBefore = forecastPart(dataset, state, at);
  function show() {
    lead.textContent = budgetsTitle(state.summary);
    fill(numbers, facts(numbersOf(state)));
    fill(newest, queriesTable(state.ledger.items.slice(0, 8), dataset));
    for (const each of [budgets, history, active]) each.update();
  }
  queueMicrotask(() => setTimeout(show));
  watch.on(
    calmly(async () => {
      await fetchAll();
      show();
    }, 400),
  );
  return [
    h.section(h.h1({ class: "visually-hidden" }, `Overview of ${dataset.name}`), lead, numbers),
    h.div({ class: "columns" }, budgets.node, history.node),
    askedBefore,
    h.section(active.node),
    h.section(
      h.header(h.h2("Newest queries"), h.a({ href: `/curator/${dataset.name}/queries` }, "All queries")),
      newest,
    ),
    alarmPart(dataset, at),
  ];
}

function empty(dataset) {
  const individuals = Object.entries(dataset.tables).find(([, each]) => each.kind === "individuals")[0];
  return h.section(
    { class: "narrow" },
    h.h1(`${dataset.name} has no people yet`),
    h.p("Three commands fill it; the pages under Data do the same."),
    h.pre(
      [
        `pip install ./clients/python`,
        `export SPARING_URL=${location.origin} SPARING_API_KEY=<your curator key>`,
        `python -c 'from sparing import Client; print(Client().datasets.upload(dataset="${dataset.name}", table="${individuals}", file="${individuals}.csv"))'`,
      ].join("\n"),
    ),
    h.a({ class: "button", href: `/curator/${dataset.name}/data` }, "Upload a file"),
  );
}

function numbersOf({ dataset, summary }) {
  return [
    [count(summary.individuals), summary.individuals === 1 ? "person" : "people"],
    [count(summary.sequence), "queries answered"],
    [guarantee(dataset), "promised to each person"],
    summary.worst_case_ended_after !== null && [
      count(summary.worst_case_ended_after),
      "queries that worst-case accounting would have answered",
    ],
    summary.paused > 0 && [count(summary.paused), "paused"],
    [count(summary.exhausted), "with nothing left"],
  ];
}

function budgetsChart({ dataset, summary }) {
  const bins = summary.remaining_share_histogram;
  const middle = bins.map((bin) => 50 * (bin.low + bin.high));
  const last = summary.last_query;
  const needed = last ? (100 * Number(last.worst_case_rho)) / Number(dataset.budget_rho) : 0;
  return {
    title: summary.individuals
      ? `What is left of each limit: half have more than ${percent(summary.quantiles["0.5"])}, 5 in 100 less than ${percent(summary.quantiles["0.05"])}`
      : "What is left of each limit",
    columns: [
      { title: "Share left", cell: (bin) => `${number(100 * bin.low)} to ${number(100 * bin.high)} %` },
      { title: "People", number: true, cell: (bin) => count(bin.individuals) },
    ],
    rows: bins,
    get traces() {
      const colours = this.colours;
      return [
        {
          type: "bar",
          x: middle,
          y: bins.map((bin) => bin.individuals),
          width: 1.8,
          marker: { color: bins.map((bin) => (last && 100 * bin.high <= needed ? colours.orange : colours.blue)) },
          customdata: bins.map((bin) => `${number(100 * bin.low)} to ${number(100 * bin.high)} % left`),
          hovertemplate: "%{customdata}: %{y:,} people<extra></extra>",
        },
      ];
    },
    get layout() {
      const { soft, orange } = this.colours;
      const marks = Object.entries(summary.quantiles).filter(([q]) => q === "0.05" || q === "0.5");
      const name = { 0.05: "5 in 100 have less", 0.5: "half have more" };
      return {
        bargap: 0,
        xaxis: { range: [0, 100], ticksuffix: " %", title: { text: "share of the limit left" } },
        yaxis: { title: { text: "people" }, rangemode: "tozero" },
        shapes: [
          ...marks.map(([, value]) => ({
            type: "line",
            x0: 100 * value,
            x1: 100 * value,
            y0: 0,
            y1: 1,
            yref: "paper",
            line: { color: soft, width: 1, dash: "dot" },
          })),
          ...(last
            ? [{ type: "line", x0: needed, x1: needed, y0: 0, y1: 1, yref: "paper", line: { color: orange, width: 2 } }]
            : []),
        ],
        annotations: [
          ...marks.map(([q, value], place) =>
            label(name[q], 100 * value, 1 - 0.1 * place, soft, {
              yref: "paper",
              yanchor: "top",
              xanchor: value > 0.3 ? "right" : "left",
              xshift: value > 0.3 ? -3 : 3,
            }),
          ),
          ...(last && needed <= 100
            ? [label("one more like the last", needed, 0.62, orange, { yref: "paper", xshift: 4 })]
            : []),
        ],
      };
    },
    setColours(colours) {
      this.colours = colours;
    },
  };
}

function historyChart({ history }) {
  const points = history.points;
  const x = points.map((point) => point.seq);
  const line = (place) => points.map((point) => 100 * (point.quantiles[place] ?? 1));
  const first = points[0],
    last = points.at(-1);
  return {
    title:
      points.length > 1
        ? `The middle fell from ${percent(first.quantiles[2] ?? 1)} to ${percent(last.quantiles[2] ?? 1)} between sequence ${count(first.seq)} and ${count(last.seq)}`
        : "How it moves shows here once queries were asked",
    columns: [
      { title: "Sequence", number: true, cell: (point) => count(point.seq) },
      { title: "At", cell: (point) => instant(point.at) },
      ...history.quantiles.map((q, place) => ({
        title: `${number(100 * q)} %`,
        number: true,
        cell: (point) => percent(point.quantiles[place] ?? 1),
      })),
      {
        title: "Cannot afford the last",
        number: true,
        cell: (point) => (point.cannot_afford === null ? "" : count(point.cannot_afford)),
      },
    ],
    rows: points.slice(-100).reverse(),
    get traces() {
      const { blue, pale } = this.colours;
      const band = (low, high, fill) => [
        { type: "scatter", mode: "lines", x, y: line(low), line: { width: 0 }, hoverinfo: "skip" },
        {
          type: "scatter",
          mode: "lines",
          x,
          y: line(high),
          line: { width: 0 },
          fill: "tonexty",
          fillcolor: fill,
          hoverinfo: "skip",
        },
      ];
      return [
        ...band(0, 4, `${pale}80`),
        ...band(1, 3, pale),
        {
          type: "scatter",
          mode: points.length > 1 ? "lines" : "markers",
          x,
          y: line(2),
          line: { color: blue, width: 2 },
          hovertemplate: "sequence %{x}: half have more than %{y:.1f} %<extra></extra>",
        },
      ];
    },
    get layout() {
      const { soft, blue } = this.colours;
      return {
        xaxis: { title: { text: "ledger sequence" } },
        yaxis: { range: [0, 102], ticksuffix: " %", title: { text: "share of the limit left" } },
        annotations: last
          ? [
              label("half", last.seq, 100 * (last.quantiles[2] ?? 1), blue, { xanchor: "right" }),
              label("5 %", last.seq, 100 * (last.quantiles[0] ?? 1), soft, { xanchor: "right", yanchor: "top" }),
            ]
          : [],
      };
    },
    setColours(colours) {
      this.colours = colours;
    },
  };
}

function activeChart({ rows }) {
  const shown = [...rows].reverse();
  const share = (row) => (row.charged + row.left_out ? (100 * row.charged) / (row.charged + row.left_out) : null);
  const least = Math.min(...shown.map((row) => share(row) ?? 100), 100);
  return {
    title: `How many of the people it touched each query could count: ${activeTitle(shown)}`,
    columns: [
      { title: "Query", number: true, cell: (row) => `#${row.sequence}` },
      { title: "Asked", cell: (row) => row.words },
      { title: "Counted", number: true, cell: (row) => count(row.charged) },
      { title: "Left out", number: true, cell: (row) => count(row.left_out) },
    ],
    rows: rows.slice(0, 100),
    get traces() {
      const { blue, orange } = this.colours;
      return [
        {
          type: "scatter",
          mode: "markers",
          x: shown.map((row) => row.sequence),
          y: shown.map(share),
          marker: { size: 6, color: shown.map((row) => (row.left_out ? orange : blue)) },
          customdata: shown.map((row) => [row.words, row.left_out]),
          hovertemplate: "#%{x}: %{customdata[0]}<br>%{y:.2f} % counted, %{customdata[1]:,} left out<extra></extra>",
        },
      ];
    },
    layout: {
      xaxis: { title: { text: "ledger sequence" } },
      yaxis: { ticksuffix: " %", range: [Math.max(0, least - (100 - least) * 0.15 - 1), 100.5] },
      margin: { l: 44, r: 12, t: 4, b: 40 },
    },
    setColours(colours) {
      this.colours = colours;
    },
  };
}

function forecastPart(dataset, state, at) {
  const kinds = new Map();
  for (const row of state.rows) if (!kinds.has(row.words)) kinds.set(row.words, row);
  const kindOf = (tableName) => ({
    version: 1,
    from: tableName,
    select: [{ count: {} }],
    noise: { sigma: 20 },
    per_individual: { l2_clip: 1 },
  });
  const options = [
    ...[...kinds.values()]
      .slice(0, 20)
      .map((row, place) => [JSON.stringify(row.query), `${place === 0 ? "like the last: " : ""}${row.words}`]),
    ...Object.keys(dataset.tables).map((name) => [
      JSON.stringify(kindOf(name)),
      `count of all ${name}, clipped to 1 per person`,
    ]),
  ];
  const kind = select("kind", options, options[0][0]);
  const sigma = h.input({ name: "sigma", type: "number", min: "0", step: "any", value: sigmaOf(options[0][0]) });
  const shown = h.div();
  let told = null;
  const curve = figure(() => forecastChart(told));
  const update = calmly(async () => {
    const query = { ...JSON.parse(kind.value), noise: { sigma: Number(sigma.value) } };
    try {
      told = await post(at("forecast"), query);
      if (!curve.node.isConnected) fill(shown, curve.node);
      await curve.update();
    } catch (error) {
      fill(shown, problem(error));
    }
  });
  kind.addEventListener("change", () => {
    sigma.value = sigmaOf(kind.value);
    update();
  });
  sigma.addEventListener("input", update);
  update();
  return h.section(
    h.h2("What the next queries would meet"),
    h.div({ class: "fields" }, h.div({ class: "wide" }, field("Kind of query", kind)), field("Noise σ", sigma)),
    shown,
  );
}

const sigmaOf = (text) => JSON.parse(text).noise.sigma ?? 20;

function forecastChart(told) {
  const points = told.curve.map((point) => ({ ...point, x: Math.max(point.queries, 0.8) }));
  const marks = told.dropped_after.filter((each) => each.queries !== null && each.queries > 0);
  return {
    title: forecastTitle(told),
    columns: [
      { title: "After so many more", number: true, cell: (point) => count(point.queries) },
      { title: "Still able to pay for one", number: true, cell: (point) => percent(point.share) },
    ],
    rows: told.curve,
    get traces() {
      return [
        {
          type: "scatter",
          mode: "lines",
          x: points.map((point) => point.x),
          y: points.map((point) => 100 * point.share),
          line: { color: this.colours.blue, width: 2, shape: "hv" },
          customdata: points.map((point) => point.queries),
          hovertemplate: "after %{customdata} more: %{y:.1f} % can pay for the next<extra></extra>",
        },
      ];
    },
    get layout() {
      const { soft, orange } = this.colours;
      return {
        xaxis: {
          type: "log",
          title: { text: "more queries of this kind" },
          tickvals: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
        },
        yaxis: { range: [0, 103], ticksuffix: " %", title: { text: "of those touched, able to pay" } },
        shapes: marks.map((mark) => ({
          type: "line",
          x0: mark.queries,
          x1: mark.queries,
          y0: 0,
          y1: 1,
          yref: "paper",
          line: { color: orange, width: 1, dash: "dot" },
        })),
        annotations: marks.map((mark, place) =>
          label(
            `${percent(mark.share)} gone`,
            Math.log10(mark.queries),
            0.04 + 0.1 * (marks.length - 1 - place),
            orange,
            { yref: "paper", xanchor: "right", xshift: -3 },
          ),
        ),
      };
    },
    setColours(colours) {
      this.colours = colours;
    },
  };
}

function alarmPart(dataset, at) {
  const shown = h.div();
  draw(shown, async () => {
    const alarm = await get(at("alarm"));
    const share = h.input({
      name: "share",
      type: "number",
      min: "0.01",
      max: "100",
      step: "any",
      value: alarm.share === null ? "" : String(100 * alarm.share),
      placeholder: "none",
    });
    const told =
      alarm.rang_at_sequence === null
        ? null
        : h.div(
            { class: "note problem" },
            `It rang at sequence ${count(alarm.rang_at_sequence)}. Setting it anew arms it again.`,
          );
    return [
      told,
      form(
        [
          h.div(
            { class: "fields" },
            field("Per cent of the people", share, "A line in the service's log, once. Empty for no alarm."),
          ),
        ],
        async (data) => {
          await put(at("alarm"), { share: data.share === "" ? null : Number(data.share) / 100 });
          return data.share === ""
            ? "No alarm is set."
            : `It rings when ${data.share} % cannot afford another query like the last.`;
        },
        { button: "Set the alarm", main: false },
      ),
    ];
  });
  return h.section(
    h.h2("An alarm before the cliff"),
    h.p({ class: "soft" }, "It rings when so many cannot afford another query like the last."),
    shown,
  );
}
