// The charts of the overview, each a function of what the service told.

import { around } from "./chart.js";
import { count, instant, number, percent } from "./format.js";
import { activeTitle, dropOuts, forecastTitle, shareLeft } from "./words.js";

/** @typedef {import("./figure.js").Told} Told */

const MOST_ROWS = 100;

/** @returns {Told} what is left of each limit */
export function budgetsChart(dataset, summary) {
  const { remaining_share_histogram: bins, quantiles, typical_query: typical } = summary;
  const needed = typical ? (100 * Number(typical.worst_case_rho)) / Number(dataset.budget_rho) : 0;
  const bars = merged(bins);
  const half = quantiles["0.5"];
  const few = quantiles["0.05"];
  const between = (bin) => `${number(100 * bin.low)} to ${number(100 * bin.high)} %`;
  /** @type {import("./chart.js").Rule[]} */
  const lost = typical && needed <= 100 ? [{ x: needed, text: "a typical query", colour: "orange", solid: true }] : [];
  return {
    title: `What is left of each limit: half have ${shareLeft(half)}, 5 in 100 at most ${percent(few)}`,
    columns: [
      { title: "Share left", cell: between },
      { title: "People", number: true, cell: (bin) => count(bin.individuals) },
    ],
    rows: bins,
    drawing: {
      x: { range: [0, 100], unit: " %", title: "share of the limit left" },
      y: { range: [0, 1.05 * Math.max(1, ...bars.map((bin) => bin.individuals))], whole: true, title: "people" },
      bars: bars.map((bin) => ({
        from: 100 * bin.low,
        to: 100 * bin.high,
        y: bin.individuals,
        colour: typical && 100 * bin.high <= needed ? "orange" : "blue",
        tip: `${between(bin)} left: ${count(bin.individuals)} people`,
      })),
      rules: [
        { x: 100 * few, text: "5 in 100 have no more", colour: "soft" },
        { x: 100 * half, text: "half have as much", colour: "soft" },
        ...lost,
      ],
    },
  };
}

const FILLED_LEAST = 0.8;
const MERGED = [1, 2, 5]; // so many bins as one bar

/** The bins, or wider ones where most between the first and the last person are empty: bars beside each other. */
function merged(bins) {
  const of = (/** @type {number} */ size) =>
    bins
      .filter((_, at) => at % size === 0)
      .map(({ low }, at) => {
        const part = bins.slice(size * at, size * (at + 1));
        return { low, high: part.at(-1).high, individuals: part.reduce((sum, bin) => sum + bin.individuals, 0) };
      });
  const isFilled = (wide) => {
    const held = wide.flatMap((bin, at) => (bin.individuals ? [at] : []));
    return held.length >= FILLED_LEAST * (held[held.length - 1] - held[0] + 1);
  };
  return MERGED.map(of).find(isFilled) ?? of(MERGED[MERGED.length - 1]);
}

/** @returns {Told} how what is left moves */
export function historyChart({ points, quantiles }) {
  const share = (point, place) => 100 * (point.quantiles[place] ?? 1);
  const [first, last] = [points[0], points.at(-1)];
  const band = (low, high) => points.map((each) => ({ x: each.seq, low: share(each, low), high: share(each, high) }));
  const fell = () =>
    `The middle fell from ${percent(share(first, 2) / 100)} to ${percent(share(last, 2) / 100)}` +
    ` between sequence ${count(first.seq)} and ${count(last.seq)}`;
  const shares = quantiles.map((q, place) => ({
    title: `${number(100 * q)} %`,
    number: true,
    cell: (point) => percent(point.quantiles[place] ?? 1),
  }));
  const half = points.map((each) => ({
    x: each.seq,
    y: share(each, 2),
    tip: `sequence ${count(each.seq)}: half have ${shareLeft(each.quantiles[2] ?? 1)}`,
  }));
  return {
    title: points.length > 1 ? fell() : "How it moves shows here once queries were asked",
    columns: [
      { title: "Sequence", number: true, cell: (point) => count(point.seq) },
      { title: "At", cell: (point) => instant(point.at) },
      ...shares,
      { title: "Cannot afford a typical one", number: true, cell: (point) => known(point.cannot_afford) },
    ],
    rows: points.slice(-MOST_ROWS).reverse(),
    drawing: {
      x: { range: last ? [first.seq, last.seq] : [0, 1], whole: true, title: "ledger sequence" },
      y: { range: [0, 102], unit: " %", title: "of the limit left" },
      bands: last ? [{ points: band(0, 4), faint: true }, { points: band(1, 3) }] : [],
      lines: last ? [{ points: half }] : [],
      ends: last ? ENDS.map(({ place, ...end }) => ({ ...end, y: share(last, place) })) : [],
    },
  };
}

/** @type {{ place: number, text: string, colour: "blue" | "soft" }[]} */
const ENDS = [
  { place: 0, text: "5 %", colour: "soft" },
  { place: 2, text: "half", colour: "blue" },
  { place: 4, text: "95 %", colour: "soft" },
];

const known = (value) => (value === null ? "" : count(value));

/** @returns {Told} how many of the people that it touched each query could count */
export function activeChart(rows) {
  const shown = rows.filter((row) => row.charged + row.left_out > 0).reverse();
  const share = (row) => (100 * row.charged) / (row.charged + row.left_out);
  const least = Math.min(100, ...shown.map(share));
  const pad = (100 - least) * 0.1 + 0.5;
  return {
    title: `How many of the people it touched each query could count: ${activeTitle(rows)}`,
    columns: [
      { title: "Query", number: true, cell: (row) => `#${row.sequence}` },
      { title: "Asked", cell: (row) => row.words },
      { title: "Counted", number: true, cell: (row) => count(row.charged) },
      { title: "Left out", number: true, cell: (row) => count(row.left_out) },
    ],
    rows: rows.slice(0, MOST_ROWS),
    drawing: {
      x: { range: around(shown.map((row) => row.sequence)), whole: true, title: "ledger sequence" },
      y: { range: [Math.max(0, least - pad), 100 + pad / 2], unit: " %" },
      dots: shown.map((row) => ({
        x: row.sequence,
        y: share(row),
        colour: row.left_out ? "orange" : "blue",
        tip: `#${row.sequence}: ${row.words}; ${percent(share(row) / 100)} counted, ${count(row.left_out)} left out`,
      })),
    },
  };
}

/** @returns {Told} how many could pay after so many more */
export function forecastChart(forecast) {
  const points = forecast.curve.map(({ queries, share }) => ({
    x: Math.max(queries, BEFORE_ONE),
    y: 100 * share,
    tip: `after ${count(queries)} more: ${percent(share)} can pay for the next`,
  }));
  return {
    title: forecastTitle(forecast),
    columns: [
      { title: "After so many more", number: true, cell: (point) => count(point.queries) },
      { title: "Still able to pay for one", number: true, cell: (point) => percent(point.share) },
    ],
    rows: forecast.curve,
    drawing: {
      x: {
        range: [BEFORE_ONE, Math.max(10, ...points.map((point) => point.x))],
        log: true,
        title: "more queries of this kind",
      },
      y: { range: [0, 103], unit: " %", title: "able to pay" },
      lines: [{ points, step: true }],
      rules: dropOuts(forecast).map((mark) => ({ x: mark.queries, text: `${mark.shares} gone`, colour: "orange" })),
    },
  };
}

const BEFORE_ONE = 0.8; // where nothing more is on a logarithmic axis
