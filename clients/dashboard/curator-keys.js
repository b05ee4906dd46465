// Keys: made, listed, revoked. A key is shown once.

import { all, erase, get, path, post } from "./api.js";
import { download, field, fill, h, select, table } from "./dom.js";
import { csv, date, rho } from "./format.js";
import { form, problem } from "./shell.js";

export async function keysSection(session) {
  const [rows, datasets] = await Promise.all([all("/v1/principals", 2000), get("/v1/datasets")]);
  const shown = h.div();
  const filter = h.input({ type: "search", placeholder: "name, role or dataset" });
  const told = h.div({ "aria-live": "polite" });
  function show() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const listed = rows.filter((row) =>
      words.every((word) =>
        [row.name, row.role, row.dataset ?? "", row.individual ?? "", row.organisation ?? ""]
          .join(" ")
          .toLowerCase()
          .includes(word),
      ),
    );
    listed.sort(
      (one, other) =>
        Number(Boolean(one.revoked_at)) - Number(Boolean(other.revoked_at)) ||
        other.created_at.localeCompare(one.created_at),
    );
    fill(
      shown,
      table(
        "Keys",
        [
          {
            title: "Name",
            cell: (row) => [row.name, row.organisation && h.div({ class: "small soft" }, row.organisation)],
          },
          { title: "Role", cell: (row) => row.role },
          { title: "Dataset", cell: (row) => row.dataset ?? "all" },
          { title: "Individual", cell: (row) => row.individual ?? "" },
          {
            title: "Allowance, ρ",
            number: true,
            cell: (row) => (row.role === "analyst" ? rho(row.allowance_rho) : ""),
          },
          { title: "Made", cell: (row) => date(row.created_at) },
          {
            title: "State",
            cell: (row) =>
              row.revoked_at
                ? `revoked ${date(row.revoked_at)}`
                : row.expires_at
                  ? `until ${date(row.expires_at)}`
                  : "valid",
          },
          {
            title: "Actions",
            cell: (row) =>
              !row.revoked_at &&
              h.span(
                { class: "row" },
                h.button({ class: "plain", type: "button", onclick: () => replace(row) }, "New key"),
                h.button({ class: "plain", type: "button", onclick: () => revoke(row) }, "Revoke"),
              ),
          },
        ],
        listed.slice(0, 200),
      ),
      listed.length > 200 && h.p({ class: "soft small" }, `${listed.length - 200} more: narrow the search.`),
    );
  }
  async function revoke(row) {
    if (!confirm(`Revoke the key of ${row.name}? It stops at once, for good.`)) return;
    try {
      await erase(path("principals", row.id));
      row.revoked_at = new Date().toISOString();
      fill(told, h.div({ class: "note" }, `The key of ${row.name} is revoked.`));
      show();
    } catch (error) {
      fill(told, problem(error));
    }
  }
  async function replace(row) {
    if (!confirm(`Make a new key for ${row.name}? The old one stops at once.`)) return;
    try {
      fill(told, once(`New key of ${row.name}`, (await post(path("principals", row.id, "key"))).key));
    } catch (error) {
      fill(told, problem(error));
    }
  }
  filter.addEventListener("input", show);
  show();
  void session;
  return [
    h.section(h.h1("Keys"), making(datasets, rows, show)),
    h.section(h.h2("Keys for many individuals"), many(datasets)),
    h.section(h.h2("All keys"), h.div({ class: "fields" }, field("Search", filter)), told, shown),
  ];
}

/** A key that is shown once. */
function once(title, key) {
  return h.div(
    { class: "note" },
    h.strong(title),
    h.p("It is shown now and never again."),
    h.div({ class: "key" }, key),
    h.div(h.button({ type: "button", onclick: () => navigator.clipboard?.writeText(key) }, "Copy")),
  );
}

