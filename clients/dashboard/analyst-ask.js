// The query form, beside the JSON and the Python it makes, with a preview as one types.

import { path, post } from "./api.js";
import { resultOf } from "./analyst-result.js";
import { columnWords, individualsOf } from "./columns.js";
import { calmly, field, fill, h, select } from "./dom.js";
import { number, percent, rho } from "./format.js";
import { problem } from "./shell.js";

const SIGNS = [
  ["eq", "="],
  ["ne", "≠"],
  ["lt", "<"],
  ["le", "≤"],
  ["gt", ">"],
  ["ge", "≥"],
  ["in", "one of"],
];

export async function askSection(datasets, allowances) {
  const asked = new URLSearchParams(location.search).get("dataset");
  const state = {
    dataset: datasets.find((each) => each.name === asked) ?? datasets[0],
    where: [],
    by: [],
    noise: "sigma",
    amount: "20",
    clip: "",
    what: "count",
    reuse: true,
  };
  state.table = individualsOf(state.dataset);
  const controls = h.div({ class: "stack" });
  const json = h.textarea({ "aria-label": "The query as JSON", spellcheck: "false", rows: "14" });
  const python = h.pre({ tabindex: "0" });
  const preview = h.div({ "aria-live": "polite" });
  const result = h.div({ "aria-live": "polite" });
  const button = h.button({ type: "submit", class: "main" }, "Ask");
  let key = crypto.randomUUID();
  let byHand = false;

  const look = calmly(async () => {
    try {
      const told = await post(path("datasets", state.dataset.name, "queries", "preview"), JSON.parse(json.value));
      fill(
        preview,
        previewOf(
          told,
          state.dataset,
          (await allowances()).find((each) => each.dataset === state.dataset.name),
        ),
      );
      button.disabled = false;
    } catch (error) {
      fill(
        preview,
        error instanceof SyntaxError
          ? problem(new Error(`The JSON is not complete: ${error.message}`))
          : problem(error),
      );
      button.disabled = true;
    }
  }, 500);
  function tell() {
    if (!byHand) json.value = JSON.stringify(queryOf(state), null, 2);
    python.textContent = pythonOf(state);
    key = crypto.randomUUID();
    look();
  }
  function show() {
    fill(
      controls,
      controlsOf(state, datasets, (redraw) => {
        byHand = false;
        if (redraw) show();
        else tell();
      }),
    );
    tell();
  }
  json.addEventListener("input", () => {
    byHand = true;
    key = crypto.randomUUID();
    look();
  });
  async function ask(event) {
    event.preventDefault();
    button.disabled = true;
    fill(result, h.p({ class: "empty", role: "status" }, "Waiting for the answer …"));
    try {
      fill(
        result,
        resultOf(
          await post(path("datasets", state.dataset.name, "queries"), JSON.parse(json.value), {
            headers: { "Idempotency-Key": key },
          }),
        ),
      );
      key = crypto.randomUUID();
      look();
    } catch (error) {
      fill(result, problem(error)); // the key stays: asking again fetches an answer that was lost
    } finally {
      button.disabled = false;
    }
  }
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

function controlsOf(state, datasets, changed) {
  const table = state.dataset.tables[state.table];
  const columns = Object.entries(table.columns).filter(([, each]) => each.type !== "budget");
  const set =
    (name, redraw = false) =>
    (event) => {
      state[name] = event.target.type === "checkbox" ? event.target.checked : event.target.value;
      changed(redraw);
    };
  const whats = [
    ["count", "count"],
    ...columns
      .filter(([, each]) => each.type === "integer" || each.type === "real")
      .map(([name]) => [`sum ${name}`, `sum of ${name}`]),
    ...columns
      .filter(([, each]) => each.type === "category" || each.type === "boolean")
      .map(([name]) => [`histogram ${name}`, `histogram of ${name}`]),
  ];
  return [
    h.div(
      { class: "fields" },
      field(
        "Dataset",
        select(
          "dataset",
          datasets.map((each) => [each.name, each.name]),
          state.dataset.name,
          {
            onchange: (event) => {
              state.dataset = datasets.find((each) => each.name === event.target.value);
              Object.assign(state, { table: individualsOf(state.dataset), where: [], by: [], what: "count" });
              changed(true);
            },
          },
        ),
      ),
      field(
        "From",
        select(
          "table",
          Object.keys(state.dataset.tables).map((each) => [each, each]),
          state.table,
          {
            onchange: (event) => {
              Object.assign(state, { table: event.target.value, where: [], by: [], what: "count" });
              changed(true);
            },
          },
        ),
      ),
      field("What", select("what", whats, state.what, { onchange: set("what") })),
    ),
    h.div(
      { class: "field" },
      "Where",
      state.where.map((each, at) => conditionForm(state, columns, each, at, changed)),
      h.div(
        h.button(
          {
            type: "button",
            disabled: columns.length === 0,
            onclick: () => {
              state.where.push({ column: columns[0][0], sign: "eq", value: firstValue(columns[0][1]) });
              changed(true);
            },
          },
          "Add a condition",
        ),
      ),
    ),
    columns.length > 0 &&
      h.fieldset(
        { class: "checks" },
        h.legend("By, every group of the declared values"),
        columns.map(([name]) =>
          h.label(
            { class: "check" },
            h.input({
              type: "checkbox",
              checked: state.by.includes(name),
              onchange: (event) => {
                state.by = event.target.checked ? [...state.by, name] : state.by.filter((each) => each !== name);
                changed(false);
              },
            }),
            name,
          ),
        ),
      ),
    h.div(
      { class: "fields" },
      field(
        "One person's part, at most",
        h.input({
          type: "number",
          min: "0",
          step: "any",
          value: state.clip,
          placeholder: "natural bound",
          oninput: set("clip"),
        }),
        "L2 norm of the numbers that one person adds to",
      ),
    ),
    h.div(
      { class: "fields" },
      field(
        "Noise as",
        select(
          "noise",
          [
            ["sigma", "standard deviation σ"],
            ["half_width", "error bar ±, 95 %"],
            ["rho", "worst case in ρ"],
          ],
          state.noise,
          { onchange: set("noise") },
        ),
      ),
      field("Amount", h.input({ type: "number", min: "0", step: "any", value: state.amount, oninput: set("amount") })),
      h.label(
        { class: "check" },
        h.input({ type: "checkbox", checked: state.reuse, onchange: set("reuse") }),
        "An earlier answer will do",
      ),
    ),
  ];
}

function conditionForm(state, columns, each, at, changed) {
  const column = state.dataset.tables[state.table].columns[each.column];
  const set = (name, redraw) => (event) => {
    each[name] = event.target.value;
    if (redraw) each.value = firstValue(state.dataset.tables[state.table].columns[each.column]);
    changed(redraw);
  };
  const options =
    column.type === "category" && column.categories && column.categories.length <= 500 && each.sign !== "in";
  const value = options
    ? select(
        "value",
        column.categories.map((one) => [String(one), String(one)]),
        String(each.value),
        { "aria-label": "Value", onchange: set("value", false) },
      )
    : column.type === "boolean"
      ? select(
          "value",
          [
            ["true", "true"],
            ["false", "false"],
          ],
          String(each.value),
          { "aria-label": "Value", onchange: set("value", false) },
        )
      : h.input({
          "aria-label": "Value",
          value: String(each.value),
          oninput: set("value", false),
          title: columnWords(column),
        });
  return h.div(
    { class: "fields" },
    select(
      "column",
      columns.map(([name]) => [name, name]),
      each.column,
      { "aria-label": "Column", onchange: set("column", true) },
    ),
    select("sign", SIGNS, each.sign, {
      "aria-label": "Comparison",
      onchange: (event) => {
        each.sign = event.target.value;
        changed(true);
      },
    }),
    value,
    h.button(
      {
        type: "button",
        class: "plain",
        onclick: () => {
          state.where.splice(at, 1);
          changed(true);
        },
      },
      "Remove",
    ),
  );
}

function firstValue(column) {
  if (column.type === "boolean") return "true";
  if (column.type === "category") return column.categories ? column.categories[0] : 0;
  return column.lower;
}

function literal(column, text) {
  if (column.type === "boolean") return text === "true" || text === true;
  if (column.type === "date" || column.type === "datetime") return String(text);
  if (column.type !== "category") return Number(text);
  const known = column.categories?.find((each) => String(each) === String(text));
  return known ?? (column.categories ? text : Number(text));
}

/** The query that the form stands for. */
function queryOf(state) {
  const columns = state.dataset.tables[state.table].columns;
  const [kind, column] = state.what.split(" ");
  const conditions = state.where.map(({ column: name, sign, value }) => ({
    [sign]: [
      { col: name },
      sign === "in"
        ? String(value)
            .split(",")
            .map((each) => literal(columns[name], each.trim()))
        : literal(columns[name], value),
    ],
  }));
  const amount = Number(state.amount);
  return {
    version: 1,
    from: state.table,
    select: [{ [kind]: column ? { column } : {} }],
    ...(conditions.length ? { where: conditions.length === 1 ? conditions[0] : { and: conditions } } : {}),
    ...(state.by.length ? { group_by: state.by } : {}),
    ...(state.clip ? { per_individual: { l2_clip: Number(state.clip) } } : {}),
    noise: state.noise === "half_width" ? { half_width: amount, confidence: 0.95 } : { [state.noise]: amount },
    reuse: state.reuse,
  };
}

function pythonOf(state) {
  const columns = state.dataset.tables[state.table].columns;
  const [kind, column] = state.what.split(" ");
  const py = (value) => (typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value));
  const sign = { eq: "==", ne: "!=", lt: "<", le: "<=", gt: ">", ge: ">=" };
  const where = state.where
    .map(({ column: name, sign: kindOf, value }) =>
      kindOf === "in"
        ? `(col("${name}").is_in([${String(value)
            .split(",")
            .map((each) => py(literal(columns[name], each.trim())))
            .join(", ")}]))`
        : `(col("${name}") ${sign[kindOf]} ${py(literal(columns[name], value))})`,
    )
    .join(" & ");
  const selected = { count: "count()", sum: `sum_("${column}")`, histogram: `histogram("${column}")` }[kind];
  const names = ["Client", ...(where ? ["col"] : []), kind === "sum" ? "sum_" : kind];
  return [
    `from sparing import ${names.join(", ")}`,
    "",
    "with Client() as client:  # SPARING_URL and SPARING_API_KEY",
    "    answer = client.queries.ask(",
    `        dataset=${py(state.dataset.name)}, from_=${py(state.table)}, select=${selected},`,
    ...(where ? [`        where=${where},`] : []),
    ...(state.by.length ? [`        group_by=${py(state.by)},`] : []),
    ...(state.clip ? [`        l2_clip=${state.clip},`] : []),
    `        ${state.noise === "half_width" ? `half_width=${state.amount}, confidence=0.95` : `${state.noise}=${state.amount}`},${state.reuse ? "" : " reuse=False,"}`,
    "    )",
    "    print(answer.values, answer.half_width_95)",
  ].join("\n");
}

function previewOf(told, dataset, allowance) {
  const used =
    allowance?.allowance_rho && Number(allowance.allowance_rho) > 0
      ? (Number(allowance.spent_rho) + Number(told.worst_case_rho)) / Number(allowance.allowance_rho)
      : null;
  const tooMuch = used !== null && used > 1;
  return h.div(
    { class: tooMuch ? "note problem" : "note" },
    h.strong(
      `± ${number(told.half_width_95)} with 95 % confidence${told.dimension > 1 ? `, on each of ${number(told.dimension)} numbers` : ""}`,
    ),
    h.p(
      `Worst case ${percent(Number(told.worst_case_rho) / Number(dataset.budget_rho))} of each person's budget (ρ ${rho(told.worst_case_rho)}).`,
      used !== null && ` Your allowance would be ${percent(used)} used${tooMuch ? ": it does not suffice." : "."}`,
    ),
    h.p(
      told.coverage_certified
        ? "Certified: no one can have been left out for lack of budget."
        : "Not certified: people may have been left out for lack of budget.",
    ),
    h.p({ class: "small soft" }, told.words, `; the answer leaves after ${number(told.public_cost.delay_ms)} ms.`),
  );
}
