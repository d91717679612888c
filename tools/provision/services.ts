// Written by `deno task services`; do not edit.
import * as entitlement from "../../entitlement/stream_settings.ts";
import * as notification from "../../notification/stream_settings.ts";

export const streams = { entitlement, notification };
