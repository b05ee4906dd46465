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
    case "date":
    case "datetime":
      return `${column.type === "date" ? "date" : "time in UTC"} from ${column.lower} to ${column.upper}`;
    default:
      return `${column.type === "integer" ? "whole number" : column.type} from ${column.lower} to ${column.upper}`;
  }
}

/** The name of the table that has one row for each individual. */
export function individualsOf(dataset) {
  const names = Object.keys(dataset.tables);
  return names.filter((name) => dataset.tables[name].kind === "individuals")[0];
}
