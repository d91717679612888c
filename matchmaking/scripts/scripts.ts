import { scriptOf } from "@kenri/shared/redis/script.ts";
import cancel from "./cancel.lua" with { type: "text" };
import erase from "./erase.lua" with { type: "text" };
import expire from "./expire.lua" with { type: "text" };
import join from "./join.lua" with { type: "text" };
import pair from "./pair.lua" with { type: "text" };
import read from "./read.lua" with { type: "text" };
import ticket from "./ticket.lua" with { type: "text" };

// Each is one atomic step of Redis, and begins with what all of them share.
const named = (name: string, text: string) => scriptOf(name, `${ticket}\n${text}`);

export const scripts = {
  join: named("join", join),
  read: named("read", read),
  cancel: named("cancel", cancel),
  pair: named("pair", pair),
  expire: named("expire", expire),
  erase: named("erase", erase),
};
