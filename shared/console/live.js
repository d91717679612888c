// Once a second, puts the figures that the service sends into the elements of the page that have
// their names. Without this script the page is complete, but does not update itself.
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
    showState("Live: updated every second.");
  };
  source.onerror = () => {
    showState("Not live: the service does not answer. These are the last figures received.");
    // The browser reconnects by itself unless the service refused it.
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
    // An element that has the focus is not replaced under the user's hands.
    if (html === undefined || place.contains(document.activeElement)) continue;
    if (place.shown !== html) place.innerHTML = html;
    place.shown = html;
  }
}

function showState(text) {
  if (state.textContent !== text) state.textContent = text;
}

function update() {
  if (paused || document.hidden) disconnect();
  else connect();
  if (paused) showState("Paused.");
}

if (places.length > 0) {
  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Resume" : "Pause";
    update();
  });
  // A browser opens few connections to one host, so a hidden page gives its connection up.
  document.addEventListener("visibilitychange", update);
  // Leaving the page ends the stream, which must not look like a failure.
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", update);
}
