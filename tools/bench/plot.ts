// The ratios as a picture: a bar from zero to the median for each line, its spread, and a mark at the
// target. The scale of each bar is its target, so all marks are in one line.
import type { Line } from "./report.ts";

const width = 900;
const left = 330; // of the labels
const right = 110; // of the figures
const rowHeight = 26;
const longest = 2; // times the target

export function plotOf(lines: Line[]): string {
  const rows = lines.flatMap(({ name, limits }) =>
    limits.filter(({ target }) => target > 0)
      .map((limit) => ({ ...limit, label: limits.length > 1 ? `${name} ÷ ${limit.name}` : name }))
  );
  const height = (rows.length + 2) * rowHeight;
  const x = (share: number) => left + Math.min(longest, share) / longest * (width - left - right);
  const bars = rows.map(({ label, ratio, target, met }, i) => {
    const y = (i + 1) * rowHeight;
    const middle = y + rowHeight / 2;
    const color = met ? "#2f7d5b" : "#b4552d";
    return `
  <text x="${left - 8}" y="${middle + 4}" text-anchor="end">${escape(label)}</text>
  <rect x="${left}" y="${y + 6}" width="${x(ratio.median / target) - left}" height="${
      rowHeight - 12
    }" fill="${color}"/>
  <path d="M${x(ratio.min / target)} ${middle}H${
      x(ratio.max / target)
    }" stroke="currentColor" stroke-width="2"/>
  <text x="${width - right + 8}" y="${middle + 4}">${ratio.median.toFixed(2)} of ${target}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="13" fill="currentColor" color="#777" role="img" aria-label="Each figure of the bench as a share of its target">${
    bars.join("")
  }
  <path d="M${x(1)} ${rowHeight - 4}V${
    height - rowHeight + 4
  }" stroke="currentColor" stroke-dasharray="3 3"/>
  <text x="${x(1)}" y="16" text-anchor="middle">target</text>
</svg>
`;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
