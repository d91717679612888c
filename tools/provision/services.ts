// Written by `deno task services`; do not edit.
import * as account from "../../account/stream_settings.ts";
import * as entitlement from "../../entitlement/stream_settings.ts";
import * as gateway from "../../gateway/stream_settings.ts";
import * as matchmaking from "../../matchmaking/stream_settings.ts";
import * as notification from "../../notification/stream_settings.ts";

export const streams = { account, entitlement, gateway, matchmaking, notification };
