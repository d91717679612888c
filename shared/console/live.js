// Puts what the service tells once a second into the places that are named for it. The page is whole
// without this.
const places = [...document.querySelectorAll("[data-live]")];
const state = document.querySelector("[data-live-state]");
const button = document.querySelector("[data-live-pause]");
const retryMs = 5000;

let source;
let paused = false;
let retry;

function connect() {
  disconnect();
  source = new EventSource("/console/live");
  source.onmessage = ({ data }) => {
    show(JSON.parse(data));
    say("Live: new figures each second.");
  };
  source.onerror = () => {
    say("Not live: the service does not answer. These are the last figures it gave.");
    // The browser tries again by itself unless it was refused.
    if (source.readyState === EventSource.CLOSED) retry = setTimeout(connect, retryMs);
  };
}

function disconnect() {
  clearTimeout(retry);
  source?.close();
}

function show(fragments) {
  for (const place of places) {
    const html = fragments[place.dataset.live];
    // What somebody is about to use stays where it is.
    if (html === undefined || place.contains(document.activeElement)) continue;
    if (place.shown !== html) place.innerHTML = html;
    place.shown = html;
  }
}

function say(text) {
  if (state.textContent !== text) state.textContent = text;
}

function followOrNot() {
  if (paused || document.hidden) disconnect();
  else connect();
  if (paused) say("Paused.");
}

if (places.length > 0) {
  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Go on" : "Pause";
    followOrNot();
  });
  // A browser has few connections to one host, and a page that nobody sees needs none.
  document.addEventListener("visibilitychange", followOrNot);
  // When the page is left, the answer that ends is no failure.
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", followOrNot);
}
