// A drawing as SVG: two axes, and bars, dots, lines and bands on them. Colours are classes of the style sheet, so that
// nothing is drawn again when the scheme changes.

import { LETTER, LINE, laidOut, spread } from "./chart-labels.js";
import { inOrder } from "./dom.js";
import { number } from "./format.js";

/**
 * @typedef {"blue" | "orange" | "soft"} Colour
 * @typedef {object} Axis
 * @property {[number, number]} range for names, of their places: -0.5 to their count less 0.5
 * @property {string} [title]
 * @property {string} [unit] stands after each number
 * @property {boolean} [log] logarithmic
 * @property {boolean} [whole] numbered at whole numbers alone
 * @property {string[]} [names] names in place of numbers
 *
 * @typedef {{ from: number, to: number, y: number, colour: Colour, tip: string }} Bar
 * @typedef {{ x: number, y: number, colour: Colour, tip: string, ends?: [number, number], ring?: boolean }} Dot
 * @typedef {{ x: number, y: number, tip: string }} Point
 * @typedef {{ points: Point[], step?: boolean }} Line a step keeps the height of the point before it
 * @typedef {{ points: { x: number, low: number, high: number }[], faint?: boolean }} Band
 * @typedef {{ x: number, text: string, colour: Colour, solid?: boolean }} Rule a line from its label down
 * @typedef {{ y: number, text: string, colour: Colour }} End a label at the right end
 *
 * @typedef {object} Drawing
 * @property {Axis} x
 * @property {Axis} y
 * @property {Band[]} [bands]
 * @property {Bar[]} [bars]
 * @property {Line[]} [lines]
 * @property {Dot[]} [dots]
 * @property {Rule[]} [rules]
 * @property {End[]} [ends]
 *
 * @typedef {{ x: number, y: number, tip: string }} Target a place in pixels with words
 * @typedef {{ at: (value: number) => number, ticks: { at: number, text: string }[] }} Scale
 * @typedef {{ left: number, right: number, top: number, bottom: number }} Box
 */

const SVG = "http://www.w3.org/2000/svg";
const TOP = 10; // px above the chart
const ABOVE = 6; // px between the chart and the labels above it
const TICK_SPACE = { x: 56, y: 34 }; // px at least from one number of an axis to the next
const NAME_MAX = 14; // letters of a name at an axis

/** @returns {SVGElement} */
export function shape(/** @type {string} */ tag, /** @type {Record<string, unknown>} */ attributes, text = "") {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, typeof value === "number" ? String(Math.round(100 * value) / 100) : String(value));
  }
  node.textContent = inOrder(text);
  return node;
}

/**
 * The drawing in a box of this size, and what can be pointed at.
 * @param {Drawing} drawing
 * @param {number} width
 * @param {number} height
 */
export function draw(drawing, width, height) {
  const bottom = height - (drawing.x.title ? 40 : 24);
  const numbers = scale(drawing.y, bottom, TOP, TICK_SPACE.y).ticks.map((tick) => tick.text.length);
  const left = LETTER * Math.max(...numbers) + 10 + (drawing.y.title ? 18 : 0);
  const right = width - Math.max(14, 6 + LETTER * Math.max(0, ...(drawing.ends ?? []).map((end) => end.text.length)));
  const x = scale(drawing.x, left, right, xSpace(drawing.x));
  const labels = laidOut(drawing.rules ?? [], x.at, right);
  const top = TOP + (labels.length && ABOVE) + LINE * Math.max(0, ...labels.map((label) => label.row + 1));
  const y = scale(drawing.y, bottom, top, TICK_SPACE.y);
  const box = { left, right, top, bottom };
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  svg.append(
    ...axes(drawing, x, y, box),
    ...(drawing.bands ?? []).map((band) => bandShape(band, x, y)),
    ...(drawing.bars ?? []).map((bar) => barShape(bar, x, y)),
    ...(drawing.lines ?? []).map((line) => lineShape(line, x, y)),
    ...dotShapes(drawing.dots ?? [], x, y),
    ...ruleShapes(labels, box),
    ...endShapes(drawing.ends ?? [], y, box),
  );
  return { svg, targets: targets(drawing, x, y) };
}

/**
 * The least and the largest of whole numbers, and half of one more at each side.
 * @param {number[]} numbers
 * @returns {[number, number]}
 */
