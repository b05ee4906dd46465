// The reference of the interface, readable, from its own description.

import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { draw } from "./shell.js";

fill(document.getElementById("top"), h("div", { class: "bar" }, h("a", { class: "brand", href: "/" }, "Sparing"), h("span", { class: "spring" }), h("a", { href: "/openapi.json" }, "openapi.json")));
draw(document.getElementById("main"), async () => {
  const told = await get("/openapi.json");
  const groups = new Map();
  for (const [address, methods] of Object.entries(told.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const group = (operation.tags ?? ["other"]).join(", ");
      groups.set(group, [...(groups.get(group) ?? []), { address, method: method.toUpperCase(), operation }]);
    }
  }
  return [
    h("section", {}, h("h1", {}, "The interface"), h("p", {}, told.info.summary),
      h("p", { class: "soft" }, "Every request but the probes carries an API key: Authorization: Bearer <key>. Refusals are problems of RFC 9457 with the id of the request.")),
    [...groups].map(([group, operations]) => h("section", {}, h("h2", {}, group), operations.map((each) => shown(each, told)))),
  ];
});

function shown({ address, method, operation }, told) {
  const body = Object.entries(operation.requestBody?.content ?? {});
  return h("details", { class: "card" }, h("summary", {}, h("strong", {}, method), " ", h("code", {}, address)),
    h("p", {}, operation.description ?? operation.summary),
    operation.parameters?.length && h("ul", {}, operation.parameters.map((each) => h("li", {}, h("code", {}, each.name), ` in ${each.in}${each.required ? ", required" : ""}`, each.description && `: ${each.description}`))),
    body.map(([type, content]) => [h("p", { class: "small soft" }, `Body: ${type}`), content.schema && h("pre", {}, schema_text(content.schema, told))]),
    Object.entries(operation.responses ?? {}).filter(([status]) => status !== "default").map(([status, response]) => [h("p", { class: "small soft" }, `Answer ${status}`),
      response.content?.["application/json"]?.schema && h("pre", {}, schema_text(response.content["application/json"].schema, told))]));
}

/** A schema in one line for each member, references followed once. */
function schema_text(schema, told, depth = 0) {
  const found = schema.$ref ? told.components.schemas[schema.$ref.split("/").at(-1)] : schema;
  if (found?.properties && depth < 2) {
    const pad = "  ".repeat(depth + 1);
    const members = Object.entries(found.properties).map(([name, each]) => `${pad}${name}${found.required?.includes(name) ? "" : "?"}: ${schema_text(each, told, depth + 1)}`);
    return `{\n${members.join("\n")}\n${"  ".repeat(depth)}}`;
  }
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (found?.anyOf) return found.anyOf.map((each) => schema_text(each, told, depth)).join(" | ");
  if (found?.type === "array") return `[${schema_text(found.items ?? {}, told, depth)}]`;
  return found?.enum ? found.enum.map((each) => JSON.stringify(each)).join(" | ") : [found?.type ?? "any", found?.format && `(${found.format})`].filter(Boolean).join(" ");
}
