import type { Context } from "hono";
import { getCookie } from "hono/cookie";

// The cookies of the gateway. Over HTTPS their prefix makes browsers accept them only from this host.
// Without TLS, on this machine only, browsers would not store such cookies.

export interface Cookies {
  session: string; // names
  login: string;
  set(name: string, value: string, maxAgeMs: number): string;
  clear(name: string): string;
}

export function cookiesOf(publicUrl: string): Cookies {
  const isSecure = publicUrl.startsWith("https:");
  const [prefix, secure] = isSecure ? ["__Host-", "; Secure"] : ["", ""];
  const write = (name: string, value: string, maxAgeSeconds: number) =>
    `${name}=${value}; Max-Age=${maxAgeSeconds}; Path=/; HttpOnly; SameSite=Lax${secure}`;
  return {
    session: `${prefix}kenri`,
    login: `${prefix}kenri-login`,
    set: (name, value, maxAgeMs) => write(name, value, Math.floor(maxAgeMs / 1_000)),
    clear: (name) => write(name, "", 0),
  };
}

export function readCookie(context: Context, name: string): string | undefined {
  const value = getCookie(context, name);
  return value === "" ? undefined : value;
}
