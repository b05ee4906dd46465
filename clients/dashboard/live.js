// The stream of events of one dataset, with a quiet sign of its state.

import { path, withQuery } from "./api.js";
import { h } from "./dom.js";
import { count, now } from "./format.js";

const STALE_AFTER_MS = 40_000;

/** A watch: `on(task)` runs a task with each new sequence; `start()` once the page is drawn, `stop()` when it is left. */
export function live(dataset) {
  const words = h.span("connecting");
  const node = h.span(
    { class: "live", "data-state": "waiting", role: "status" },
    h.i({ "aria-hidden": "true" }),
    words,
  );
  const tasks = [];
  let source = null;
  let timer = 0;
  let sequence = null;

  function tell(state, text) {
    node.dataset.state = state;
    words.textContent = text;
  }

  function connect() {
    source = new EventSource(withQuery(path("datasets", dataset, "events"), {}));
    source.addEventListener("sequence", (event) => {
      const told = JSON.parse(event.data).sequence;
      tell("live", `live, sequence ${count(told)}, ${now()}`);
      if (sequence !== null && told !== sequence) tasks.forEach((task) => task(told));
      sequence = told;
      clearTimeout(timer);
    });
    source.onerror = () => {
      tell("waiting", "reconnecting");
      clearTimeout(timer);
      timer = setTimeout(() => tell("stale", `stale: as of sequence ${count(sequence ?? 0)}`), STALE_AFTER_MS);
      if (source.readyState === EventSource.CLOSED) setTimeout(() => source && connect(), 5000);
    };
  }

  return {
    node,
    on: (task) => tasks.push(task),
    start: () => source ?? connect(),
    stop: () => {
      clearTimeout(timer);
      source?.close();
      source = null;
      tasks.length = 0;
    },
  };
}