function making(datasets, rows, show) {
  const names = datasets.map((each) => [each.name, each.name]);
  const role = select(
    "role",
    ["analyst", "individual", "auditor", "curator"].map((each) => [each, each]),
    "analyst",
  );
  const individual = field("Key of the individual in the data", h.input({ name: "individual", autocomplete: "off" }));
  const allowance = field(
    "Allowance, per cent of the budget",
    h.input({ name: "allowance", type: "number", min: "0", step: "any" }),
    "Empty for no limit",
  );
  const limits = h.div({ class: "fields" }, individual, allowance);
  const fit = () => {
    individual.hidden = role.value !== "individual";
    allowance.hidden = role.value !== "analyst";
    limits.hidden = individual.hidden && allowance.hidden;
  };
  role.addEventListener("change", fit);
  fit();
  return form(
    [
      h.div(
        { class: "fields" },
        field("Role", role),
        field("Name", h.input({ name: "name", required: true, maxlength: "128", autocomplete: "off" })),
        field("Dataset", select("dataset", [["", "all datasets"], ...names], names[0]?.[0] ?? "")),
      ),
      h.div(
        { class: "fields" },
        field("Organisation", h.input({ name: "organisation", maxlength: "200" }), "Shown to individuals"),
        field("Purpose", h.input({ name: "purpose", maxlength: "200" }), "Shown to individuals"),
        field("Valid until", h.input({ name: "expires_at", type: "date" }), "Empty for no end"),
      ),
      limits,
    ],
    async (data) => {
      const wish = { role: data.role, name: data.name };
      if (data.dataset) wish.dataset = data.dataset;
      for (const name of ["organisation", "purpose"]) if (data[name]) wish[name] = data[name];
      if (data.expires_at) wish.expires_at = new Date(`${data.expires_at}T23:59:59`).toISOString();
      if (data.role === "individual") wish.individual = data.individual;
      if (data.role === "analyst" && data.allowance !== "") {
        const budget = datasets.find((each) => each.name === data.dataset)?.budget_rho;
        if (!budget) throw new Error("An allowance in per cent needs a dataset.");
        wish.allowance_rho = String((Number(data.allowance) / 100) * Number(budget));
      }
      const made = await post("/v1/principals", wish);
      rows.unshift({ ...made, key: undefined, created_at: new Date().toISOString(), revoked_at: null });
      show();
      return once(`Key of ${made.name}`, made.key);
    },
    { button: "Make the key" },
  );
}

function many(datasets) {
  if (!datasets.length) return h.p({ class: "empty" }, "Register a dataset first.");
  return form(
    [
      h.p(
        { class: "soft" },
        "A CSV file with one column: the keys of the individuals, under the name of the key column. You get a file of keys back, once.",
      ),
      h.div(
        { class: "fields" },
        field(
          "Dataset",
          select(
            "dataset",
            datasets.map((each) => [each.name, each.name]),
            datasets[0].name,
          ),
        ),
        field("File", h.input({ type: "file", name: "file", accept: ".csv", required: true })),
        field("Valid until", h.input({ name: "expires_at", type: "date" }), "Empty for no end"),
      ),
    ],
    async (data) => {
      const until = data.expires_at
        ? `?expires_at=${encodeURIComponent(new Date(`${data.expires_at}T23:59:59`).toISOString())}`
        : "";
      const text = await data.file.text();
      const individuals = text
        .replace(/^\ufeff/, "")
        .split(/\r?\n/)
        .slice(1)
        .map((line) => line.replace(/^"(.*)"$/, "$1").replaceAll('""', '"'))
        .filter(Boolean);
      const made = await post(`${path("datasets", data.dataset, "individuals", "keys")}${until}`, individuals, {
        headers: { Accept: "application/json" },
      });
      const listed = made.items ?? made;
      download(
        `${data.dataset}-keys.csv`,
        "text/csv",
        csv(
          ["individual", "api_key"],
          listed.map((each) => [each.individual, each.api_key ?? each.key]),
        ),
      );
      return `${listed.length} keys are in the file that was just saved. They are shown nowhere else.`;
    },
    { button: "Make the keys", main: false },
  );
}
