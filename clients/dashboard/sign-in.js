// The sign-in: the key goes to the service once, in a header, and is kept nowhere.

import { get, Problem, post } from "./api.js";
import { field, fill, h } from "./dom.js";
import { form, header, main } from "./shell.js";

/** @type {Map<string | null, string>} by the kind of refusal, which the address names */
const REFUSED = new Map([
  ["denied", "The identity provider has not signed you in."],
  [
    "expired",
    "The sign-in took too long, or began in another browser or at another address of this service. Try again.",
  ],
  ["no-role", "You are known to the identity provider, but have no role here. Ask whoever runs this service."],
  ["refused", "The identity provider's answer was not accepted. Try again, or ask whoever runs this service."],
  ["unavailable", "The identity provider cannot be reached now. Try again later, or sign in with an API key."],
]);
const asked = new URLSearchParams(location.search);
const ended = asked.has("ended");
const refused = REFUSED.get(asked.get("refused"));
const signing = form(
  [
    field(
      "API key",
      h.input({
        name: "key",
        type: "password",
        autocomplete: "off",
        required: true,
        spellcheck: "false",
        autofocus: true,
        placeholder: "sparing_…",
      }),
      "It is exchanged for a session of half an hour, and kept nowhere in this browser.",
    ),
  ],
  async ({ key }) => {
    const text = key.trim();
    if (!/^[\x21-\x7e]+$/.test(text))
      throw new Problem({ title: "This is not an API key.", detail: "A key is one word that begins with sparing_." });
    const session = await post("/v1/session", undefined, { key: text }).catch((error) => {
      throw error.status === 401
        ? new Problem({
            title: "This key is not valid.",
            detail: "It may be mistyped, revoked or expired. Ask the curator for another one.",
          })
        : error;
    });
    location.replace(`/${session.role}`);
  },
  { button: "Sign in" },
);

/** The way of the organisation's own identity provider, if the service has one. */
async function byProvider() {
  const { provider } = await get("/sign-in/options");
  return provider && h.p(h.a({ class: "button main", href: "/sign-in/provider" }, `Sign in with ${provider}`));
}

const offered = h.div();
fill(
  main,
  h.section(
    { class: "sign-in" },
    h.a({ class: "brand", href: "/" }, "Sparing"),
    h.h1("Sign in"),
    h.p({ class: "soft" }, "A service that answers queries about people and spends each person's privacy sparingly."),
    refused && h.div({ class: "note problem", role: "alert" }, refused),
    ended && h.div({ class: "note", role: "status" }, "Your session has ended. Sign in again."),
    offered,
    signing,
    h.p({ class: "soft" }, h.a({ href: "/guide/" }, "The guide"), " explains it to each of its readers."),
  ),
);
fill(header);
if (asked.has("done")) {
  const { role } = await get("/v1/session");
  location.replace(`/${role}`);
}
fill(offered, await byProvider());
