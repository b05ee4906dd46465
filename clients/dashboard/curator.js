// The curator's page: is the dataset still worth asking?

import { get, path } from "./api.js";
import { data_section } from "./curator-data.js";
import { keys_section } from "./curator-keys.js";
import { ledger_section } from "./curator-ledger.js";
import { overview_section } from "./curator-overview.js";
import { analysts_section, people_section } from "./curator-people.js";
import { queries_section } from "./curator-queries.js";
import { register_section } from "./curator-register.js";
import { fill, h, select, table } from "./dom.js";
import { count, guarantee } from "./format.js";
import { live } from "./live.js";
import { bar, draw, explained, navigate, signed_in, tabs } from "./shell.js";

const SECTIONS = [
  ["", "Overview", overview_section],
  ["queries", "Queries", queries_section],
  ["people", "People", people_section],
  ["analysts", "Analysts", analysts_section],
  ["data", "Data", data_section],
  ["ledger", "Ledger", ledger_section],
];

const session = await signed_in("curator");
const main = document.getElementById("main");
const go = navigate("/curator", show);
let watch = null;
show();

async function show() {
  const [name, section = ""] = location.pathname.split("/").slice(2).map(decodeURIComponent);
  watch?.stop();
  watch = null;
  if (!name) return show_start();
  if (name.startsWith("_")) return show_common(name);
  return show_dataset(name, section);
}

function common_tabs(current) {
  const links = [["/curator", "Datasets"]];
  if (session.dataset === null) links.push(["/curator/_register", "Register a dataset"], ["/curator/_keys", "Keys"]);
  tabs(links, current);
}

function show_start() {
  document.title = "Datasets · Sparing";
  bar(session);
  common_tabs("/curator");
  return draw(main, async () => {
    const datasets = await get("/v1/datasets");
    return h("section", {},
      h("h1", {}, "Datasets"),
      datasets.length
        ? table("Datasets", [
            { title: "Name", cell: (each) => h("a", { href: `/curator/${each.name}` }, each.name) },
            { title: "Guarantee", cell: guarantee },
            { title: "People", number: true, cell: (each) => count(each.individuals) },
            { title: "Queries", number: true, cell: (each) => count(each.sequence) },
            { title: "Epoch", number: true, cell: (each) => count(each.epoch) },
          ], datasets)
        : h("div", { class: "empty" }, "No dataset is registered yet.",
            session.dataset === null && h("a", { class: "button", href: "/curator/_register" }, "Register a dataset")));
  });
}

function show_common(name) {
  bar(session);
  common_tabs(`/curator/${name}`);
  document.title = `${name === "_keys" ? "Keys" : "Register a dataset"} · Sparing`;
  return draw(main, () => (name === "_keys" ? keys_section(session) : register_section(go)));
}

async function show_dataset(name, section) {
  const [, title, draw_section] = SECTIONS.find(([place]) => place === section) ?? SECTIONS[0];
  document.title = `${title} of ${name} · Sparing`;
  watch = live(name);
  const chooser = select("dataset", [[name, name]], name, { "aria-label": "Dataset", onchange: () => go(`/curator/${chooser.value}${section && `/${section}`}`) });
  bar(session, { context: chooser, status: watch.node });
  tabs(SECTIONS.map(([place, text]) => [`/curator/${name}${place && `/${place}`}`, text]), `/curator/${name}${section && `/${section}`}`);
  get("/v1/datasets").then((datasets) => fill(chooser, datasets.map((each) => h("option", { value: each.name, selected: each.name === name }, each.name))));
  const own = watch;
  await draw(main, async () => {
    const dataset = await get(path("datasets", name));
    const shown = await draw_section({ dataset, session, watch: own, go });
    return [shown, explained(explained_by(dataset))];
  });
  own.start();
}

const explained_by = (dataset) => ({ ...dataset.guarantee, budget_rho: Number(dataset.budget_rho).toPrecision(3) });
