// How figures, ages and times are written for people.

export function age(seconds: number | null): string {
  if (seconds === null) return "–";
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1_000))} ms`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

export function ageOf(time: string): string {
  return age(Math.max(0, (Date.now() - Date.parse(time)) / 1_000));
}

export function rateOf(rate: number | undefined): string {
  if (rate === undefined) return "–";
  return rate === 0 || rate >= 10 ? whole(Math.round(rate)) : rate.toFixed(1);
}

export function perSecond(rate: number | undefined): string {
  return rate === undefined ? "–" : `${rateOf(rate)}/s`;
}

// 12,345
export function whole(number: number): string {
  return number.toLocaleString("en");
}

export function count(number: number, one: string, several = `${one}s`): string {
  return `${whole(number)} ${number === 1 ? one : several}`;
}

// Enough of an idempotency key to recognize it.
export function shortKey(key: string): string {
  return key.length > 12 ? `${key.slice(0, 8)}…` : key;
}
