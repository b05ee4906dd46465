// Requests to /v1 of this origin, signed in by the cookie.

/**
 * @typedef {object} Told what a refusal says, as RFC 9457 has it
 * @property {string} title
 * @property {string} [detail]
 * @property {number} [status]
 * @property {string} [type]
 * @property {string | null} [request_id]
 * @property {{ field: string, message: string }[]} [errors]
 * @property {any} [rows] errors of an upload
 *
 * @typedef {{ headers?: Record<string, string>, key?: string }} Options a key in place of the cookie
 */

/** A refusal: an RFC 9457 problem, or what the browser says when no answer comes. */
export class Problem extends Error {
  /** @param {Told} told */
  constructor(told) {
    super(told.detail ?? told.title);
    this.told = told;
    this.status = told.status ?? 0;
  }
}

const UNANSWERED = "The service did not answer.";

let isSigningOut = false;

/** End the session. Requests that are under way are refused then, and lead nowhere. */
export async function signOut() {
  isSigningOut = true;
  await erase("/v1/session");
  location.replace("/sign-in");
}

/**
 * @param {string} method
 * @param {string} path
 * @param {Options & { body?: string }} [options]
 */
async function request(method, path, { body, headers = {}, key } = {}) {
  const own = { "X-Sparing-Request": "1", ...(key && { Authorization: `Bearer ${key}` }), ...headers };
  const sending = fetch(path, { method, body, headers: own, credentials: "same-origin", cache: "no-store" });
  const response = await sending.catch(() => {
    throw new Problem({ title: UNANSWERED, detail: `${UNANSWERED} Check the connection and try again.` });
  });
  if (response.status === 401 && !key) {
    if (!isSigningOut) location.assign("/sign-in?ended=1");
    await new Promise(() => {});
  }
  if (response.ok) return response;
  const title = `The service answered with status ${response.status}.`;
  const told = await response.json().catch(() => ({ title }));
  throw new Problem({ status: response.status, ...told });
}

/** @returns {Promise<any>} */
const documentOf = async (/** @type {Response} */ response) => (response.status === 204 ? null : response.json());

/** @param {string} method @param {string} path @param {unknown} body @param {Options} [options] */
async function sent(method, path, body, { headers, key } = {}) {
  if (body === undefined) return documentOf(await request(method, path, { headers, key }));
  const typed = { "Content-Type": "application/json", ...headers };
  return documentOf(await request(method, path, { body: JSON.stringify(body), headers: typed, key }));
}

export const get = (/** @type {string} */ path) => sent("GET", path, undefined);
export const erase = (/** @type {string} */ path) => sent("DELETE", path, undefined);
export const put = (/** @type {string} */ path, /** @type {unknown} */ body) => sent("PUT", path, body);
export const patch = (/** @type {string} */ path, /** @type {unknown} */ body) => sent("PATCH", path, body);

/** @param {string} path @param {unknown} [body] @param {Options} [options] */
export const post = (path, body, options) => sent("POST", path, body, options);

/** The bytes of what is not JSON. */
export async function bytes(/** @type {string} */ path, /** @type {string} */ type) {
  return (await request("GET", path, { headers: { Accept: type } })).blob();
}

/**
 * Send a file, telling `progress` the share that has left.
 * @param {string} path
 * @param {Blob} file
 * @param {Record<string, string>} headers
 * @param {(share: number) => void} progress
 * @returns {Promise<any>}
 */
export function upload(path, file, headers, progress) {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    sending.open("POST", path);
    sending.setRequestHeader("X-Sparing-Request", "1");
    for (const [name, value] of Object.entries(headers)) sending.setRequestHeader(name, value);
    sending.upload.onprogress = (event) => event.lengthComputable && progress(event.loaded / event.total);
    sending.onerror = () =>
      reject(new Problem({ title: "The connection broke. Nothing is stored twice: send the file again." }));
    sending.onload = () => {
      if (sending.status === 401) return location.assign("/sign-in?ended=1");
      const told = JSON.parse(sending.responseText || "{}");
      return sending.status < 300 ? resolve(told) : reject(new Problem(told));
    };
    sending.send(file);
  });
}

/** Every item of a listing, page after page, at most `most`. */
export async function all(/** @type {string} */ path, most = 100000) {
  /** @type {any[]} */
  const items = [];
  let cursor = null;
  do {
    const page = await get(withQuery(path, { limit: 1000, cursor }));
    items.push(...page.items);
    cursor = page.next;
  } while (cursor && items.length < most);
  return items;
}

const EMPTY_PAGES_MAX = 100;

/**
 * The first page with an item from a page on: of a search, pages may have none, and a next one. Some pages at most.
 * @template {{ items: any[], next: string | null }} Page
 * @param {(cursor: string | null) => Promise<Page>} next
 * @param {string | null} cursor
 */
export async function pageWithItems(next, cursor) {
  let page = await next(cursor);
  for (let pages = 1; !page.items.length && page.next && pages < EMPTY_PAGES_MAX; pages += 1)
    page = await next(page.next);
  return page;
}

/** A path with those parameters that are set. */
export function withQuery(
  /** @type {string} */ path,
  /** @type {Record<string, string | number | null | undefined>} */ parameters,
) {
  const isSet = (/** @type {unknown} */ value) => value !== null && value !== undefined && value !== "";
  const set = Object.entries(parameters).filter(([, value]) => isSet(value));
  const query = new URLSearchParams(set.map(([name, value]) => [name, String(value)]));
  return query.size ? `${path}?${query}` : path;
}

/** A path of parts that may hold anything. */
export const path = (/** @type {string[]} */ ...parts) => `/v1/${parts.map(encodeURIComponent).join("/")}`;

/** A document that the service makes for its pages. @returns {Promise<any>} */
export async function madeDocument(/** @type {"openapi.json" | "items.json"} */ name) {
  const response = await fetch(`/assets/${name}`).catch(() => null);
  if (!response?.ok)
    throw new Problem({ title: `${name} did not come. Load the page again.`, status: response?.status ?? 0 });
  return response.json();
}
