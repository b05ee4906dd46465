// Schemas in words: the type of a value, the members of an object.

import { h } from "./dom.js";

const TEXTS = { "date-time": "time", uuid: "id", binary: "bytes" };
const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 16 });

/** The name that a reference ends in. */
export const nameOf = (reference) => reference.split("/").at(-1);

/** What a reference leads to, or the thing itself. */
export function resolved(told, thing) {
  if (!thing.$ref) return thing;
  return thing.$ref
    .slice(2)
    .split("/")
    .reduce((part, step) => part[step], told);
}

/** Paragraphs of a text, in which words between backticks are code. */
export function textOf(text, attributes = {}) {
  return (text ?? "")
    .trim()
    .split(/\n\n+/)
    .map((paragraph) => h.p(attributes, inline(paragraph)));
}

/** One paragraph's parts. */
export function inline(text) {
  return text.split("`").map((part, place) => (place % 2 ? h.code(part) : part));
}

/** The names of all types that a schema leads to, its own first. */
export function schemaNames(told, schema, found = []) {
  for (const reference of JSON.stringify(schema).match(/#\/components\/schemas\/\w+/g) ?? []) {
    const name = nameOf(reference);
    if (found.includes(name)) continue;
    found.push(name);
    schemaNames(told, told.components.schemas[name], found);
  }
  return found;
}

/** The type of a value, with links to those that have a name. */
export function typeOf(schema) {
  if (schema.$ref) return h.a({ href: `#type-${nameOf(schema.$ref)}` }, nameOf(schema.$ref));
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return joined(several.map(typeOf), " or ");
  if (schema.const !== undefined) return h.code(JSON.stringify(schema.const));
  if (schema.enum)
    return joined(
      schema.enum.map((each) => h.code(JSON.stringify(each))),
      " or ",
    );
  if (schema.prefixItems) return ["[", joined(schema.prefixItems.map(typeOf), ", "), "]"];
  if (schema.type === "array")
    return ["list of ", severalOf(schema.items), bounds(schema.minItems, schema.maxItems, "entries")];
  if (schema.type === "object") return mapOf(schema);
  if (schema.type === "string")
    return [TEXTS[schema.format] ?? "text", bounds(schema.minLength, schema.maxLength, "characters")];
  if (schema.type === "integer" || schema.type === "number") return [schema.type, range(schema)];
  return schema.type ?? "anything";
}

function severalOf(items) {
  const type = typeOf(items ?? {});
  return items?.anyOf || items?.oneOf ? ["(", type, ")"] : type;
}

function mapOf(schema) {
  const values = schema.patternProperties ? Object.values(schema.patternProperties)[0] : schema.additionalProperties;
  return values && values !== true ? ["object of ", severalOf(values), " by name"] : "object";
}

function joined(parts, between) {
  return parts.map((part, place) => [place > 0 && between, part]);
}

function bounds(least, most, unit) {
  if (least === undefined && most === undefined) return null;
  if (most === undefined) return least > 1 ? `, at least ${number.format(least)} ${unit}` : null;
  return least
    ? `, ${number.format(least)} to ${number.format(most)} ${unit}`
    : `, at most ${number.format(most)} ${unit}`;
}

function range({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }) {
  const parts = [
    minimum !== undefined && `at least ${shown(minimum)}`,
    exclusiveMinimum !== undefined && `above ${shown(exclusiveMinimum)}`,
    maximum !== undefined && `at most ${shown(maximum)}`,
    exclusiveMaximum !== undefined && `below ${shown(exclusiveMaximum)}`,
  ].filter(Boolean);
  return parts.length ? `, ${parts.join(" and ")}` : null;
}

function shown(value) {
  return Math.abs(value) >= 1e16 || (value !== 0 && Math.abs(value) < 1e-6)
    ? value.toExponential()
    : number.format(value);
}

/** The members of an object; of one whose members are not named, nothing. */
export function members(schema) {
  const listed = Object.entries(schema.properties ?? {});
  if (!listed.length) return null;
  return described(
    listed.map(([name, each]) => ({
      name,
      type: typeOf(each),
      required: schema.required?.includes(name),
      default: each.default,
      text: each.description,
    })),
  );
}

/** Names with their types and descriptions. */
export function described(rows) {
  return h.dl(
    { class: "members" },
    rows.map((row) =>
      h.div(
        h.dt(
          h.code(row.name),
          " ",
          h.span({ class: "soft" }, row.type, row.required ? ", required" : null, defaultOf(row)),
        ),
        h.dd(inline(row.text ?? "")),
      ),
    ),
  );
}

function defaultOf(row) {
  return row.required || row.default === undefined || row.default === null
    ? null
    : [", default ", h.code(JSON.stringify(row.default))];
}

/** A named type. */
export function typePart(name, told) {
  const schema = told.components.schemas[name];
  return h.article(
    { class: "type", id: `type-${name}` },
    h.h4(h.a({ href: `#type-${name}` }, name)),
    textOf(schema.description),
    members(schema) ?? h.p({ class: "soft" }, schema.oneOf || schema.anyOf ? "One of: " : "An ", typeOf(schema), "."),
  );
}
