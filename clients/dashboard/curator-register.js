// Registration: a form that builds the schema row by row beside the JSON it makes. No domain is read off the data.

import { post } from "./api.js";
import { field, fill, h, select } from "./dom.js";
import { number } from "./format.js";
import { explained, form } from "./shell.js";

const COLUMN_TYPES = [
  ["category", "category, listed"],
  ["size", "category, numbered"],
  ["integer", "whole number"],
  ["real", "number"],
  ["date", "date"],
  ["datetime", "time, in UTC"],
  ["boolean", "true or false"],
  ["budget", "own limit in ρ"],
];

export function registerSection(go) {
  const state = {
    name: "",
    epsilon: 1,
    delta: "1e-6",
    capacity: 10000,
    tables: [{ name: "people", kind: "individuals", key: "person_id", columns: [{ name: "", type: "category" }] }],
  };
  const tables = h.div();
  const json = h.textarea({ "aria-label": "The registration as JSON", spellcheck: "false", rows: "18" });
  const meaning = h.p({ class: "soft" });
  let byHand = false;

  function tell() {
    meaning.textContent = `ε = ${state.epsilon}: all answers together change the odds of any guess about a person by at most a factor of ${number(Math.exp(state.epsilon))}.`;
    if (!byHand) json.value = JSON.stringify(registration(state), null, 2);
  }
  function bound(label, target, name, attributes = {}, read = (text) => text) {
    return field(
      label,
      h.input({
        value: String(target[name] ?? ""),
        autocomplete: "off",
        oninput: (event) => {
          target[name] = read(event.target.value);
          tell();
        },
        ...attributes,
      }),
    );
  }
  function show() {
    fill(
      tables,
      state.tables.map((each, place) => tableForm(each, place)),
      h.div(
        h.button(
          {
            type: "button",
            onclick: () => {
              state.tables.push({
                name: "events",
                kind: "events",
                key: state.tables[0].key,
                rows_per_individual: 100,
                columns: [{ name: "", type: "category" }],
              });
              show();
            },
          },
          "Add a table of events",
        ),
      ),
    );
    tell();
  }
  function tableForm(each, place) {
    const isPeople = each.kind === "individuals";
    return h.fieldset(
      { class: "card" },
      h.legend(isPeople ? "Table of individuals" : "Table of events"),
      h.div(
        { class: "fields" },
        bound("Name", each, "name"),
        bound("Key column", each, "key"),
        !isPeople &&
          bound("Rows of one individual, at most", each, "rows_per_individual", { type: "number", min: "1" }, Number),
        !isPeople &&
          bound("Rows of all together, at most", each, "rows_capacity", { type: "number", min: "1" }, (text) =>
            text === "" ? undefined : Number(text),
          ),
      ),
      each.columns.map((column, at) => columnForm(each, column, at)),
      h.div(
        { class: "row" },
        h.button(
          {
            type: "button",
            onclick: () => {
              each.columns.push({ name: "", type: "category" });
              show();
            },
          },
          "Add a column",
        ),
        place > 0 &&
          h.button(
            {
              type: "button",
              class: "plain",
              onclick: () => {
                state.tables.splice(place, 1);
                show();
              },
            },
            "Remove this table",
          ),
      ),
    );
  }
  function columnForm(each, column, at) {
    const type = select("type", COLUMN_TYPES, column.type, {
      onchange: (event) => {
        column.type = event.target.value;
        show();
      },
    });
    const parts = [bound("Column", column, "name"), field("Type", type)];
    if (column.type === "category") parts.push(bound("Categories, separated by commas", column, "categories"));
    if (column.type === "size") parts.push(bound("How many", column, "size", { type: "number", min: "1" }, Number));
    if (column.type === "integer" || column.type === "real")
      parts.push(
        bound("Lowest", column, "lower", { type: "number", step: "any" }, Number),
        bound("Highest", column, "upper", { type: "number", step: "any" }, Number),
      );
    if (column.type === "date" || column.type === "datetime") {
      const placeholder = column.type === "date" ? "2026-03-31" : "2026-03-31T23:59:59Z";
      parts.push(bound("First", column, "lower", { placeholder }), bound("Last", column, "upper", { placeholder }));
    }
    return h.div(
      { class: "fields" },
      parts,
      h.button(
        {
          type: "button",
          class: "plain",
          onclick: () => {
            each.columns.splice(at, 1);
            show();
          },
        },
        "Remove",
      ),
    );
  }
  json.addEventListener("input", () => {
    byHand = true;
  });
  show();
  return [
    h.section(
      h.h1("Register a dataset"),
      h.p(
        "A registration is public and for good: analysts see the guarantee, the tables and the domains. Declare domains from what you know about the columns; a domain that is read off the data would tell something about the people in it.",
      ),
      h.div(
        { class: "columns" },
        h.div(
          { class: "stack" },
          h.div(
            { class: "fields" },
            bound("Name", state, "name", { pattern: "[a-z0-9][a-z0-9_\\-]*", placeholder: "web-visits" }),
            bound("Individuals, at most", state, "capacity", { type: "number", min: "1" }, Number),
          ),
          h.div(
            { class: "fields" },
            field(
              "ε for each person",
              h.input({
                type: "range",
                min: "-2",
                max: "3",
                step: "0.1",
                value: "0",
                "aria-label": "epsilon, logarithmic",
                oninput: (event) => {
                  state.epsilon = Number((2 ** Number(event.target.value)).toPrecision(2));
                  tell();
                },
              }),
            ),
            bound("δ", state, "delta", { placeholder: "1e-6" }),
          ),
          meaning,
          tables,
        ),
        form(
          [field("The registration, as it will be sent", json)],
          async () => {
            const made = await post("/v1/datasets", JSON.parse(json.value));
            go(`/curator/${made.name}`);
          },
          { button: "Register" },
        ),
      ),
    ),
    explained({ epsilon: "1", delta: "1e-6" }),
  ];
}

/** The body of POST /v1/datasets. */
function registration(state) {
  const tables = Object.fromEntries(
    state.tables.map((each) => {
      const columns = Object.fromEntries(
        each.columns.filter((column) => column.name).map((column) => [column.name, columnOf(column)]),
      );
      const told = { kind: each.kind, key: each.key, columns };
      if (each.kind === "events")
        Object.assign(told, {
          rows_per_individual: each.rows_per_individual,
          ...(each.rows_capacity ? { rows_capacity: each.rows_capacity } : {}),
        });
      return [each.name, told];
    }),
  );
  return {
    name: state.name,
    guarantee: { epsilon: String(state.epsilon), delta: String(state.delta) },
    capacity: state.capacity,
    tables,
  };
}

function columnOf(column) {
  switch (column.type) {
    case "category":
      return {
        type: "category",
        categories: String(column.categories ?? "")
          .split(",")
          .map((each) => each.trim())
          .filter(Boolean),
      };
    case "size":
      return { type: "category", size: column.size };
    case "integer":
    case "real":
    case "date":
    case "datetime":
      return { type: column.type, lower: column.lower, upper: column.upper };
    default:
      return { type: column.type };
  }
}
