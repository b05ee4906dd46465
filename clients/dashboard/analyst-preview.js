// What the service says of a query before it is asked: how precise, at what cost, and for whom that is too much.

import { h } from "./dom.js";
import { number, percent, portion, rounded } from "./format.js";
import { activeWords, worstCaseWords } from "./words.js";

/** A number for each select item, of what is one number or a list. */
export const ofItem = (/** @type {number | number[]} */ numbers, /** @type {number} */ at) =>
  Array.isArray(numbers) ? numbers[at] : numbers;

/** A select item as labels have it: `count`, `sum(price)`. */
export function itemText(item) {
  const [[kind, of]] = Object.entries(item);
  return of.column || of.share ? `${kind}(${of.column ?? of.share})` : kind;
}

export function previewOf(told, dataset, /** @type {boolean} */ isForNobody, allowance) {
  const limit = Number(allowance?.allowance_rho);
  const used = limit > 0 ? (Number(allowance.spent_rho) + Number(told.worst_case_rho)) / limit : null;
  const isTooMuch = used !== null && used > 1;
  return [
    cautions(told.warnings, isForNobody),
    h.div(
      { class: isTooMuch ? "note problem" : "note" },
      h.strong(precisionOf(told)),
      h.p(worstCaseWords(told, dataset), used !== null && ` ${allowanceWords(used)}`),
      h.p(
        coverageWords(told),
        told.coverage_certified && ` ${certifiedWords(told)}`,
        told.notes.map((/** @type {string} */ words) => ` ${words}`),
      ),
      h.p({ class: "small soft" }, told.words, `; the answer leaves after ${number(told.public_cost.delay_ms)} ms.`),
    ),
  ];
}

function coverageWords(told) {
  const { active } = told.canonical.select[0];
  if (active) return activeWords(active.share);
  return coverageOf(told);
}

/** What is left for queries of all analysts together, before somebody may be missing. */
const certifiedWords = ({ certified_left_share: left }) =>
  left > 0
    ? `After it, ${percent(left)} of the budget is left for certified answers to all analysts.`
    : "After it, no further answer is certified.";

/** Who may be missing from an answer, in the words of the service; large where someone may. */
export const coverageOf = (told) => (told.coverage_certified ? told.coverage_words : h.strong(told.coverage_words));

/** What is likely to be a mistake, in a note of its own; nothing where all is well. */
export function cautions(/** @type {string[]} */ warnings, isForNobody = false) {
  if (!warnings.length && !isForNobody) return null;
  return h.div(
    { class: "note problem" },
    h.strong(isForNobody ? "Nobody can pay for this query." : "Individuals may be left out of this query."),
    isForNobody &&
      h.p(
        "It costs every individual that it touches more than the whole budget, so all of them are left out, and the",
        " answer is noise alone. A wider error bar costs less.",
      ),
    warnings.map((each) => h.p(each)),
  );
}

function precisionOf(told) {
  if (told.estimates.length) return "The error bars follow from the counts, and the answer has them";
  const each = told.dimension > 1 ? `, on each of ${number(told.dimension)} numbers` : "";
  if (!Array.isArray(told.half_width_95)) return `± ${rounded(told.half_width_95)} with 95 % confidence${each}`;
  const widths = told.canonical.select.map((item, at) => `${itemText(item)} ± ${rounded(told.half_width_95[at])}`);
  return `${widths.join(", ")} with 95 % confidence${each}`;
}

const allowanceWords = (/** @type {number} */ used) =>
  used > 1
    ? `Your allowance does not suffice: with this query ${portion(used)} as much would be used.`
    : `Your allowance would be ${percent(used)} used.`;

/** Whether everyone whom the query touches would be charged more than the dataset's budget; from public facts alone. */
export function isBeyondAll(told, dataset) {
  if (told.estimates.length) return false; // linear items, which it does not name, have the noise
  const { columns } = dataset.tables[told.canonical.from];
  if (told.scale !== null)
    return leastOf(told.canonical.select[0], columns) >= told.l2_clip && told.worst_case_share > 1;
  const reach = Math.sqrt(2 * Number(dataset.budget_rho)); // of a vector, in sigmas, that the budget pays for
  const items = told.canonical.select.map((item, at) => ({
    isBeyond: Math.min(leastOf(item, columns), ofItem(told.l2_clip, at)) > reach * ofItem(told.sigma, at),
    isEverybodys: "count" in item || "count_individuals" in item,
  }));
  return items.every((item) => item.isBeyond) || items.some((item) => item.isBeyond && item.isEverybodys);
}

/** The least that an individual adds to an item, if anything at all; zero where that is not known. */
function leastOf(item, columns) {
  if (item.count || item.count_individuals || item.histogram || item.active) return 1;
  const column = columns[item.sum?.column];
  if (!column) return 0;
  const whole = column.type === "integer" ? 1 : 0;
  const isSigned = column.lower < 0 && column.upper > 0;
  return isSigned ? whole : Math.max(whole, Math.min(Math.abs(column.lower), Math.abs(column.upper)));
}
