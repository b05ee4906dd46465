// The data: tables in words, uploads, acts, epochs.

import { all, get, path, post, upload, withQuery } from "./api.js";
import { columnWords } from "./columns.js";
import { field, fill, h, select, table } from "./dom.js";
import { count, instant, number, percent } from "./format.js";
import { form, problem } from "./shell.js";

const TYPES = {
  csv: "text/csv",
  tsv: "text/csv",
  ndjson: "application/x-ndjson",
  jsonl: "application/x-ndjson",
  parquet: "application/vnd.apache.parquet",
  arrow: "application/vnd.apache.arrow.stream",
  arrows: "application/vnd.apache.arrow.stream",
};

export async function dataSection({ dataset, go }) {
  const acts = await get(withQuery(path("datasets", dataset.name, "acts"), { limit: 20 }));
  return [
    h.section(
      h.h1("Data"),
      h.div(
        { class: "cards" },
        Object.entries(dataset.tables).map(([name, each]) => tableCard(dataset, name, each)),
      ),
    ),
    uploading(dataset, go),
    h.section(
      h.h2("Acts"),
      acts.items.length
        ? table(
            "Acts, newest first",
            [
              { title: "Act", number: true, cell: (act) => `#${act.number}` },
              { title: "At", cell: (act) => h.time({ datetime: act.at }, instant(act.at)) },
              { title: "What was done", cell: (act) => ACTS[act.act]?.(act.detail) ?? act.act },
              { title: "Individual", cell: (act) => act.individual ?? "" },
              { title: "After query", number: true, cell: (act) => `#${act.sequence}` },
            ],
            acts.items,
          )
        : h.p({ class: "empty" }, "Nothing was done yet."),
      acts.next && h.button({ type: "button", onclick: async () => showAll(dataset) }, "All acts as a file"),
    ),
    h.section(
      h.h2(`Epoch ${count(dataset.epoch)}`),
      h.p(
        { class: "soft" },
        "Within an epoch, a query that was answered before is answered again with the same numbers, free of charge. A new epoch has everything asked afresh.",
      ),
      form([], async () => `Epoch ${(await post(path("datasets", dataset.name, "epochs"))).epoch} has begun.`, {
        button: "Begin the next epoch",
        main: false,
      }),
    ),
  ];
}

const ACTS = {
  rows: (detail) =>
    `${count(detail.rows ?? 0)} rows added to ${detail.table}, ${count(detail.individuals ?? 0)} new people`,
  limit: (detail) => `limit lowered to ρ ${number(Number(detail.limit_rho))}`,
  pause: () => "paused",
  resume: () => "pause ended",
  erase: () => "an individual was erased",
  erasure_request: () => "asks to be erased",
  epoch: (detail) => `epoch ${detail.epoch} begun`,
  reconcile: (detail) => `reconciled: ${detail.why ?? ""}`,
  amend: (detail) => `ledger amended up to sequence ${detail.to}`,
  prune: (detail) => `ledger pruned up to sequence ${detail.seq}`,
};

async function showAll(dataset) {
  const { csv } = await import("./format.js");
  const { download } = await import("./dom.js");
  const rows = await all(path("datasets", dataset.name, "acts"));
  download(
    `${dataset.name}-acts.csv`,
    "text/csv",
    csv(
      ["number", "at", "act", "individual", "sequence", "detail"],
      rows.map((act) => [act.number, act.at, act.act, act.individual, act.sequence, JSON.stringify(act.detail)]),
    ),
  );
}

function tableCard(dataset, name, each) {
  const isPeople = each.kind === "individuals";
  const rows = dataset.rows[name];
  return h.div(
    { class: "card" },
    h.h2(name),
    h.p(
      isPeople
        ? `One row for each individual, known by ${each.key}.`
        : `Events of individuals, known by ${each.key}; at most ${count(each.rows_per_individual)} for each.`,
    ),
    h.p(
      { class: "soft" },
      `${count(rows)} rows${isPeople ? `, room for ${count(dataset.capacity)}` : each.rows_capacity ? `, room for ${count(each.rows_capacity)} (${percent(rows / each.rows_capacity)} used)` : ""}.`,
    ),
    h.ul(Object.entries(each.columns).map(([column, told]) => h.li(h.code(column), ": ", columnWords(told)))),
  );
}

