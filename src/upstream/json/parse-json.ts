/** The state at the end of an incomplete JSON text. */
interface OpenEnd {
  /** Brackets that close the open containers, outermost first. */
  readonly closers: readonly string[];
  readonly isInString: boolean;
  /** Position of the last escape in a string. -1 if there was none. */
  readonly escapeAt: number;
  /** The last position at which the text can be cut between two members, and the number of open containers there. */
  readonly seamAt: number;
  readonly seamDepth: number;
}

const HALF_ESCAPE = /^\\(?:u[0-9a-f]{0,3})?$/i;

interface CutJson {
  /**
   * undefined if there is none. A string that was cut keeps its beginning. A key, number or word that was cut is
   * dropped.
   */
  readonly value: unknown;
  /** The text after the value. null if the value was cut. */
  readonly rest: string | null;
}

/** Parses the first JSON value of a text that may have been cut anywhere. */
export function parseCutJson(text: string): CutJson {
  const end = scan(text);
  if (typeof end === 'number') {
    return { value: tryParse(text.slice(0, end)), rest: text.slice(end) };
  }
  const { closers, seamAt, seamDepth } = end;
  const whole = tryParse(closeString(text, end) + closers.toReversed().join(''));
  if (whole !== undefined || seamAt < 0) return { value: whole, rest: null };
  const seam = text.slice(0, seamAt) + closers.slice(0, seamDepth).toReversed().join('');
  return { value: tryParse(seam), rest: null };
}

function closeString(text: string, end: OpenEnd): string {
  if (!end.isInString) return text;
  const isHalf = end.escapeAt >= 0 && HALF_ESCAPE.test(text.slice(end.escapeAt));
  return `${isHalf ? text.slice(0, end.escapeAt) : text}"`;
}

/** Returns the end of the first value, or the state at the end of the text. */
function scan(text: string): number | OpenEnd {
  const closers: string[] = [];
  let isInString = false;
  let escapeAt = -1;
  let seamAt = -1;
  let seamDepth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (isInString) {
      if (char === '\\') {
        escapeAt = at;
        at += 1;
      } else if (char === '"') isInString = false;
      continue;
    }
    if (char === '"') isInString = true;
    if (char === '{' || char === '[') closers.push(char === '{' ? '}' : ']');
    else if (char === '}' || char === ']') closers.pop();
    else if (char !== ',') continue;
    if (closers.length === 0) return at + 1;
    seamAt = char === ',' ? at : at + 1;
    seamDepth = closers.length;
  }
  return { closers, isInString, escapeAt, seamAt, seamDepth };
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Parses a text as a JSON object. Returns null if it is not one. */
export function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
