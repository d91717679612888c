// The style of every page. Text has a contrast of at least 4.5 to 1 in both colour schemes, and
// nothing is expressed by colour alone.
export const style = `
:root {
  color-scheme: light dark;
  --paper: #faf9f7;
  --panel: #ffffff;
  --ink: #1c1f24;
  --muted: #5a6069;
  --line: #e3e0da;
  --accent: #3446c4;
  --good: #1b6b43;
  --warn: #8a5300;
  --bad: #a8262f;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #131519;
    --panel: #1a1d22;
    --ink: #e8e6e1;
    --muted: #a0a6b0;
    --line: #2d3139;
    --accent: #a5b4ff;
    --good: #7fd1a5;
    --warn: #e6b566;
    --bad: #ff9a9a;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0;
  background: var(--paper);
  color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  overflow-wrap: anywhere;
}
a { color: var(--accent); text-underline-offset: 0.2em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
h1, h2, h3, h4 { line-height: 1.25; text-wrap: balance; margin: 0; }
h1 { font-size: 1.75rem; letter-spacing: -0.02em; }
h2 { font-size: 1.3rem; letter-spacing: -0.01em; }
h3 { font-size: 1.1rem; }
h4 { font-size: 0.9rem; color: var(--muted); margin: 1.5rem 0 0.5rem; }
p { margin: 0.5rem 0; max-width: 68ch; }
code, pre { font-family: var(--mono); font-size: 0.875em; }
pre {
  margin: 0.75rem 0;
  padding: 0.9rem 1rem;
  overflow-x: auto;
  overflow-wrap: normal;
  background: var(--paper);
  border: 1px solid var(--line);
  border-radius: 8px;
  line-height: 1.5;
}
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; padding: 0.5rem 1rem; background: var(--panel); z-index: 1; }
.muted { color: var(--muted); }
.good { color: var(--good); }
.warn { color: var(--warn); }
.bad { color: var(--bad); }
.page { max-width: 72rem; margin: 0 auto; padding: 2rem 1.25rem 5rem; }
.page > header { margin-bottom: 2rem; }
.columns { display: grid; grid-template-columns: 15rem minmax(0, 1fr); gap: 3rem; }
.aside { align-self: start; position: sticky; top: 1.5rem; font-size: 0.9rem; }
.aside h2 { font-size: 0.9rem; color: var(--muted); font-weight: 600; }
.aside ul { list-style: none; margin: 0.25rem 0 1.25rem; padding: 0; }
.aside a { display: block; padding: 0.2rem 0; color: inherit; text-decoration: none; }
.aside a:hover { color: var(--accent); text-decoration: underline; }
.group { margin-bottom: 3rem; }
.card {
  margin: 1.25rem 0;
  padding: 1.25rem 1.5rem;
  background: var(--panel);
  border: 1px solid var(--line);
  border-radius: 12px;
}
.card:target { border-color: var(--accent); }
.call { display: flex; flex-wrap: wrap; gap: 0.25rem 0.6rem; align-items: baseline; }
.chip {
  font: 600 0.75rem/1.7 var(--mono);
  padding: 0 0.45rem;
  border: 1px solid currentColor;
  border-radius: 5px;
}
.fields { margin: 0.5rem 0; }
.fields > div { padding: 0.5rem 0; border-top: 1px solid var(--line); }
.fields > div:first-child { border-top: 0; }
.fields dt { display: flex; flex-wrap: wrap; gap: 0 0.6rem; align-items: baseline; }
.fields dt > span { font-size: 0.85rem; }
.fields dd { margin: 0; font-size: 0.95rem; }
details { border-top: 1px solid var(--line); }
details:last-child { border-bottom: 1px solid var(--line); }
summary { padding: 0.5rem 0; cursor: pointer; }
summary b { font-family: var(--mono); font-size: 0.9em; margin: 0 0.4rem 0 0.2rem; }
details[open] { padding-bottom: 0.75rem; }
@media (max-width: 48rem) {
  .page { padding: 1.25rem 1rem 3rem; }
  .columns { display: block; }
  .aside { position: static; margin-bottom: 2rem; }
  .card { padding: 1rem; }
}
@media (min-height: 0) and (max-height: 40rem) {
  .aside { position: static; }
}
@media print {
  .aside { display: none; }
  .columns { display: block; }
}
`;
