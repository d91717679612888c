// Events with the same aggregate key are published, and delivered to the user, in the order of
// their versions. The key is the user, a colon and the item. In both parts `%` is written as %25
// and `:` as %3A, so that no two pairs share a key. The databases have the same function as
// aggregate_key_of, for keys that are made of columns.
//
// A key of another kind begins with its kind and a colon, as that of points does. It then has two
// colons, so it can't be the key of an entitlement.
export function aggregateKeyOf(userId: string, stockKeepingUnit: string): string {
  return keyPrefixOf(userId) + escaped(stockKeepingUnit);
}

// All keys of this user begin with this prefix, and no other keys do.
export function keyPrefixOf(userId: string): string {
  return `${escaped(userId)}:`;
}

// A key from before the parts were escaped may have more colons. Its user is then ambiguous, so it
// counts as the key of nobody.
export function isKeyOf(userId: string, key: string): boolean {
  const prefix = keyPrefixOf(userId);
  return key.startsWith(prefix) && !key.includes(":", prefix.length);
}

export function escaped(part: string): string {
  return part.replaceAll("%", "%25").replaceAll(":", "%3A");
}