function uploading(dataset, go) {
  const names = Object.keys(dataset.tables);
  const bar = h.progress({ max: "1", value: "0", hidden: true, "aria-label": "Share of the file that has been sent" });
  const file = h.input({
    type: "file",
    name: "file",
    required: true,
    accept: ".csv,.tsv,.ndjson,.jsonl,.parquet,.arrow,.arrows,.gz",
  });
  const told = h.div({ "aria-live": "polite" });
  const button = h.button({ type: "submit", class: "main" }, "Upload");
  let key = crypto.randomUUID();
  file.addEventListener("change", () => {
    key = crypto.randomUUID();
    fill(told);
  });
  return h.section(
    h.h2("Upload"),
    h.p({ class: "soft" }, "CSV with a header, NDJSON, Parquet or an Arrow stream. All rows are taken, or none."),
    h.form(
      {
        onsubmit: async (event) => {
          event.preventDefault();
          const data = new FormData(event.target);
          const chosen = data.get("file");
          const ending = chosen.name.toLowerCase().replace(/\.gz$/, "").split(".").at(-1);
          if (!TYPES[ending])
            return fill(
              told,
              problem(
                new Error(`A file that ends in .${ending} is not known here; use .csv, .ndjson, .parquet or .arrow.`),
              ),
            );
          button.disabled = true;
          bar.hidden = false;
          try {
            const headers = {
              "Idempotency-Key": key,
              ...(chosen.name.toLowerCase().endsWith(".gz") ? { "Content-Encoding": "gzip" } : {}),
            };
            const address = withQuery(path("datasets", dataset.name, "tables", data.get("table"), "rows"), {
              dry_run: data.get("dry") ? "true" : "",
              delimiter: data.get("delimiter"),
              rows_over_limit: data.get("over") ? "truncate" : "",
            });
            const report = await upload(address, chosen, TYPES[ending], headers, (share) => {
              bar.value = share;
            });
            fill(
              told,
              reportOf(report, Boolean(data.get("dry")), () => go(location.pathname)),
            );
            if (!data.get("dry")) key = crypto.randomUUID();
          } catch (error) {
            fill(told, problem(error), grouped(error));
          } finally {
            button.disabled = false;
            bar.hidden = true;
          }
        },
      },
      h.div(
        { class: "fields" },
        field(
          "Table",
          select(
            "table",
            names.map((name) => [name, name]),
            names[0],
          ),
        ),
        field("File", file),
      ),
      h.div(
        { class: "fields" },
        field(
          "Fields of CSV are separated by",
          select(
            "delimiter",
            [
              ["", "commas"],
              [";", "semicolons"],
              ["\t", "tabs"],
              ["|", "bars"],
            ],
            "",
          ),
        ),
      ),
      h.label({ class: "check" }, h.input({ type: "checkbox", name: "dry" }), "Only check it; store nothing"),
      h.label(
        { class: "check" },
        h.input({ type: "checkbox", name: "over" }),
        "Of individuals with too many rows, keep as many as fit",
      ),
      bar,
      h.div({ class: "row" }, button),
      told,
    ),
  );
}

function reportOf(report, dry, again) {
  const counted = [
    ["moved to the nearer bound", report.clipped],
    ["outside the declared categories, counted nowhere", report.out_of_domain],
    ["empty", report.nulls],
  ];
  const lines = counted.flatMap(([words, by]) =>
    Object.entries(by)
      .filter(([, n]) => n)
      .map(([column, n]) => `${column}: ${count(n)} ${words}`),
  );
  return h.div(
    { class: "note" },
    h.strong(
      dry
        ? `${count(report.rows)} rows would be stored, with ${count(report.individuals)} new people.`
        : `${count(report.rows)} rows are stored, with ${count(report.individuals)} new people.`,
    ),
    lines.length ? h.ul(lines.map((line) => h.li(line))) : h.p("Every value is within its declared domain."),
    !dry && h.button({ type: "button", onclick: again }, "Show the tables again"),
  );
}

function grouped(error) {
  if (!error.rows) return null;
  const { wrong, is_complete, groups, over_limit } = error.rows;
  return [
    h.p(`${is_complete ? "" : "At least "}${count(wrong)} rows are wrong. Nothing is stored.`),
    groups.length > 0 &&
      table(
        "Errors by kind",
        [
          { title: "Column", cell: (each) => each.column ?? "" },
          { title: "What is wrong", class: "words", cell: (each) => each.message },
          { title: "Rows", number: true, cell: (each) => count(each.rows) },
          { title: "First rows", cell: (each) => each.first_rows.join(", ") },
        ],
        groups,
      ),
    over_limit && h.pre(JSON.stringify(over_limit, null, 2)),
  ];
}
