// The query form, beside the JSON and the Python it makes, with a preview as one types.

import { controlsOf, newItem } from "./analyst-form.js";
import { isBeyondAll, previewOf } from "./analyst-preview.js";
import { pythonOf, queryOf } from "./analyst-query.js";
import { resultOf } from "./analyst-result.js";
import { get, path, post } from "./api.js";
import { individualsOf } from "./columns.js";
import { calmly, field, fill, h } from "./dom.js";
import { problem } from "./shell.js";

/** @typedef {import("./analyst-query.js").State} State */

const CALM_MS = 500;

/** @returns {string} the name of the dataset that the address asks about, or of the first */
export function chosenOf(/** @type {any[]} */ datasets) {
  const asked = new URLSearchParams(location.search).get("dataset");
  return (datasets.find((each) => each.name === asked) ?? datasets[0]).name;
}

/** The section that asks: the rows of all datasets, the first one with its schema, and the items that are offered. */
export function askSection(
  /** @type {any[]} */ datasets,
  /** @type {any} */ first,
  /** @type {import("./analyst-items.js").Forms} */ forms,
) {
  const state = firstState(first, forms);
  const controls = h.div({ class: "stack" });
  const json = h.textarea({
    "aria-label": "The query as JSON",
    spellcheck: "false",
    rows: "14",
    oninput: () => look(),
  });
  const python = h.pre({ tabindex: "0" });
  const { preview, result, button, look, ask } = asking(state, json);
  function show() {
    fill(controls, controlsOf(state, datasets, changed));
    tell();
  }
  function tell() {
    json.value = JSON.stringify(queryOf(state), null, 2);
    python.textContent = pythonOf(state);
    look();
  }
  const changed = (/** @type {boolean} */ redraw) => (redraw ? show() : tell());
  show();
  return h.section(
    h.h1("Ask"),
    h.form(
      { class: "columns", onsubmit: ask },
      h.div({ class: "stack" }, controls, preview, h.div({ class: "row" }, button), result),
      h.div(
        { class: "stack" },
        field("The query as JSON; edit it for what the form does not have", json),
        h.h2("The same in Python"),
        python,
      ),
    ),
  );
}

/** @returns {State} */
function firstState(/** @type {any} */ dataset, /** @type {import("./analyst-items.js").Forms} */ forms) {
  const table = individualsOf(dataset);
  const noise = { mechanism: "gaussian", noise: "share", amount: "0.01", clip: "", reuse: true };
  return { forms, dataset, table, where: [], by: [], items: [newItem(forms, "count")], ...noise };
}

/** What the service says to the query in `json`: a preview as it changes, and its answer. */
function asking(/** @type {State} */ state, /** @type {HTMLTextAreaElement} */ json) {
  const preview = h.div({ class: "stack", "aria-live": "polite" });
  const result = h.div({ "aria-live": "polite" });
  const button = h.button({ type: "submit", class: "main" }, "Ask");
  let key = crypto.randomUUID();
  let isForNobody = false; // as the last preview has it
  const lookCalmly = calmly(async () => {
    const { dataset } = state;
    const isOfAnother = () => state.dataset !== dataset; // chosen meanwhile, whose schema this would be read by
    try {
      const told = await post(path("datasets", dataset.name, "queries", "preview"), JSON.parse(json.value));
      const allowances = await get("/v1/allowances");
      if (isOfAnother()) return;
      const own = allowances.find((/** @type {any} */ each) => each.dataset === dataset.name);
      isForNobody = isBeyondAll(told, dataset);
      fill(preview, previewOf(told, dataset, isForNobody, own));
      button.disabled = false;
    } catch (error) {
      if (isOfAnother()) return;
      const isJson = !(error instanceof SyntaxError);
      fill(preview, problem(isJson ? error : new Error(`The JSON is not complete: ${error.message}`)));
      button.disabled = true;
    }
  }, CALM_MS);
  const look = () => {
    key = crypto.randomUUID();
    lookCalmly();
  };
  async function ask(/** @type {Event} */ event) {
    event.preventDefault();
    const { dataset } = state;
    button.disabled = true;
    fill(result, h.p({ class: "empty", role: "status" }, "Waiting for the answer …"));
    try {
      const headers = { "Idempotency-Key": key };
      const answer = await post(path("datasets", dataset.name, "queries"), JSON.parse(json.value), { headers });
      fill(result, resultOf(answer, dataset, { isForNobody }));
      look();
    } catch (error) {
      fill(result, problem(error)); // the key stays: asking again fetches an answer that was lost
    } finally {
      button.disabled = false;
    }
  }
  return { preview, result, button, look, ask };
}
