// The analyst's page: what may I ask, and what did I get? Nothing here depends on data but the noisy answers.

import { get, withQuery } from "./api.js";
import { askSection } from "./analyst-ask.js";
import { resultOf } from "./analyst-result.js";
import { fill, h, table } from "./dom.js";
import { instant, percent, rho } from "./format.js";
import { bar, draw, explained, main, navigate, problem, signedIn, tabs } from "./shell.js";

const session = await signedIn("analyst");
navigate("/analyst", show);
bar(session);
show();

function show() {
  const [section = "", id = ""] = location.pathname.split("/").slice(2).map(decodeURIComponent);
  tabs(
    [
      ["/analyst", "Ask"],
      ["/analyst/history", "My answers"],
      ["/analyst/allowance", "My allowance"],
    ],
    section ? `/analyst/${section}` : "/analyst",
  );
  document.title = `${{ history: "My answers", allowance: "My allowance", answer: "An answer" }[section] ?? "Ask"} · Sparing`;
  if (section === "history") return draw(main, history);
  if (section === "allowance") return draw(main, allowance);
  if (section === "answer") return draw(main, () => answer(id));
  return draw(main, async () => {
    const datasets = await get("/v1/datasets");
    if (!datasets.length) return h.p({ class: "empty" }, "No dataset is open to your key yet.");
    return [await askSection(datasets, () => get("/v1/allowances")), explained(datasets[0])];
  });
}

async function history() {
  const first = await get(withQuery("/v1/queries", { limit: 50 }));
  let rows = first.items;
  const shown = h.div(),
    more = h.div();
  const seen = (row) => rows.some((other) => other.id === row.id && other.released_at < row.released_at);
  function list(cursor) {
    fill(
      shown,
      rows.length
        ? table(
            "Your answers, newest first",
            [
              { title: "At", cell: (row) => h.time({ datetime: row.released_at }, instant(row.released_at)) },
              { title: "Dataset", cell: (row) => row.dataset },
              {
                title: "Asked",
                class: "words",
                cell: (row) => [
                  h.a({ href: `/analyst/answer/${row.id}` }, row.words),
                  seen(row) && h.div({ class: "small soft" }, "the same answer as before, free of charge"),
                ],
              },
              { title: "Numbers", number: true, cell: (row) => String(row.dimension) },
              { title: "Worst case, ρ", number: true, cell: (row) => rho(row.worst_case_rho) },
            ],
            rows,
          )
        : h.p({ class: "empty" }, "You have asked nothing yet.", h.a({ href: "/analyst" }, "Ask a query")),
    );
    fill(
      more,
      cursor &&
        h.button(
          {
            type: "button",
            onclick: async () => {
              try {
                const next = await get(withQuery("/v1/queries", { limit: 50, cursor }));
                rows = [...rows, ...next.items];
                list(next.next);
              } catch (error) {
                fill(more, problem(error));
              }
            },
          },
          "Older answers",
        ),
    );
  }
  list(first.next);
  return h.section(h.h1("My answers"), shown, more);
}

async function answer(id) {
  const told = await get(`/v1/queries/${encodeURIComponent(id)}`);
  return h.section(h.h1(`Answer of ${instant(told.released_at)}`), resultOf(told));
}

async function allowance() {
  const rows = await get("/v1/allowances");
  return [
    h.section(
      h.h1("My allowance"),
      rows.length
        ? table(
            "Allowances by dataset",
            [
              { title: "Dataset", cell: (row) => row.dataset },
              { title: "Allowance, ρ", number: true, cell: (row) => rho(row.allowance_rho) },
              { title: "Used, ρ", number: true, cell: (row) => rho(row.spent_rho) },
              {
                title: "Left, ρ",
                number: true,
                cell: (row) => (row.left_rho === null ? "no limit" : rho(row.left_rho)),
              },
              {
                title: "Used",
                number: true,
                cell: (row) =>
                  row.allowance_rho === null || !Number(row.allowance_rho)
                    ? ""
                    : percent(Number(row.spent_rho) / Number(row.allowance_rho)),
              },
            ],
            rows,
          )
        : h.p({ class: "empty" }, "No dataset is open to your key."),
      h.p(
        { class: "soft" },
        "An allowance bounds the sum of the worst cases of your queries. The curator sets it. What people are really charged is less, and is not shown to analysts.",
      ),
    ),
  ];
}
