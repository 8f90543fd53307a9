interface RepeatedKey {
  /** Position of its second occurrence in the text, in UTF-16 code units. */
  readonly offset: number;
  readonly path: readonly PropertyKey[];
}

interface OpenContainer {
  /** Keys of an object so far. null for a list. */
  readonly keys: Set<string> | null;
  /** The entry at the position. */
  at: PropertyKey;
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]/g;

/**
 * Returns the first duplicate key in a text that is valid JSON. `JSON.parse` keeps the last value of such a key and
 * reports nothing. The time grows with the length of the text.
 */
export function repeatedJsonKey(text: string): RepeatedKey | null {
  const open: OpenContainer[] = [];
  let isKeyNext = false;
  for (const { 0: token, index: offset } of text.matchAll(TOKEN)) {
    const inside = open.at(-1);
    if (token === '{' || token === '[') {
      const isObject = token === '{';
      open.push({ keys: isObject ? new Set() : null, at: 0 });
      isKeyNext = isObject;
    } else if (token === '}' || token === ']') {
      open.pop();
      isKeyNext = false;
    } else if (token === ',' && inside !== undefined) {
      isKeyNext = inside.keys !== null;
      if (typeof inside.at === 'number') inside.at += 1;
    } else if (isKeyNext && inside?.keys) {
      // A key may be written with escapes in one place and without them in another.
      const key = token.includes('\\') ? String(JSON.parse(token)) : token.slice(1, -1);
      inside.at = key;
      if (inside.keys.has(key)) return { offset, path: open.map(({ at }) => at) };
      inside.keys.add(key);
      isKeyNext = false;
    }
  }
  return null;
}
