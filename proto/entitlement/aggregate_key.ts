// The key by which events have an order: those of one key are published, and sent to the user, by
// version. It is the user, a colon and the item. In both, `%` is written as %25 and `:` as %3A, so no
// two pairs share a key, and other characters stay as they are. The databases have the same function as
// aggregate_key_of, for keys that are made of columns.
//
// There is one kind of key so far. A key of another kind will begin with its kind and a colon: it then
// has two colons, and can't be that of an entitlement.
export function aggregateKeyOf(userId: string, stockKeepingUnit: string): string {
  return keyPrefixOf(userId) + escaped(stockKeepingUnit);
}

// The beginning of all keys of this user, and of no others.
export function keyPrefixOf(userId: string): string {
  return `${escaped(userId)}:`;
}

// Keys from before parts were escaped may have more colons. They do not say which user they belong to.
export function isKeyOf(userId: string, key: string): boolean {
  const prefix = keyPrefixOf(userId);
  return key.startsWith(prefix) && !key.includes(":", prefix.length);
}

function escaped(part: string): string {
  return part.replaceAll("%", "%25").replaceAll(":", "%3A");
}
