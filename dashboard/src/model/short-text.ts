const SHORT_CHARACTERS_MAX = 80;

/** Formats a value on one line. null if it needs several. */
export function shortText(value: unknown): string | null {
  if (value === null || value === undefined) return 'none';
  if (typeof value === 'string') return value === '' ? 'empty' : value;
  if (typeof value !== 'object') return JSON.stringify(value);
  const parts = Object.values(value);
  if (parts.length === 0) return 'none';
  const isFlat = parts.every((part) => typeof part !== 'object' || part === null);
  const text = isFlat ? flatText(value) : JSON.stringify(value);
  return text.length <= SHORT_CHARACTERS_MAX ? text : null;
}

function flatText(value: object): string {
  if (Array.isArray(value)) return value.join(', ');
  return Object.entries(value)
    .map(([name, part]) => `${name}: ${String(part)}`)
    .join(', ');
}
