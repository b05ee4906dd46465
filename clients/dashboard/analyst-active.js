// How many were active, over time: the analyst's own answers to one question that was asked again and again.

import { get, path, withQuery } from "./api.js";
import { around } from "./chart.js";
import { h } from "./dom.js";
import { figure } from "./figure.js";
import { count, instant, measured, rounded } from "./format.js";

const ASKED_MAX = 1000; // own answers that are looked through, the newest
const QUESTIONS_MAX = 3; // that are drawn at once
const POINTS_MAX = 40; // answers of one question
const GROUPS_MAX = 6;

/**
 * @typedef {{ seq: number, at: string, value: number, width: number }} Point an answer's number of one group
 */

/** The curves of what was asked at least twice, the last question first; with an id, of that answer's question. */
export async function activeCurves(id = "") {
  const { items } = await get(withQuery("/v1/queries", { limit: ASKED_MAX }));
  const asked = [...questionsIn(items).values()].filter((rows) => rows.length > 1);
  const shown = id ? asked.filter((rows) => rows.some((row) => row.id === id)) : asked.slice(0, QUESTIONS_MAX);
  if (!shown.length) return null;
  const figures = [];
  for (const rows of shown) figures.push(await figuresOf(rows));
  return h.section(
    h.h2("Who is still active"),
    figures,
    h.p(
      { class: "soft" },
      "Each point is an answer with noise of its own. At each by itself the band holds what was counted with a",
      " probability of at least 95 %.",
    ),
  );
}

/** @returns {Map<string, any[]>} rows of queries for the active, newest first, by all that they ask but their noise */
function questionsIn(/** @type {any[]} */ rows) {
  const found = new Map();
  const seen = new Set(); // an answer is listed under each of its keys
  for (const row of rows) {
    const { noise: _, ...asked } = row.query;
    if (!asked.select?.[0].active || seen.has(row.id)) continue;
    seen.add(row.id);
    const question = JSON.stringify([row.dataset, asked]);
    found.set(question, [...(found.get(question) ?? []), row]);
  }
  return found;
}

/** A chart for each group, of the answers that have the groups of the newest one. */
async function figuresOf(/** @type {any[]} */ rows) {
  const answers = [];
  for (const row of rows.slice(0, POINTS_MAX).reverse()) answers.push(await get(path("queries", row.id)));
  const newest = answers[answers.length - 1];
  const alike = answers.filter((answer) => answer.dimension === newest.dimension);
  const [first, ...rest] = rows[0].words.slice(0, rows[0].words.lastIndexOf(", ")); // without the noise
  const words = [first.toUpperCase(), ...rest].join("");
  return newest.labels.slice(0, GROUPS_MAX).map((/** @type {any} */ label, /** @type {number} */ at) => {
    const { select: _, ...group } = label;
    const name = Object.values(group).map(String).join(", ");
    return figure(chartOf(name ? `${words}: ${name}` : words, alike.map(pointAt(at))), { low: true });
  });
}

const pointAt = (/** @type {number} */ at) => (answer) => ({
  seq: answer.sequence,
  at: answer.released_at,
  value: answer.values[at],
  width: answer.half_width_95,
});

const told = (/** @type {Point} */ point) => `${measured(point.value, point.width)} ± ${rounded(point.width)}`;

/** @returns {import("./figure.js").Told} */
function chartOf(/** @type {string} */ words, /** @type {Point[]} */ points) {
  const [first, last] = [points[0], points[points.length - 1]];
  const band = points.map(({ seq, value, width }) => ({ x: seq, low: value - width, high: value + width }));
  return {
    title: `${words}: ${told(first)} at first, ${told(last)} now`,
    columns: [
      { title: "At", cell: (point) => h.time({ datetime: point.at }, instant(point.at)) },
      { title: "Active", number: true, cell: (point) => measured(point.value, point.width) },
      { title: "95 % error bar", number: true, cell: (point) => `± ${rounded(point.width)}` },
    ],
    rows: [...points].reverse(),
    drawing: {
      x: { range: around(points.map((point) => point.seq)), whole: true, title: "ledger sequence" },
      y: {
        range: [Math.min(0, ...band.map((each) => each.low)), 1.05 * Math.max(1, ...band.map((each) => each.high))],
        title: "people",
      },
      bands: [{ points: band }],
      lines: [
        {
          points: points.map((point) => ({
            x: point.seq,
            y: point.value,
            tip: `sequence ${count(point.seq)}, ${instant(point.at)}: ${told(point)}`,
          })),
        },
      ],
    },
  };
}