export const around = (numbers) =>
  numbers.length ? [Math.min(...numbers) - 0.5, Math.max(...numbers) + 0.5] : [0.5, 1.5];

/** @returns {Target[]} */
function targets(/** @type {Drawing} */ { bars = [], lines = [], dots = [] }, /** @type {Scale} */ x, y) {
  return [
    ...bars.map((bar) => ({ x: x.at((bar.from + bar.to) / 2), y: y.at(bar.y), tip: bar.tip })),
    ...[...dots, ...lines.flatMap((line) => line.points)].map((each) => ({
      x: x.at(each.x),
      y: y.at(each.y),
      tip: each.tip,
    })),
  ];
}

const xSpace = (/** @type {Axis} */ axis) =>
  axis.names ? LETTER * Math.min(NAME_MAX, Math.max(...axis.names.map((name) => name.length))) + 12 : TICK_SPACE.x;

/**
 * @param {Axis} axis
 * @param {number} from where its range begins, in pixels
 * @param {number} to where it ends
 * @param {number} space between its numbers at least
 * @returns {Scale}
 */
function scale(axis, from, to, space) {
  const place = axis.log ? Math.log10 : (/** @type {number} */ value) => value;
  const [low, high] = axis.range.map(place);
  const at = (/** @type {number} */ value) => from + ((place(value) - low) / (high - low || 1)) * (to - from);
  const most = Math.max(1, Math.abs(to - from) / space);
  if (axis.names) return { at, ticks: nameTicks(axis.names, most).map((name) => ({ ...name, at: at(name.at) })) };
  const values = axis.log ? logTicks(axis.range, most) : evenTicks(axis, most);
  return { at, ticks: values.map((value) => ({ at: at(value), text: tickText(value) + (axis.unit ?? "") })) };
}

const tickText = (/** @type {number} */ value) => number(value).replace("-", "−");

function nameTicks(/** @type {string[]} */ names, /** @type {number} */ most) {
  const step = Math.ceil(names.length / most);
  const shortened = (/** @type {string} */ name) => (name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name);
  return names.map((name, at) => ({ text: shortened(name), at })).filter(({ at }) => at % step === 0);
}

function logTicks(/** @type {[number, number]} */ [low, high], /** @type {number} */ most) {
  const decades = Math.log10(high / low);
  const digits = decades * 3 <= most ? [1, 2, 5] : [1];
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    found.push(...digits.map((digit) => digit * 10 ** power));
  }
  return found.filter((value) => value >= low && value <= high);
}

/** Multiples of 1, 2 or 5 times a power of ten, at most so many; none of them is the negative zero. */
function evenTicks(/** @type {Axis} */ { range: [low, high], whole }, /** @type {number} */ most) {
  const least = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(least));
  const nice = power * ([1, 2, 5].find((digit) => digit * power >= least) ?? 10);
  const step = whole ? Math.max(1, nice) : nice;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) found.push(at * step + 0);
  return found;
}

