import { output } from "./output.ts";

const VERSION = "2.10.29";

/**
 * From the release's own Dockerfile in nats-io/nats-docker (2.10.x/alpine3.22). It has none for
 * macOS: there the download is pinned by version only, and checked against the sums that the
 * release itself publishes.
 */
const SHA256: Record<string, string> = {
  "linux-amd64": "e314da74a83a1d3876db8814c27eb990fe729640fd6452025b441bcede8390da",
  "linux-arm64": "da4b27942ecfb4c5f0c54553d2e7f470ddda9d7581cfe8131b351a0e223ed401",
};

/** It has six megabytes; on a slow line an error is better than hanging for ever. */
const TIMEOUT_MS = 120_000;

export async function natsFromRelease(folder: string): Promise<string> {
  const platform = `${Deno.build.os}-${Deno.build.arch === "x86_64" ? "amd64" : "arm64"}`;
  const name = `nats-server-v${VERSION}-${platform}`;
  const archive = await fetchBytes(`${name}.tar.gz`);
  const expected = SHA256[platform] ?? await publishedSum(`${name}.tar.gz`);
  const actual = await sha256(archive);
  if (actual !== expected) {
    throw new Error(`"${name}.tar.gz" has SHA-256 ${actual}, expected ${expected}`);
  }
  await Deno.writeFile(`${folder}/release.tar.gz`, archive);
  await output("tar", ["-xzf", "release.tar.gz"], folder);
  return `${folder}/${name}/nats-server`;
}

async function fetchBytes(file: string): Promise<Uint8Array<ArrayBuffer>> {
  const url = `https://github.com/nats-io/nats-server/releases/download/v${VERSION}/${file}`;
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`"${url}" answered ${response.status}`);
  }
  return await response.bytes();
}

async function publishedSum(file: string): Promise<string> {
  const sums = new TextDecoder().decode(await fetchBytes("SHA256SUMS"));
  const line = sums.split("\n").find((line) => line.endsWith(` ${file}`));
  const sum = line?.split(/\s+/)[0];
  if (!sum) throw new Error(`SHA256SUMS does not list "${file}"`);
  return sum;
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
}
