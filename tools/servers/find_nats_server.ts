import { fromDebian } from "./debian_package.ts";
import { findProgram, type Program, type Say } from "./find_program.ts";
import { natsFromRelease } from "./nats_from_release.ts";

/** Debian 13 has 2.10, Debian 12 only 2.9. */
const debianPackage = { name: "nats-server", program: "usr/sbin/nats-server", newer: true };

const natsServer: Program = {
  name: "nats-server",
  setting: "KENRI_NATS_SERVER",
  version: /nats-server: v([\w.-]+)/,
  sources: [
    {
      name: "Debian's package",
      fetchInto: (folder, say) => fromDebian(debianPackage, folder, say),
    },
    { name: "the official release", fetchInto: natsFromRelease },
  ],
  advice: "Install one (Debian: apt-get install nats-server, macOS: brew install nats-server, " +
    "else https://github.com/nats-io/nats-server/releases)",
};

export function findNatsServer(say: Say = () => {}): Promise<string> {
  return findProgram(natsServer, say);
}
