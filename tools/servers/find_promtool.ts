import { fromDebian } from "./debian_package.ts";
import { findProgram, type Program, type Say } from "./find_program.ts";

const debianPackage = { name: "prometheus", program: "usr/bin/promtool", newer: false };

const promtool: Program = {
  name: "promtool",
  setting: "KENRI_PROMTOOL",
  version: /promtool, version (\d+\.\d+\.\d+)/,
  sources: [{
    name: "Debian's package",
    fetchInto: (folder, say) => fromDebian(debianPackage, folder, say),
  }],
  advice: "It comes with Prometheus (Debian: apt-get install prometheus, macOS: brew install " +
    "prometheus, else https://github.com/prometheus/prometheus/releases)",
};

/** Checks the rules of deploy/observability. */
export function findPromtool(say: Say = () => {}): Promise<string> {
  return findProgram(promtool, say);
}
