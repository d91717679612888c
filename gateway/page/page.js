// Shows what is the user's, and looks every two seconds whether it has changed. Whatever comes from
// outside is put into the page as text, never as HTML.
const lookEveryMs = 2000;
const retryMs = 5000;
// A page that was left open must not keep its session alive: without a key or a click it stops looking.
const idleMs = 15 * 60 * 1000;
const pageSize = 20;

const byId = (id) => document.getElementById(id);
const cards = ["notifications", "points", "entitlements", "account"];
let session; // the answer of /v1/me
let account; // the newest that was seen
let shown = {}; // what each card shows, as JSON
let notifications = []; // the newest first
let olderCursor;
let timer;
let touchedAt = Date.now();

// Resolves also if no answer arrives: then the status is 0.
async function ask(method, path, body, headers = {}) {
  try {
    const answer = await fetch(path, {
      method,
      headers: {
        ...(body ? { "Content-Type": "application/json" } : {}),
        ...(method === "GET" ? {} : { "X-CSRF-Token": session.csrf_token }),
        ...headers,
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
      cache: "no-store",
      redirect: "error",
      signal: AbortSignal.timeout(15_000),
    });
    const text = await answer.text();
    const wait = Number(answer.headers.get("Retry-After") ?? 0) * 1000;
    return { status: answer.status, json: text === "" ? {} : JSON.parse(text), wait };
  } catch {
    return { status: 0, json: { message: "there is no connection" }, wait: 0 };
  }
}

function show(view, focus = false) {
  for (const element of document.querySelectorAll("[data-view]")) {
    element.hidden = element.dataset.view !== view;
    if (focus && !element.hidden) element.querySelector("h1")?.focus();
  }
  byId("log-out").hidden = view !== "in";
}

async function look() {
  clearTimeout(timer);
  if (document.hidden) return;
  if (Date.now() - touchedAt > idleMs) return showLive("Paused, because nobody was here.", false);
  let again = lookEveryMs;
  const found = session ? { status: 200 } : await ask("GET", "/v1/me");
  if (found.status === 200) {
    session ??= found.json;
    again = await lookAtAll();
  } else again = lost(found);
  if (again > 0) timer = setTimeout(look, again);
}

// Returns in how many milliseconds to look again; 0 is never.
function lost({ status, json, wait }, hadSession = false) {
  if (status === 401) {
    forget();
    if (hadSession) say(byId("why"), "Your session has ended.");
    show("out", hadSession);
    return 0;
  }
  if (status === 403 && json.code === "ACCOUNT_INACTIVE") {
    forget();
    show("suspended");
    return retryMs;
  }
  if (account) showLive("Not up to date: there is no answer. Trying again.", false);
  else show("away");
  return Math.max(wait, retryMs);
}

// On a shared computer nothing of one user may stay in the page for the next one.
function forget() {
  session = account = olderCursor = undefined;
  shown = {};
  notifications = [];
  byId("profile").reset();
  byId("greeting").textContent = "Your account";
  for (const name of cards) {
    byId(name).querySelector(".list")?.replaceChildren();
    for (const value of byId(name).querySelectorAll("dd")) value.textContent = "";
  }
}

async function lookAtAll() {
  const own = `/v1/users/${encodeURIComponent(session.user_id)}`;
  const [profile, points, news] = await Promise.all([
    ask("GET", `${own}/profile?partial=true`),
    ask("GET", `${own}/points`),
    ask("GET", `${own}/notifications?limit=${pageSize}`),
  ]);
  const refused = [profile, points, news].find(({ status, json }) =>
    status === 401 || json.code === "ACCOUNT_INACTIVE"
  );
  if (refused) return lost(refused, true);
  if (profile.status !== 200 && !account) return lost(profile);
  show("in");
  const part = (name) => profile.json[name] ?? { unavailable: profile.json.code };
  const parts = {
    account: part("account"),
    entitlements: part("entitlement"),
    points: points.status === 200 ? points.json : { unavailable: points.json.code },
    notifications: news.status === 200 ? news.json : { unavailable: news.json.code },
  };
  for (const name of cards) showCard(name, parts[name]);
  const missing = cards.some((name) => parts[name].unavailable !== undefined);
  const time = new Intl.DateTimeFormat(locale(), { timeStyle: "medium" }).format();
  showLive(missing ? "Not all is up to date. Trying again." : "Live", !missing, time);
  return Math.max(profile.wait, points.wait, news.wait, lookEveryMs);
}

// A card whose service is not available keeps what it showed last.
function showCard(name, part) {
  const failed = Object.hasOwn(part, "unavailable");
  const problem = byId(name).querySelector(".problem");
  problem.hidden = !failed;
  if (failed) return say(problem, "Not available at the moment.");
  const json = JSON.stringify(part);
  if (shown[name] === json) return;
  fill[name](part, shown[name] === undefined);
  shown[name] = json;
}

const fill = {
  account(found) {
    const form = byId("profile");
    if (!isChanged(form)) {
      form.display_name.value = form.display_name.defaultValue = found.display_name ?? "";
      form.locale.value = form.locale.defaultValue = found.locale ?? "";
    }
    account = found;
    byId("greeting").textContent = found.display_name ?? "Your account";
    byId("user-id").textContent = found.user_id;
    byId("roles").textContent = found.roles.join(", ");
    byId("since").replaceChildren(when(found.created_at, "date"));
    byId("until").replaceChildren(when(session.session.expires_at));
  },
  entitlements({ entitlements }) {
    fillList("entitlements", entitlements, ({ stock_keeping_unit, status, updated_at }) => [
      element("b", stock_keeping_unit),
      element("span", status, `state ${status === "ACTIVE" ? "good" : "muted"}`),
      when(updated_at),
    ]);
  },
  points({ balances }) {
    fillList("points", balances, ({ unit, balance }) => [
      element("b", new Intl.NumberFormat(locale()).format(balance)),
      element("span", unit, "muted"),
    ]);
  },
  notifications(page, isFirst) {
    const known = new Set(notifications.map((one) => one.notification_id));
    const fresh = page.notifications.filter((one) => !known.has(one.notification_id));
    // Between the newest page and what is shown there must be no gap.
    const joins = fresh.length < page.notifications.length || !page.next_cursor;
    const kept = joins ? notifications.filter((one) => !isIn(page.notifications, one)) : [];
    if (!joins || isFirst) olderCursor = page.next_cursor;
    notifications = [...page.notifications, ...kept];
    showNotifications(isFirst ? new Set() : new Set(fresh.map((one) => one.notification_id)));
    if (!isFirst && fresh.length > 0) say(byId("news"), fresh.map(sentence).join(". "));
  },
};

const isIn = (list, { notification_id }) =>
  list.some((one) => one.notification_id === notification_id);

function showNotifications(fresh) {
  fillList("notifications", notifications, (one) => [
    element("span", sentence(one), fresh.has(one.notification_id) ? "fresh" : ""),
    when(one.created_at),
  ]);
  byId("older").hidden = olderCursor === undefined;
}

// What happened, in words; of a type that this page does not know, its name.
function sentence({ type, payload }) {
  const { stock_keeping_unit, point_amount, unit, balance } = payload;
  const amount = `${Math.abs(point_amount)} ${unit}`;
  const known = {
    EntitlementGranted: `You got ${stock_keeping_unit}`,
    EntitlementRevoked: `You no longer have ${stock_keeping_unit}`,
    PointsAdded: `You got ${amount}, and now have ${balance}`,
    PointsTaken: `${amount} were taken, and you now have ${balance}`,
  };
  return Object.hasOwn(known, type) ? known[type] : type;
}

function fillList(name, items, cells) {
  const card = byId(name);
  card.querySelector(".empty").hidden = items.length > 0;
  card.querySelector(".list").replaceChildren(...items.map((item) => {
    const row = document.createElement("li");
    row.append(...cells(item));
    return row;
  }));
}

function element(tag, text, className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = className;
  return made;
}

function when(at, only) {
  const style = only === "date" ? {} : { timeStyle: "short" };
  const format = new Intl.DateTimeFormat(locale(), { dateStyle: "medium", ...style });
  const made = element("time", format.format(new Date(at)), "muted");
  made.dateTime = at;
  return made;
}

// The account's, if the browser knows it.
function locale() {
  try {
    return Intl.getCanonicalLocales(account?.locale ?? [])[0];
  } catch {
    return undefined;
  }
}

// A text that stays the same is not written again, so that it is read aloud once.
function say(place, text) {
  place.hidden = text === "";
  if (place.textContent !== text) place.textContent = text;
}

function showLive(text, isLive, time = "") {
  say(byId("live"), text);
  byId("live").classList.toggle("on", isLive);
  byId("live").title = time && `Updated at ${time}`;
}

const isChanged = (form) =>
  [form.display_name, form.locale].some((field) => field.value !== field.defaultValue);

async function save(event) {
  event.preventDefault();
  const form = byId("profile");
  const fields = Object.fromEntries(
    [form.display_name, form.locale].filter((field) => field.value !== field.defaultValue)
      .map((field) => [field.name, field.value.trim() || null]),
  );
  const answer = await ask("PATCH", `/v1/users/${session.user_id}`, fields, {
    "If-Match": `"${account.version}"`,
  });
  if (answer.status === 200) {
    for (const field of [form.display_name, form.locale]) field.defaultValue = field.value;
    showCard("account", answer.json);
  }
  byId("saved").className = answer.status === 200 ? "good" : "bad";
  say(byId("saved"), answer.status === 200 ? "Saved." : `Not saved: ${answer.json.message}.`);
}

async function logOut(path) {
  const answer = await ask("POST", path);
  if (answer.status !== 204 && answer.status !== 401) {
    return showLive(`You are still logged in: ${answer.json.message}.`, false);
  }
  clearTimeout(timer);
  forget();
  say(byId("why"), "You are logged out here. The place where you log in may still know you.");
  show("out", true);
}

async function showOlder() {
  const query = `limit=${pageSize}&cursor=${encodeURIComponent(olderCursor)}`;
  const { status, json } = await ask("GET", `/v1/users/${session.user_id}/notifications?${query}`);
  if (status !== 200) return;
  notifications.push(...json.notifications.filter((one) => !isIn(notifications, one)));
  olderCursor = json.next_cursor;
  showNotifications(new Set());
}

byId("profile").addEventListener("submit", save);
byId("log-out").addEventListener("click", () => logOut("/logout"));
byId("log-out-everywhere").addEventListener("click", () => logOut("/logout?all=true"));
byId("older").addEventListener("click", showOlder);
document.addEventListener("visibilitychange", look);
for (const kind of ["keydown", "pointerdown"]) {
  document.addEventListener(kind, () => {
    const wasIdle = Date.now() - touchedAt > idleMs;
    touchedAt = Date.now();
    if (wasIdle) look();
  });
}
look();
