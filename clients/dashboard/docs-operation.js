// One operation of the interface: words on the left, examples on the right.

import { described, inline, members, nameOf, resolved, textOf, typeOf } from "./docs-schema.js";
import { fill, h, select } from "./dom.js";

const JSON_TYPE = "application/json";
const PROBLEM_TYPE = "application/problem+json";
const WIDTH = 52;
const PLACES = { path: "in the path", query: "in the query string", header: "in a header" };

/** The operation, under its id. */
export function operationPart(operation, told) {
  const { operationId: id, method, address } = operation;
  return h.article(
    { class: "operation", id },
    h.header(
      h.h3(h.a({ href: `#${id}` }, operation.summary)),
      h.p({ class: "address" }, h.span({ class: `method ${method.toLowerCase()}` }, method), " ", h.code(address)),
    ),
    h.div(
      { class: "words" },
      textOf(operation.description),
      h.p({ class: "small soft" }, rolesOf(operation), "Its name in generated clients: ", h.code(id), "."),
      parametersPart(operation),
      bodyPart(operation, told),
      successes(operation, told),
      refusals(operation, told),
    ),
    h.div({ class: "examples" }, requestExample(operation), responseExample(operation)),
  );
}

function rolesOf(operation) {
  if (!operation.security) return "No key needed. ";
  if (operation.roles.length > 2) return "For every role. ";
  return `For ${operation.roles.map((role) => `${role}s`).join(" and ")}. `;
}

function parametersPart(operation) {
  if (!operation.parameters?.length) return null;
  return [
    h.h4("Parameters"),
    described(
      operation.parameters.map((each) => ({
        name: each.name,
        type: [typeOf(each.schema), ", ", PLACES[each.in]],
        required: each.required && each.in !== "path",
        default: each.schema.default,
        text: each.description,
      })),
    ),
  ];
}

function bodyPart(operation, told) {
  const content = operation.requestBody?.content;
  if (!content) return null;
  const schema = content[JSON_TYPE]?.schema;
  return [
    h.h4("Body"),
    schema
      ? h.p(typeOf(schema), " as ", h.code(JSON_TYPE))
      : h.p(
          "One of ",
          Object.keys(content).map((type, place) => [place > 0 && ", ", h.code(type)]),
        ),
    schema?.$ref && members(resolved(told, schema)),
  ];
}

/** @returns {[string, any]} the status of success, and its response */
const successOf = (operation) => Object.entries(operation.responses).filter(([code]) => code.startsWith("2"))[0];

const HEADERS_OF_ALL = ["X-Request-Id", "Sparing-Reply-To"];

function successes(operation, told) {
  const [status, response] = successOf(operation);
  const content = Object.entries(response.content ?? {});
  const schema = response.content?.[JSON_TYPE]?.schema;
  const ofRow = schema?.type === "array" ? schema.items : schema;
  const found = ofRow?.$ref && members(resolved(told, ofRow));
  const headers = Object.keys(response.headers ?? {}).filter((name) => !HEADERS_OF_ALL.includes(name));
  return [
    h.h4("Response"),
    h.p(h.strong(status), " ", inline(response.description)),
    content.length
      ? h.p(
          schema && [typeOf(schema), " as "],
          content.map(([type], place) => [place > 0 && ", ", h.code(type)]),
        )
      : null,
    found && h.details(h.summary(`The members of ${nameOf(ofRow.$ref)}`), found),
    headers.length
      ? h.details(
          h.summary("Headers"),
          described(
            headers.map((name) => ({ name, type: "text", text: resolved(told, response.headers[name]).description })),
          ),
        )
      : null,
  ];
}

function refusals(operation, told) {
  const listed = Object.entries(operation.responses).filter(([status]) => /^[45]/.test(status));
  const rows = listed.flatMap(([status, response]) =>
    Object.keys(resolved(told, response).content[PROBLEM_TYPE].examples).map((slug) => [status, slug]),
  );
  return h.details(
    h.summary(`Refusals: ${listed.map(([status]) => status).join(", ")}`),
    h.p(
      { class: "small soft" },
      "Each is a ",
      h.a({ href: "#type-Problem" }, "Problem"),
      " whose ",
      h.code("type"),
      " is ",
      h.code("urn:sparing:problem:"),
      " and one of these.",
    ),
    described(
      rows.map(([status, slug]) => ({ name: slug, type: status, text: told.components.examples[slug].value.title })),
    ),
  );
}

