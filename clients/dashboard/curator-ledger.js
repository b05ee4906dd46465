// The ledger: verified by the service with the data, and by this browser from public hashes.

import { get, path, post } from "./api.js";
import { chainPart } from "./chain.js";
import { fill, h } from "./dom.js";
import { count, instant, rho } from "./format.js";
import { problem } from "./shell.js";
import { unitSign } from "./words.js";

export async function ledgerSection({ dataset }) {
  const at = path("datasets", dataset.name, "verification");
  const shown = h.div({ "aria-live": "polite" });
  const button = h.button({ type: "button", class: "main", onclick: begin }, "Verify the ledger");
  let timer = 0;
  async function begin() {
    button.disabled = true;
    try {
      show(await post(at));
    } catch (error) {
      fill(shown, problem(error));
      button.disabled = false;
    }
  }
  function show(told) {
    fill(shown, resultOf(told));
    button.disabled = told.state === "running";
    clearTimeout(timer);
    if (told.state === "running") timer = setTimeout(async () => shown.isConnected && show(await get(at)), 1000);
  }
  show(await get(at));
  return [
    h.section(
      { class: "narrow" },
      h.h1("Ledger"),
      h.p(
        "The service derives everything anew from the stored rows and compares: every charge, every answer, every",
        " account, the chain of hashes, and the witness outside the database. It takes a minute for some hundred",
        " thousand entries and slows no query.",
      ),
      h.div({ class: "row" }, button),
      shown,
    ),
    backupsPart(await get(path("datasets", dataset.name, "backup")), unitSign(dataset)),
    chainPart(dataset.name),
  ];
}

function backupsPart(told, /** @type {string} */ sign) {
  const most = `at most ${sign}${rho(told.missing_rho)} of each individual`;
  const lost = told.missing_rho === null ? "what was spent" : most;
  const shared = told.shared_sequence === null ? "no entry" : `the entries up to ${count(told.shared_sequence)}`;
  /** @type {Record<string, string>} */
  const words = {
    "ledger-rollback":
      `A backup was put back: ${count(told.witnessed_sequence ?? 0)} entries were witnessed, and the ledger has` +
      ` ${shared} of them. To reconcile it burns ${lost}.`,
    "witness-lost": "The witness outside the database holds nothing of this dataset. The operator has to reconcile it.",
    "ledger-damaged": "The ledger differs from what was witnessed. Verify it, and put the damaged rows back.",
  };
  const isWhole = told.state === "whole";
  return h.section(
    { class: "narrow" },
    h.h2("Backups"),
    h.p(
      "A backup that is put back forgets what was spent since it was made. The witness outside the database does not:",
      " a dataset whose ledger lacks what was witnessed takes no query until the operator has reconciled it.",
    ),
    isWhole
      ? h.div({ class: "note" }, "The ledger holds everything that was witnessed.")
      : h.div({ class: "note problem" }, h.strong("This dataset takes no query."), h.p(words[told.state])),
  );
}

function resultOf(told) {
  if (told.state === "never") return h.p({ class: "soft" }, "Not verified since this process started.");
  if (told.state === "running")
    return h.div(
      h.p({ role: "status" }, `Verifying since ${instant(told.began_at)} …`),
      h.progress({ "aria-label": "Verification under way" }),
    );
  if (told.state === "failed")
    return h.div({ class: "note problem" }, "The verification did not end. The operator's log says why.");
  const looked = `${count(told.entries)} entries, ${count(told.answers)} answers and ${count(told.accounts)} accounts`;
  if (told.state === "clean")
    return h.div(
      { class: "note" },
      h.strong("The ledger holds."),
      h.p(`${looked}, verified at ${instant(told.ended_at)}; nothing is amiss.`),
    );
  return h.div(
    { class: "note problem" },
    h.strong(`${count(told.finding_count)} findings.`),
    h.p(`${looked} at ${instant(told.ended_at)}.`),
    h.ul(told.findings.map((each) => h.li(each))),
  );
}
