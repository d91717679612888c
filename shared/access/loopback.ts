// Only this machine reaches an address of the loopback. A url has IPv6 addresses in brackets.
export function isLoopback(host: string): boolean {
  return /^(127(\.\d{1,3}){3}|::1|\[::1\]|localhost)$/i.test(host);
}