/** The request as it is sent: address and headers, and a body that can be copied. */
function requestExample(operation) {
  const stated = (operation.parameters ?? []).filter((each) => each.example !== undefined);
  const address = stated
    .filter((each) => each.in === "path")
    .reduce((text, each) => text.replace(`{${each.name}}`, encodeURIComponent(each.example)), operation.address);
  const query = new URLSearchParams(
    stated.filter((each) => each.in === "query").map((each) => [each.name, each.example]),
  );
  const bodies = Object.entries(operation.requestBody?.content ?? {}).flatMap(([type, content]) =>
    Object.entries(content.examples ?? {}).map(([title, { value }]) => ({ title, type, value })),
  );
  const lines = (type) =>
    [
      `${operation.method} ${address}${query.size ? `?${query}` : ""}`,
      operation.security && "Authorization: Bearer <key>",
      ...stated.filter((each) => each.in === "header").map((each) => `${each.name}: ${each.example}`),
      type && `Content-Type: ${type}`,
    ]
      .filter(Boolean)
      .join("\n");
  const shown = h.div({ class: "stack" });
  const draw = (body) =>
    fill(shown, h.pre({ class: "request" }, lines(body?.type)), body && example("Request body", body.value, operation));
  draw(bodies[0]);
  const choice =
    bodies.length > 1 &&
    select(
      "example",
      bodies.map((each, place) => [String(place), each.title]),
      "0",
      {
        "aria-label": `Example of ${operation.operationId}`,
        onchange: (event) => draw(bodies[Number(event.target.value)]),
      },
    );
  return [h.h4("Example"), choice, shown];
}

function responseExample(operation) {
  const [status, response] = successOf(operation);
  const [type, content] = Object.entries(response.content ?? {}).find(([, each]) => each.example !== undefined) ?? [];
  if (!type) return h.p({ class: "small soft" }, `${status}, without a body.`);
  return example(`${status} ${type}`, content.example, operation);
}

/** A document or a text with a button that copies it. */
function example(title, value, operation) {
  const text = typeof value === "string" ? value : pretty(value);
  const block = h.pre({ tabindex: "0", role: "region", "aria-label": `${title}, ${operation.operationId}` }, text);
  const button = h.button(
    {
      type: "button",
      class: "plain",
      "aria-label": `Copy: ${title}, ${operation.operationId}`,
      onclick: () => copy(button, block, text),
    },
    "Copy",
  );
  return h.div(
    { class: "example" },
    h.div({ class: "row small soft" }, h.span(title), h.span({ class: "spring" }), button),
    block,
  );
}

async function copy(button, block, text) {
  try {
    await navigator.clipboard.writeText(text);
    fill(button, "Copied");
    setTimeout(() => fill(button, "Copy"), 2000);
  } catch {
    getSelection()?.selectAllChildren(block); // without a clipboard, as on a page without TLS: ready for the keyboard
  }
}

/** JSON with each part on one line if it fits; `taken` is what stands before it on its line. */
function pretty(value, indent = 0, taken = indent) {
  const line = spaced(value);
  if (line.length + taken <= WIDTH || typeof value !== "object" || value === null) return line;
  const pad = " ".repeat(indent + 2);
  const named = (name) => `${JSON.stringify(name)}: `;
  const parts = Array.isArray(value)
    ? value.map((each) => pad + pretty(each, indent + 2))
    : Object.entries(value).map(
        ([name, each]) => pad + named(name) + pretty(each, indent + 2, indent + 2 + named(name).length),
      );
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${parts.join(",\n")}\n${" ".repeat(indent)}${close}`;
}

function spaced(value) {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .map(([name, each]) => `${JSON.stringify(name)}: ${spaced(each)}`)
      .join(", ")}}`;
  return JSON.stringify(value);
}