function axes(/** @type {Drawing} */ drawing, /** @type {Scale} */ x, /** @type {Scale} */ y, /** @type {Box} */ box) {
  const { left, right, top, bottom } = box;
  const middle = (top + bottom) / 2;
  const titleY = { x: 10, y: middle, transform: `rotate(-90 10 ${middle})`, "text-anchor": "middle" };
  return [
    ...y.ticks.flatMap(({ at, text }) => [
      shape("line", { class: "grid", x1: left, x2: right, y1: at, y2: at }),
      shape("text", { x: left - 8, y: at + 4, "text-anchor": "end" }, text),
    ]),
    ...x.ticks.flatMap(({ at, text }) => [
      shape("line", { class: "axis", x1: at, x2: at, y1: bottom, y2: bottom + 4 }),
      shape("text", { x: at, y: bottom + 17, "text-anchor": "middle" }, text),
    ]),
    shape("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }),
    ...(drawing.y.range[0] < 0
      ? [shape("line", { class: "axis", x1: left, x2: right, y1: y.at(0), y2: y.at(0) })]
      : []),
    ...(drawing.y.title ? [shape("text", titleY, drawing.y.title)] : []),
    ...(drawing.x.title
      ? [shape("text", { x: (left + right) / 2, y: bottom + 35, "text-anchor": "middle" }, drawing.x.title)]
      : []),
  ];
}

function barShape(/** @type {Bar} */ bar, /** @type {Scale} */ x, /** @type {Scale} */ y) {
  const from = x.at(bar.from);
  const width = Math.max(1, x.at(bar.to) - from);
  const [top, base] = [y.at(Math.max(bar.y, 0)), y.at(Math.min(bar.y, 0))];
  const gap = width > 4 ? 1 : 0;
  return shape("rect", { class: `bar ${bar.colour}`, x: from, width: width - gap, y: top, height: base - top });
}

const path = (/** @type {[number, number][]} */ places) =>
  places.length ? `M${places.map((place) => place.map((each) => each.toFixed(1)).join(" ")).join("L")}` : "";

function lineShape(/** @type {Line} */ { points, step }, /** @type {Scale} */ x, /** @type {Scale} */ y) {
  if (points.length === 1)
    return shape("circle", { class: "dot blue", cx: x.at(points[0].x), cy: y.at(points[0].y), r: 3 });
  const places = points.map((point) => /** @type {[number, number]} */ ([x.at(point.x), y.at(point.y)]));
  const corners = places.flatMap((place, at) => (step && at > 0 ? [[place[0], places[at - 1][1]], place] : [place]));
  return shape("path", { class: "line blue", d: path(/** @type {[number, number][]} */ (corners)) });
}

function bandShape(/** @type {Band} */ { points, faint }, /** @type {Scale} */ x, /** @type {Scale} */ y) {
  const side = (/** @type {"low" | "high"} */ name) =>
    points.map((point) => /** @type {[number, number]} */ ([x.at(point.x), y.at(point[name])]));
  return shape("path", { class: faint ? "band faint" : "band", d: path([...side("low"), ...side("high").reverse()]) });
}

function dotShapes(/** @type {Dot[]} */ dots, /** @type {Scale} */ x, /** @type {Scale} */ y) {
  const r = dots.length > 200 ? 2 : 3.5;
  const cap = dots.length > 60 ? 0 : 4;
  return [
    shape("path", { class: "whisker", d: dots.map((dot) => whisker(dot, x, y, cap)).join("") }),
    ...dots.map((dot) =>
      shape("circle", { class: `${dot.ring ? "ring" : "dot"} ${dot.colour}`, cx: x.at(dot.x), cy: y.at(dot.y), r }),
    ),
  ];
}

/** An error bar, with a cap at each end where there is room. */
function whisker(/** @type {Dot} */ dot, /** @type {Scale} */ x, /** @type {Scale} */ y, /** @type {number} */ cap) {
  if (dot.ends === undefined) return "";
  const ends = dot.ends.map((end) => y.at(end));
  const middle = x.at(dot.x);
  const caps = ends.map((end) => `M${middle - cap} ${end}h${2 * cap}`);
  return `M${middle} ${ends.join("V")}${caps.join("")}`;
}

/** Lines from their labels down, and the labels above the chart. */
function ruleShapes(/** @type {import("./chart-labels.js").Label[]} */ labels, /** @type {Box} */ { top, bottom }) {
  const height = (/** @type {number} */ row) => top - ABOVE - LINE * row;
  return [
    ...labels.map(({ at, colour, solid, row }) => {
      const ends = { x1: at, x2: at, y1: height(row) - 10, y2: bottom };
      return shape("line", { class: `rule ${colour}${solid ? " solid" : ""}`, ...ends });
    }),
    ...labels.map(({ at, from, text, colour, row }) => {
      const side =
        from < at ? { x: Math.max(from, at - 5), "text-anchor": "end" } : { x: from, "text-anchor": "start" };
      return shape("text", { class: `label ${colour}`, y: height(row), ...side }, text);
    }),
  ];
}

/** Labels at the right end, a line apart at least. */
function endShapes(/** @type {End[]} */ ends, /** @type {Scale} */ y, /** @type {Box} */ box) {
  const sorted = [...ends].sort((one, other) => one.y - other.y);
  const heights = spread(
    sorted.map((end) => y.at(end.y) + 4),
    box.top,
    box.bottom,
  );
  return sorted.map((end, at) =>
    shape("text", { class: `label ${end.colour}`, x: box.right + 6, y: heights[at] }, end.text),
  );
}
