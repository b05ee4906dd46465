// Columns of the public schema in words.

import { count } from "./format.js";

export function columnWords(column) {
  switch (column.type) {
    case "category": {
      if (!column.categories) return `one of ${count(column.size)} categories, 0 to ${count(column.size - 1)}`;
      const shown = column.categories.slice(0, 6).join(", ");
      return column.categories.length > 6
        ? `one of ${count(column.categories.length)} categories: ${shown}, …`
        : `one of ${shown}`;
    }
    case "boolean":
      return "true or false";
    case "budget":
      return "the individual's own limit in ρ";
    case "vector":
      return `${count(column.length)} whole numbers from ${column.lower} to ${column.upper}`;
    case "date":
    case "datetime":
      return `${column.type === "date" ? "date" : "time in UTC"} from ${column.lower} to ${column.upper}`;
    default:
      return `${column.type === "integer" ? "whole number" : "number"} from ${column.lower} to ${column.upper}`;
  }
}

/** The name of the table that has one row for each individual. */
export function individualsOf(dataset) {
  const names = Object.keys(dataset.tables);
  return names.filter((name) => dataset.tables[name].kind === "individuals")[0];
}

/** The entries of a list as a person writes it, one a line or as a JSON list; commas are part of an entry. */
export function entriesOf(/** @type {string} */ text) {
  if (text.trim().startsWith("[")) return listIn(text);
  const lines = text.split("\n").map((each) => each.trim());
  return lines.filter(Boolean);
}

/** @returns {unknown[]} of a JSON list; none while it is not whole */
function listIn(/** @type {string} */ text) {
  try {
    return JSON.parse(text);
  } catch {
    return [];
  }
}
