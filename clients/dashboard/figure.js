// A figure: a sentence as title, a chart with direct labels, and a table of the data behind it.

import { draw } from "./chart.js";
import { fill, h, table } from "./dom.js";

/**
 * @typedef {import("./chart.js").Drawing} Drawing
 * @typedef {import("./chart.js").Target} Target
 *
 * @typedef {object} Told
 * @property {string} title
 * @property {import("./dom.js").Column<any>[]} columns of the table
 * @property {readonly any[]} rows
 * @property {Drawing} drawing
 */

/** It is drawn whenever its place on a page has, or gets, a width. */
class ChartFigure extends HTMLElement {
  #title = h.figcaption();
  #chart = h.div({ class: "chart", role: "img" });
  #tip = h.div({ class: "tip", hidden: true });
  #data = h.div({ class: "table-small" });
  #behind = h.details(h.summary("The data as a table"), this.#data);
  #resized = new ResizeObserver(() => this.#draw());
  /** @type {Told | null} */
  #told = null;
  /** @type {Target[]} */
  #targets = [];

  connectedCallback() {
    if (!this.firstChild) {
      this.append(h.figure(this.#title, this.#chart, this.#behind));
      this.#chart.addEventListener("pointermove", (event) => this.#point(event));
      this.#chart.addEventListener("pointerleave", () => this.#point(null));
      this.#behind.addEventListener("toggle", () => this.#list());
    }
    this.#resized.observe(this.#chart);
  }

  disconnectedCallback() {
    this.#resized.disconnect();
  }

  show(/** @type {Told} */ told) {
    this.#told = told;
    fill(this.#title, told.title);
    this.#chart.setAttribute("aria-label", `Chart: ${told.title}`);
    this.#list();
    this.#draw();
  }

  #list() {
    if (this.#told && this.#behind.open) fill(this.#data, table(this.#told.title, this.#told.columns, this.#told.rows));
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.#chart;
    if (!this.#told || !width || !height) return;
    const { svg, targets } = draw(this.#told.drawing, width, height);
    this.#targets = targets;
    this.#tip.hidden = true;
    fill(this.#chart, svg, this.#tip);
  }

  #point(/** @type {PointerEvent | null} */ event) {
    const box = this.#chart.getBoundingClientRect();
    const found = event && nearest(this.#targets, event.clientX - box.left, event.clientY - box.top);
    this.#tip.hidden = !found;
    if (!found) return;
    fill(this.#tip, found.tip);
    const half = this.#tip.offsetWidth / 2;
    const left = Math.min(Math.max(found.x - half, 0), Math.max(box.width - 2 * half, 0));
    const above = found.y - this.#tip.offsetHeight - 10;
    this.#tip.style.left = `${left}px`;
    this.#tip.style.top = `${above < 0 ? found.y + 10 : above}px`;
  }
}

/**
 * The target of the nearest column, and there the nearest one.
 * @param {Target[]} targets
 * @param {number} x
 * @param {number} y
 * @returns {Target | undefined}
 */
function nearest(targets, x, y) {
  const away = (/** @type {Target} */ each) => Math.abs(each.x - x) + Math.abs(each.y - y) / 1000;
  const least = Math.min(...targets.map(away));
  return targets.find((each) => away(each) === least);
}

customElements.define("chart-figure", ChartFigure);

/**
 * A figure; `show` gives it something else to draw.
 * @param {Told | null} told
 */
export function figure(told = null, { low = false } = {}) {
  const node = new ChartFigure();
  node.classList.toggle("low", low);
  if (told) node.show(told);
  return node;
}
