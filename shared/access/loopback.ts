// Only this machine can reach a loopback address. In a url an IPv6 address is in brackets.
export function isLoopback(host: string): boolean {
  return /^(127(\.\d{1,3}){3}|::1|\[::1\]|localhost)$/i.test(host);
}
