// The card "Match": joins a queue, waits until the ticket changes, and shows how it ended. What it needs
// to go on after a reload is in the storage of the tab.
import { byId, locale, say, when } from "./cards.js";

const waitSeconds = 25;
const answerWithinMs = 40_000; // longer than the wait and the gateway's own tries
const leastPauseMs = 1_000; // between two looks, also if the service does not wait
const longestPauseMs = 15_000;
const maxFailures = 20; // in a row: about five minutes
const repeatableMs = 60_000; // how long the service remembers a key, by default
const stored = "kenri-match";

const card = byId("match"); // null if nothing is configured to match people
let ask; // that of page.js
let userId;
let search; // { userId, mode, key, since, ticketId? } while one is under way
let waiting; // aborts the look that is under way
let clock;

export function offerMatches(askGateway) {
  if (!card) return;
  ask = askGateway;
  byId("join").addEventListener("submit", (event) => {
    event.preventDefault();
    join(byId("mode").value);
  });
  byId("cancel-match").addEventListener("click", cancel);
  addEventListener("pagehide", () => waiting?.abort());
}

// Goes on with the search that was under way before a reload.
export function resumeMatch(ofUser) {
  if (!card) return;
  userId = ofUser;
  search = readStored();
  if (search?.userId !== userId) return forgetMatch();
  byId("mode").value = search.mode;
  if (search.ticketId) follow();
  else if (Date.now() - search.since < repeatableMs) join(search.mode);
  else endSearch("");
}

export function forgetMatch() {
  if (!card) return;
  endSearch("");
  showProblem("");
  showMatched(null);
}

// A click has a key of its own, unless it tries again what got no answer: that may have been carried out.
async function join(mode) {
  const isRepeat = search?.mode === mode && Date.now() - search.since < repeatableMs;
  if (!isRepeat) search = { userId, mode, key: crypto.randomUUID(), since: Date.now() };
  store(search);
  showProblem("");
  showMatched(null);
  showSearching();
  const { key } = search;
  const body = { party_size: 1, attributes: {}, idempotency_key: key };
  const path = `/v1/matchmaking/queues/${encodeURIComponent(mode)}/tickets`;
  const { status, json } = await ask("POST", path, { body });
  if (search?.key !== key) return; // the user has changed meanwhile
  if (status === 200) {
    search.ticketId = json.ticket_id;
    store(search);
    return follow();
  }
  const isUnknown = status === 0 || status >= 500;
  if (!isUnknown) return endSearch(refusalOf(json));
  showForm();
  say(byId("match-state"), "");
  showProblem("Matchmaking is not available at the moment. Please try again.");
}

function refusalOf({ code, message }) {
  if (code === "MATCHMAKING_ALREADY_QUEUED") {
    return "You are already looking for this match, in another tab or on another device.";
  }
  if (code === "TOO_MANY_REQUESTS") return "You have tried this too often. Please wait a while.";
  return `This did not work: ${message}.`;
}

async function follow() {
  waiting?.abort();
  waiting = new AbortController();
  const { signal } = waiting;
  showSearching();
  for (let failures = 0; failures < maxFailures;) {
    const from = performance.now();
    // After a failure it does not wait, so that it is seen at once that the service answers again.
    const path = pathOfTicket() + (failures === 0 ? `?wait=${waitSeconds}s` : "");
    const { status, json, waitMs } = await ask("GET", path, { withinMs: answerWithinMs, signal });
    if (signal.aborted || status === 401) return;
    if (status === 403 || status === 404) return endSearch("This search has ended.");
    if (status === 200) {
      failures = 0;
      showTicket(json);
      if (json.status !== "QUEUED") return;
    } else {
      failures++;
      showProblem("Matchmaking does not answer at the moment. Trying again.");
    }
    const backOffMs = failures === 0 ? 0 : Math.min(500 * 2 ** failures, longestPauseMs);
    const pauseMs = Math.max(waitMs, backOffMs, from + leastPauseMs - performance.now());
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    if (signal.aborted) return;
  }
  endSearch("It is not known how your search ended. Please try again.");
}

const pathOfTicket = () => `/v1/matchmaking/tickets/${encodeURIComponent(search.ticketId)}`;

// Who logs out must not be matched any more. If this fails, the ticket soon expires.
export async function leaveQueue() {
  if (search?.ticketId) await cancel();
}

async function cancel() {
  const { key } = search;
  const { status, json } = await ask("DELETE", pathOfTicket());
  if (search?.key !== key) return; // it has ended meanwhile
  const why = status >= 500 ? "matchmaking is not available at the moment" : json.message;
  if (status === 200) showTicket(json);
  else showProblem(`Not cancelled: ${why}.`);
}

const endings = {
  MATCHED: "Match found",
  CANCELLED: "You stopped looking.",
  EXPIRED: "Nobody was found in time. Please try again.",
  INVALID: "Something went wrong on our side. Please try again.",
};

function showTicket({ status, matched }) {
  showProblem("");
  if (status === "QUEUED") return;
  const { mode } = search;
  const ending = Object.hasOwn(endings, status)
    ? endings[status]
    : `The search has ended: ${status}`;
  endSearch(matched ? `${ending}: ${mode}` : ending);
  if (matched) showMatched(matched);
}

function showMatched(match) {
  byId("match-state").classList.toggle("good", match !== null);
  byId("matched").hidden = match === null;
  byId("matched-with").textContent = match?.peer_user_ids.join(", ") ?? "";
  const at = match ? [when(match.matched_at, { timeStyle: "medium" })] : [];
  byId("matched-at").replaceChildren(...at);
}

function endSearch(why) {
  waiting?.abort();
  search = waiting = undefined;
  sessionStorage.removeItem(stored);
  showForm();
  say(byId("match-state"), why);
}

function showForm() {
  clearInterval(clock);
  byId("match-clock").hidden = true;
  keepFocus(() => {
    byId("join").hidden = false;
    byId("cancel-match").hidden = true;
  });
}

function showSearching() {
  keepFocus(() => {
    byId("join").hidden = true;
    byId("cancel-match").hidden = search.ticketId === undefined;
  });
  say(byId("match-state"), `Looking for a match: ${search.mode}`);
  clearInterval(clock);
  clock = setInterval(showClock, 1_000);
  showClock();
}

// Not a part of what is read aloud, because it changes every second.
function showClock() {
  const seconds = Math.max(0, Math.floor((Date.now() - search.since) / 1_000));
  const two = new Intl.NumberFormat(locale(), { minimumIntegerDigits: 2 });
  const text = `${Math.floor(seconds / 60)}:${two.format(seconds % 60)}`;
  say(byId("match-clock"), text);
}

// When the button that has the focus disappears, the title of the card gets it.
function keepFocus(change) {
  const focused = document.activeElement;
  change();
  if (card.contains(focused) && !focused.checkVisibility()) byId("match-title").focus();
}

const showProblem = (text) => say(card.querySelector(".problem"), text);

const store = (what) => sessionStorage.setItem(stored, JSON.stringify(what));

function readStored() {
  try {
    return JSON.parse(sessionStorage.getItem(stored)) ?? undefined;
  } catch {
    return undefined;
  }
}
