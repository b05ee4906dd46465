// Where the labels of a chart stand, so that none covers another.

/**
 * @typedef {import("./chart.js").Rule} Rule
 * @typedef {Rule & { at: number, from: number, row: number }} Label of a rule in pixels: its place, and its text's
 */

export const LETTER = 8.2; // px, the width of a figure in the widest of usual typefaces
export const LINE = 15; // px, the height of its line
const GAP = 5; // px between a rule and its label

/**
 * Labels above a chart, each beside its rule in the lowest row where it covers no other. It stands on the side that
 * no other rule crosses, to the right where both will do. Those on the right are placed from the right, then the others
 * from the left: a rule ends at its label and crosses none.
 * @param {Rule[]} rules
 * @param {(value: number) => number} at the place of a value
 * @param {number} right where the chart ends
 * @returns {Label[]}
 */
export function laidOut(rules, at, right) {
  const sided = rules.map((rule) => {
    const place = at(rule.x);
    const width = LETTER * rule.text.length;
    const others = rules.map((other) => at(other.x)).filter((other) => other !== place);
    const sides = [place + GAP, place - GAP - width].map((from) => ({ from, to: from + width }));
    const fitting = sides.filter(({ from, to }) => from >= 0 && to <= right);
    const free = fitting.filter(({ from, to }) => others.every((other) => other < from || other > to));
    const { from } = free[0] ?? fitting[0] ?? { from: Math.max(0, right - width) };
    return { ...rule, at: place, from, low: Math.min(from, place), high: Math.max(from + width, place) };
  });
  const onRight = sided.filter((each) => each.from > each.at).sort((one, other) => other.at - one.at);
  const onLeft = sided.filter((each) => each.from <= each.at).sort((one, other) => one.at - other.at);
  /** @type {(Label & { low: number, high: number })[]} */
  const placed = [];
  for (const each of [...onRight, ...onLeft]) {
    const met = placed.filter((other) => other.low <= each.high && each.low <= other.high).map((other) => other.row);
    let row = 0;
    while (met.includes(row)) row += 1;
    placed.push({ ...each, row });
  }
  return placed;
}

/**
 * Heights of labels at one side, nearest to the wished ones: a line apart, and between `top` and `bottom`.
 * @param {number[]} wished from the lowest on the chart to the highest
 * @param {number} top
 * @param {number} bottom
 */
export function spread(wished, top, bottom) {
  let lowest = bottom + LINE;
  const raised = wished.map((each) => {
    lowest = Math.min(each, lowest - LINE);
    return lowest;
  });
  let highest = top - LINE;
  const lowered = raised.reverse().map((each) => {
    highest = Math.max(each, highest + LINE);
    return highest;
  });
  return lowered.reverse();
}
