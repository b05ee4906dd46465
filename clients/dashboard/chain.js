// The chain of hashes, recomputed in this browser from the public parts of every entry.

import { get, path, withQuery } from "./api.js";
import { fill, h } from "./dom.js";
import { count } from "./format.js";
import { problem } from "./shell.js";

const PUBLIC = [
  "format",
  "kind",
  "sequence",
  "query_id",
  "epoch",
  "mechanism",
  "query_sha256",
  "query_hash",
  "sigma",
  "grid_log2",
  "dimension",
  "worst_case_units",
  "worst_case_total_units",
  "values_sha256",
  "analyst_id",
  "analyst",
  "asked_at",
];
const encoder = new TextEncoder();

/** Canonical JSON (RFC 8785): members in the order of UTF-16, numbers as ECMAScript writes them. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object")
    return `{${Object.keys(value)
      .sort()
      .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`)
      .join(",")}}`;
  return JSON.stringify(value);
}

const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const bytesOf = (text) => Uint8Array.from((text ?? "").match(/../g) ?? [], (pair) => parseInt(pair, 16));

function joined(...parts) {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let place = 0;
  for (const part of parts) {
    all.set(part, place);
    place += part.length;
  }
  return all;
}

/** The hash that an entry's public parts and its private digest give after the entry before it. */
export async function hashOf(row) {
  const names = row.sigmas ? [...PUBLIC, "sigmas"] : PUBLIC;
  const told = await sha256(encoder.encode(canonical(Object.fromEntries(names.map((name) => [name, row[name]])))));
  return hex(
    await sha256(
      joined(encoder.encode("sparing ledger 2\0"), bytesOf(row.previous_hash), told, bytesOf(row.private_digest)),
    ),
  );
}

/**
 * Check rows, the newest first, as they come; `progress(entries)` after each page.
 * @param {string} dataset
 * @param {string} kept the hash of an earlier check, or nothing
 * @param {(entries: number, newest: number) => void} progress
 */
export async function check(dataset, kept, progress) {
  /** @type {{ entries: number, hash: string, broken: number[], newest: number, keptAt: number | null }} */
  const told = { entries: 0, hash: "", broken: [], newest: 0, keptAt: null };
  let cursor = null;
  /** @type {any} */
  let before = null;
  do {
    const page = await get(withQuery(path("datasets", dataset, "ledger"), { limit: 1000, cursor }));
    for (const row of page.items) {
      told.hash ||= row.hash;
      told.newest ||= row.sequence;
      if (row.hash === kept) told.keptAt = row.sequence;
      told.broken.push(...(await brokenAt(row, before)));
      told.entries += 1;
      before = row;
    }
    progress(told.entries, page.items[0]?.sequence ?? 0);
    cursor = page.next;
  } while (cursor);
  if (before && before.sequence !== 1) told.broken.push(1);
  return told;
}

/** The sequences at which a row, or its place under the row after it, is not what the hashes say. */
async function brokenAt(row, before) {
  const query = hex(await sha256(encoder.encode(canonical(row.query))));
  const isWhole = query === row.query_sha256 && (await hashOf(row)) === row.hash;
  return [
    ...(before && row.sequence !== before.sequence - 1 ? [before.sequence - 1] : []),
    ...(before && row.hash !== before.previous_hash ? [before.sequence] : []),
    ...(isWhole ? [] : [row.sequence]),
  ];
}

/** The part of a page that checks the chain of a dataset. */
export function chainPart(dataset, title = "The chain, checked in this browser") {
  const shown = h.div({ "aria-live": "polite" });
  const kept = h.input({
    name: "kept",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "hash of an earlier check (optional)",
    "aria-label": "Hash of an earlier check",
  });
  const button = h.button({ type: "button", onclick: run }, "Check the chain");
  async function run() {
    button.disabled = true;
    const bar = h.progress({ value: 0, max: "1", "aria-label": "Share of the ledger that has been read" });
    fill(shown, bar);
    try {
      let newest = 0;
      const wanted = kept.value.trim().toLowerCase();
      const told = await check(dataset, wanted, (entries, sequence) => {
        newest ||= sequence;
        bar.max = newest || 1;
        bar.value = entries;
      });
      fill(shown, verdict(told, wanted));
    } catch (error) {
      fill(shown, problem(error));
    } finally {
      button.disabled = false;
    }
  }
  return h.section(
    { class: "narrow" },
    h.h2(title),
    h.p(
      "Every entry binds the one before it. The browser computes the hashes anew from what the service lists, without",
      " trusting it. Keep the newest hash: a ledger that is written anew has another one.",
    ),
    h.div({ class: "row" }, button, h.div({ class: "spring" }, kept)),
    shown,
  );
}

function verdict(told, /** @type {string} */ kept) {
  const broken = [...new Set(told.broken)].sort((one, other) => one - other);
  if (!told.entries && !kept) return h.p({ class: "soft" }, "The ledger is empty.");
  const looked = `${count(told.entries)} entries, the hashes of ${count(told.entries)} computed anew.`;
  const isMissed = kept !== "" && told.keptAt === null;
  const title = broken.length
    ? "The chain is broken."
    : isMissed
      ? "The hash that you kept is nowhere in this ledger."
      : "The chain holds.";
  return h.div(
    { class: broken.length || isMissed ? "note problem" : "note" },
    h.strong(title),
    h.p(looked),
    broken.length > 0 && h.p(`At sequence ${broken.slice(0, 20).join(", ")}${broken.length > 20 ? " …" : ""}.`),
    !broken.length && told.hash && h.div({ class: "key" }, told.hash),
    kept && h.p(compared(told, kept)),
  );
}

/** What is to be said of a kept hash. */
export function compared(
  /** @type {{ newest: number, keptAt: number | null }} */ { newest, keptAt },
  /** @type {string} */ kept,
) {
  if (!/^[0-9a-f]{64}$/.test(kept)) return "What you kept is no hash: a hash has 64 digits from 0 to 9 and a to f.";
  if (keptAt === null) return "Either the ledger was written anew, or the hash is of another one.";
  if (keptAt === newest) return "It is the hash that you kept: nothing was added since.";
  const grown = newest - keptAt;
  const rows = grown === 1 ? "1 row" : `${count(grown)} rows`;
  return `The ledger had this hash after row ${count(keptAt)}, and has grown by ${rows} since.`;
}
