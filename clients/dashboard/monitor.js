// The monitor of a dataset: how many are exhausted by each tick, from the noisy numbers of all ticks so far.

import { get, path, post } from "./api.js";
import { around } from "./chart.js";
import { calmly, fill, h } from "./dom.js";
import { figure } from "./figure.js";
import { count, measured, percent, rounded, times } from "./format.js";
import { problem } from "./shell.js";

const STEPS = 2 ** 20; // of a coefficient
const DEVIATIONS = 1.96; // of an error bar of 95 %

/**
 * @typedef {{ values: number[], sigma: number, ticks: number, share: number, asked: number, ended: boolean }} Monitor
 * @typedef {{ tick: number, value: number, width: number }} Counted
 */

/**
 * The monitor's curve; for an analyst with a button for its next tick, and drawn anew when a watch sees a change.
 * @param {{ name: string }} dataset
 * @param {{ asks?: boolean, watch?: import("./live.js").Watch }} [options]
 */
export async function monitorPart(dataset, { asks = false, watch } = {}) {
  const shown = h.div({ class: "stack" });
  async function show() {
    const monitor = await get(path("datasets", dataset.name, "monitor"));
    fill(shown, curveOf(monitor), asks && !monitor.ended && nextTick(monitor, dataset, show));
  }
  await show();
  watch?.on(calmly(show, 400));
  return h.section(h.h2(`How many are exhausted in ${dataset.name}`), shown);
}

function curveOf(/** @type {Monitor} */ monitor) {
  const counted = countsOf(monitor);
  const left = monitor.ticks - monitor.asked;
  const state = monitor.ended && left > 0 ? "A backup was put back since: it has ended." : `${count(left)} are left.`;
  return [
    counted.length > 0 && figure(chartOf(counted, monitor), { low: true }),
    h.p(
      { class: "soft" },
      `${count(monitor.asked)} of ${times(monitor.ticks, "tick")} were asked. ${state} All are paid from a reserve of`,
      " each limit, and none charges anybody.",
    ),
  ];
}

/** A button that asks for the next tick and draws the curve anew. */
function nextTick(
  /** @type {Monitor} */ monitor,
  /** @type {{ name: string }} */ dataset,
  /** @type {() => Promise<void>} */ show,
) {
  const told = h.div({ "aria-live": "polite" });
  const headers = { "Idempotency-Key": crypto.randomUUID() }; // asking again fetches an answer that was lost
  const query = { version: 1, select: [{ exhausted: {} }] };
  const button = h.button({ type: "button", onclick: ask }, `Ask for tick ${count(monitor.asked + 1)}`);
  async function ask() {
    button.disabled = true;
    try {
      await post(path("datasets", dataset.name, "queries"), query, { headers });
      await show();
    } catch (error) {
      fill(told, problem(error));
      button.disabled = false;
    }
  }
  return h.div({ class: "stack" }, h.div(button), told);
}

/**
 * The running counts with error bars of 95 %, a tick each.
 * @param {Monitor} monitor
 * @returns {Counted[]}
 */
export function countsOf({ values, sigma }) {
  const weights = weightsOf(values.length);
  let squares = 0;
  return weights.map((weight, at) => {
    squares += weight * weight;
    const value = weights.slice(0, at + 1).reduce((sum, each, n) => sum + each * values[at - n], 0);
    return { tick: at + 1, value, width: DEVIATIONS * sigma * Math.sqrt(squares) };
  });
}

/** Running sums after the inverse of the coefficients C(2n, n) / 4^n: what the tick n before weighs, from 0 on. */
function weightsOf(/** @type {number} */ ticks) {
  const coefficients = [];
  for (let n = 0, exact = 1; n < ticks; n += 1, exact *= (2 * n - 1) / (2 * n)) {
    coefficients.push(Math.floor(STEPS * exact + 0.5) / STEPS);
  }
  /** @type {number[]} */
  const weights = [];
  for (let n = 0; n < ticks; n += 1) {
    weights.push(1 - weights.reduce((sum, weight, at) => sum + coefficients[n - at] * weight, 0));
  }
  return weights;
}

const told = (/** @type {Counted} */ { value, width }) => `${measured(value, width)} ± ${rounded(width)}`;

const pointOf = (/** @type {Counted} */ each) => ({
  x: each.tick,
  y: each.value,
  tip: `tick ${count(each.tick)}: ${told(each)}`,
});

/** @returns {import("./figure.js").Told} */
function chartOf(/** @type {Counted[]} */ counted, /** @type {Monitor} */ monitor) {
  const last = counted[counted.length - 1];
  const band = counted.map(({ tick, value, width }) => ({ x: tick, low: value - width, high: value + width }));
  return {
    title: `With less than ${percent(monitor.share)} of the budget left: ${told(last)} by tick ${count(last.tick)}`,
    columns: [
      { title: "Tick", number: true, cell: (each) => count(each.tick) },
      { title: "Exhausted", number: true, cell: (each) => measured(each.value, each.width) },
      { title: "95 % error bar", number: true, cell: (each) => `± ${rounded(each.width)}` },
    ],
    rows: [...counted].reverse(),
    drawing: {
      x: { range: around(counted.map((each) => each.tick)), whole: true, title: "tick" },
      y: {
        range: [Math.min(0, ...band.map((each) => each.low)), 1.05 * Math.max(1, ...band.map((each) => each.high))],
        title: "people",
      },
      bands: [{ points: band }],
      lines: [{ points: counted.map(pointOf) }],
    },
  };
}
