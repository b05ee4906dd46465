// The stream of events of one dataset, with a quiet sign of its state.

import { get, path } from "./api.js";
import { h } from "./dom.js";
import { count, now } from "./format.js";

const STALE_AFTER_MS = 40_000;
const AGAIN_AFTER_MS = 5000;

/** A watch, which begins once the page is drawn and stops when the page is left. */
export class Watch {
  #words = h.span("connecting");
  #dataset;
  /** @type {(() => unknown)[]} */
  #tasks = [];
  /** @type {EventSource | null} */
  #source = null;
  /** @type {number | null} */
  #sequence = null;
  #timer = 0;

  constructor(/** @type {string} */ dataset) {
    this.#dataset = dataset;
    const sign = h.i({ "aria-hidden": "true" });
    this.node = h.span({ class: "live", "data-state": "waiting", role: "status" }, sign, this.#words);
  }

  /** Run `task` with each new sequence. */
  on(/** @type {() => unknown} */ task) {
    this.#tasks.push(task);
  }

  start() {
    const source = new EventSource(path("datasets", this.#dataset, "events"));
    this.#source = source;
    source.addEventListener("sequence", (event) => this.#moved(JSON.parse(event.data).sequence));
    source.onerror = () => this.#broke(source);
  }

  stop() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
    this.#tasks.length = 0;
  }

  #moved(/** @type {number} */ sequence) {
    this.#tell("live", `live, sequence ${count(sequence)}, ${now()}`);
    if (this.#sequence !== null && sequence !== this.#sequence) for (const task of this.#tasks) task();
    this.#sequence = sequence;
    clearTimeout(this.#timer);
  }

  #broke(/** @type {EventSource} */ source) {
    this.#tell("waiting", "reconnecting");
    clearTimeout(this.#timer);
    const stale = () => this.#tell("stale", `stale: as of sequence ${count(this.#sequence ?? 0)}`);
    this.#timer = setTimeout(stale, STALE_AFTER_MS);
    if (source.readyState === EventSource.CLOSED) this.#refused();
  }

  /** The browser connects again by itself, but not where it was refused; an ended session leads to the sign-in. */
  async #refused() {
    await get("/v1/session").catch(() => null);
    setTimeout(() => this.#source && this.start(), AGAIN_AFTER_MS);
  }

  #tell(/** @type {string} */ state, /** @type {string} */ text) {
    this.node.dataset.state = state;
    this.#words.textContent = text;
  }
}
