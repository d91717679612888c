// Fills the cards of the page. Whatever comes from outside is put into it as text, never as HTML.
// The account is first, because the others are written in its language.
export const names = ["account", "points", "entitlements", "notifications"];
export const byId = (id) => document.getElementById(id);

export let account; // the newest that was seen
export let olderCursor; // of the notifications after the last one that is shown
let notifications = []; // the newest first
let shown = {}; // the answer that each card shows, as JSON

// A card whose service is not available keeps what it showed last.
export function showCard(name, answer) {
  const failed = Object.hasOwn(answer, "unavailable");
  const problem = shown[name] ? "Not up to date at the moment." : "Not available at the moment.";
  say(byId(name).querySelector(".problem"), failed ? problem : "");
  const json = JSON.stringify([answer, locale()]);
  if (failed || shown[name] === json) return;
  fill[name](answer, shown[name] === undefined);
  shown[name] = json;
}

// On a shared computer nothing of one user may stay in the page for the next one.
export function clearCards() {
  account = olderCursor = undefined;
  notifications = [];
  shown = {};
  byId("profile").reset();
  for (const field of fieldsOfProfile()) field.value = field.defaultValue = "";
  for (const id of ["saved", "news", "live"]) say(byId(id), "");
  byId("greeting").textContent = "Your account";
  for (const name of names) {
    say(byId(name).querySelector(".problem"), "");
    byId(name).querySelector(".list")?.replaceChildren();
    for (const value of byId(name).querySelectorAll("dd")) value.textContent = "";
  }
}

export const fieldsOfProfile = () => [byId("display-name"), byId("locale")];

export const isChanged = (field) => field.value !== field.defaultValue;

const fill = {
  account(found) {
    account = found;
    const [name, locale] = fieldsOfProfile();
    // What somebody is typing is left alone.
    if (!fieldsOfProfile().some(isChanged)) {
      name.value = name.defaultValue = found.display_name ?? "";
      locale.value = locale.defaultValue = found.locale ?? "";
    }
    byId("greeting").textContent = found.display_name ?? "Your account";
    byId("user-id").textContent = found.user_id;
    byId("roles").textContent = found.roles.join(", ");
    byId("since").replaceChildren(when(found.created_at, {}));
  },
  entitlements({ entitlements }) {
    fillList("entitlements", entitlements, ({ stock_keeping_unit, status, updated_at }) => [
      element("b", stock_keeping_unit),
      element("span", status, `state ${status === "ACTIVE" ? "good" : "muted"}`),
      when(updated_at, {}),
    ]);
  },
  points({ balances }) {
    fillList("points", balances, ({ unit, balance }) => [
      element("b", new Intl.NumberFormat(locale()).format(balance)),
      element("span", unit, "muted"),
    ]);
  },
  notifications(page, isFirst) {
    const fresh = page.notifications.filter((one) => !isIn(notifications, one));
    // There must be no gap between the newest page and the notifications after it.
    const joins = fresh.length < page.notifications.length || page.next_cursor === undefined;
    const after = joins ? notifications.filter((one) => !isIn(page.notifications, one)) : [];
    if (isFirst || !joins) olderCursor = page.next_cursor;
    notifications = [...page.notifications, ...after];
    showNotifications(isFirst ? [] : fresh);
    if (!isFirst && fresh.length > 0) say(byId("news"), fresh.map(sentence).join(". "));
  },
};

export function addOlder(page) {
  notifications.push(...page.notifications.filter((one) => !isIn(notifications, one)));
  olderCursor = page.next_cursor;
  showNotifications([]);
}

const isIn = (list, { notification_id }) =>
  list.some((one) => one.notification_id === notification_id);

function showNotifications(fresh) {
  fillList("notifications", notifications, (one) => [
    element("span", sentence(one), isIn(fresh, one) ? "fresh" : ""),
    when(one.created_at),
  ]);
  byId("older").hidden = olderCursor === undefined;
}

// What happened, in words; of a type that this page does not know, its name.
function sentence({ type, payload }) {
  const { stock_keeping_unit, point_amount, unit, balance, mode } = payload;
  const amount = `${Math.abs(point_amount)} ${unit}`;
  const known = {
    EntitlementGranted: `You got ${stock_keeping_unit}`,
    EntitlementRevoked: `You no longer have ${stock_keeping_unit}`,
    PointsAdded: `You got ${amount}, and now have ${balance}`,
    PointsTaken: `${amount} were taken, and you now have ${balance}`,
    MatchFound: `You were matched to play ${mode}`,
    TicketExpired: `Nobody was found in time to play ${mode}`,
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

export function when(at, more = { timeStyle: "short" }) {
  const format = new Intl.DateTimeFormat(locale(), { dateStyle: "medium", ...more });
  const made = element("time", format.format(new Date(at)), "muted");
  made.dateTime = at;
  return made;
}

// That of the account, if the browser knows it.
export function locale() {
  try {
    return Intl.getCanonicalLocales(account?.locale ?? [])[0];
  } catch {
    return undefined;
  }
}

// A text that stays the same is not written again, so that it is read aloud only once.
export function say(place, text) {
  place.hidden = text === "";
  if (place.textContent !== text) place.textContent = text;
}
