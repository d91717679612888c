// Shows what belongs to the user, and looks every two seconds whether it has changed.
import {
  account,
  addOlder,
  byId,
  clearCards,
  fieldsOfProfile,
  isChanged,
  locale,
  names,
  olderCursor,
  say,
  showCard,
  when,
} from "./cards.js";
import { forgetMatch, leaveQueue, offerMatches, resumeMatch } from "./match.js";

const lookEveryMs = 2000;
const retryMs = 5000;
// A page that is left open must not keep its session alive: without a key or a click it stops looking.
const idleMs = 15 * 60 * 1000;
const pageSize = 20;

let session; // the answer of /v1/me
const waits = new Map(); // until when each path is left alone
let timer;
let isLooking = false;
let touchedAt = Date.now();

// Resolves also if no answer arrives: then the status is 0.
async function ask(method, path, { body, headers, withinMs = 15_000, signal } = {}) {
  const tooLate = AbortSignal.timeout(withinMs);
  try {
    const answer = await fetch(path, {
      method,
      headers: {
        ...(body ? { "Content-Type": "application/json" } : {}),
        ...(method === "GET" ? {} : { "X-CSRF-Token": session.csrf_token }),
        ...headers,
      },
      body: body && JSON.stringify(body),
      cache: "no-store",
      redirect: "error",
      signal: signal ? AbortSignal.any([signal, tooLate]) : tooLate,
    });
    const text = await answer.text();
    const waitMs = (Number(answer.headers.get("Retry-After")) || 0) * 1000;
    return { status: answer.status, json: text === "" ? {} : JSON.parse(text), waitMs };
  } catch {
    return { status: 0, json: { message: "there is no connection" }, waitMs: 0 };
  }
}

// A service that wants to be left alone for a while does not hold up the others.
async function askInTime(path) {
  if (Date.now() < waits.get(path)) return { status: 0, json: {}, waitMs: 0 };
  const answer = await ask("GET", path);
  waits.set(path, Date.now() + answer.waitMs);
  return answer;
}

const own = (path = "") => `/v1/users/${encodeURIComponent(session.user_id)}${path}`;

function showView(name, { focus = false } = {}) {
  for (const view of document.querySelectorAll("[data-view]")) {
    view.hidden = view.dataset.view !== name;
    if (focus && !view.hidden) view.querySelector("h1").focus();
  }
  byId("log-out").hidden = name !== "in";
}

async function look() {
  clearTimeout(timer);
  if (isLooking || document.hidden) return;
  if (Date.now() - touchedAt > idleMs) return showLive("Paused, because nobody was here", false);
  isLooking = true;
  const againInMs = await lookNow().finally(() => isLooking = false);
  if (againInMs > 0) timer = setTimeout(look, againInMs);
}

// Returns in how many milliseconds to look again; 0 means never.
async function lookNow() {
  if (session) return await lookAtCards();
  const found = await ask("GET", "/v1/me");
  if (found.status !== 200) return withoutAnswer(found);
  session = found.json;
  byId("until").replaceChildren(when(session.session.expires_at));
  resumeMatch(session.user_id);
  return await lookAtCards();
}

async function lookAtCards() {
  const answers = await Promise.all([
    askInTime(own("/profile?partial=true")),
    askInTime(own("/points")),
    askInTime(own(`/notifications?limit=${pageSize}`)),
  ]);
  if (!session) return 0; // logged out meanwhile
  const refused = answers.find(({ status, json }) =>
    status === 401 || json.code === "ACCOUNT_INACTIVE"
  );
  if (refused) return withoutAnswer(refused);
  // Another user has logged in, in another tab.
  if (answers.some(({ json }) => json.code === "PROFILE_FORBIDDEN")) {
    forget();
    return await lookNow();
  }
  if (!account && answers.every(({ status }) => status === 0)) return withoutAnswer(answers[0]);
  const [profile, points, notifications] = answers.map(({ status, json }) =>
    status === 200 ? json : { unavailable: json.code ?? "NO_ANSWER" }
  );
  const parts = {
    account: profile.account ?? profile,
    entitlements: profile.entitlement ?? profile,
    points,
    notifications,
  };
  for (const name of names) showCard(name, parts[name]);
  showView("in");
  const isAll = names.every((name) => parts[name].unavailable === undefined);
  showLive(isAll ? "Live" : "Not all of this is up to date. Trying again.", isAll);
  return lookEveryMs;
}

function withoutAnswer({ status, json, waitMs }) {
  if (status === 401) {
    if (session) leave("Your session has ended.");
    else showView("out");
    return 0;
  }
  if (json.code === "ACCOUNT_INACTIVE") {
    forget();
    showView("suspended");
  } else showView("away");
  return Math.max(waitMs, retryMs);
}

function forget() {
  session = undefined;
  waits.clear();
  clearCards();
  forgetMatch();
}

function leave(why) {
  clearTimeout(timer);
  forget();
  say(byId("why"), why);
  showView("out", { focus: true });
}

function showLive(text, isLive) {
  say(byId("live"), text);
  byId("live").classList.toggle("on", isLive);
  if (!isLive) return;
  const format = new Intl.DateTimeFormat(locale(), { timeStyle: "medium" });
  byId("live").title = `Updated at ${format.format()}`;
}

async function save(event) {
  event.preventDefault();
  if (!account) return;
  const changed = fieldsOfProfile().filter(isChanged);
  const body = Object.fromEntries(changed.map(({ name, value }) => [name, value.trim() || null]));
  const headers = { "If-Match": `"${account.version}"` };
  const { status, json } = await ask("PATCH", own(), { body, headers });
  if (status === 200) {
    for (const field of changed) field.defaultValue = field.value;
    showCard("account", json);
  }
  byId("saved").className = status === 200 ? "good" : "bad";
  say(byId("saved"), status === 200 ? "Saved." : `Not saved: ${json.message}.`);
}

async function logOut(path) {
  await leaveQueue();
  const { status, json } = await ask("POST", path);
  if (status === 204) {
    leave("You are logged out here. The login provider may still remember you.");
  } else if (status === 401) leave("Your session has ended.");
  else showLive(`You are still logged in: ${json.message}.`, false);
}

async function showOlder() {
  const query = new URLSearchParams({ limit: pageSize, cursor: olderCursor });
  const { status, json } = await ask("GET", own(`/notifications?${query}`));
  if (status === 200) addOlder(json);
}

byId("profile").addEventListener("submit", save);
byId("log-out").addEventListener("click", () => logOut("/logout"));
byId("log-out-everywhere").addEventListener("click", () => logOut("/logout?all=true"));
byId("older").addEventListener("click", showOlder);
offerMatches(ask);
document.addEventListener("visibilitychange", look);
addEventListener("pageshow", ({ persisted }) => {
  if (!persisted) return;
  if (session) resumeMatch(session.user_id);
  look();
});
for (const kind of ["keydown", "pointerdown"]) {
  document.addEventListener(kind, () => {
    const wasIdle = Date.now() - touchedAt > idleMs;
    touchedAt = Date.now();
    if (wasIdle) look();
  });
}
look();
