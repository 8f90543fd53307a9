/**
 * Parses header values by their grammar (RFC 9110, 5.6). A word inside a quoted string or another parameter does not
 * count: `x="a; charset=b"` has no `charset`, and a boundary may contain the word `boundary`.
 */

export interface HeaderParameter {
  /** In lower case. Empty if there is none. */
  readonly name: string;
  /** Without quotes and escapes. */
  readonly value: string;
  /** Without quotes, with the escapes as they were sent. */
  readonly raw: string;
  /** True if it follows the grammar. Spaces around `=` are accepted. */
  readonly isValid: boolean;
}

export interface HeaderValue {
  /** The text before the parameters, in lower case: a media type, a disposition, a media range. */
  readonly value: string;
  readonly parameters: readonly HeaderParameter[];
  /** Whether all parameters follow the grammar. One that does not ends at the next semicolon. */
  readonly isValid: boolean;
}

const TOKEN = /[!#$%&'*+.^_`|~\w-]+/;
const QUOTED = /"((?:[^"\\]|\\.)*)"/;

/** A parameter, or the empty one that the grammar allows after a semicolon. */
const VALID = new RegExp(
  `;\\s*(?:(${TOKEN.source})\\s*=\\s*(?:${QUOTED.source}|(${TOKEN.source})))?\\s*(?=;|$)`,
  'sy',
);

const BROKEN = new RegExp(`;\\s*(?:([^=;\\s"]+)\\s*=\\s*(?:${QUOTED.source}|([^;]*)))?[^;]*`, 'sy');

/** The text before the first semicolon outside of quoted strings. */
const BEFORE = /^(?:[^;"]|"(?:[^"\\]|\\.)*"?)*/s;

/** Parses a value with parameters, such as `form-data; name="model"`. */
export function parseHeaderValue(text: string): HeaderValue {
  const [before] = BEFORE.exec(text) ?? [''];
  const parameters: HeaderParameter[] = [];
  for (let at = before.length; at < text.length;) {
    const valid = matchAt(VALID, text, at);
    const [all = ';', name, quoted, plain = ''] = valid ?? matchAt(BROKEN, text, at) ?? [];
    at += all.length;
    const isValid = valid !== null;
    if (isValid && name === undefined) continue;
    const raw = quoted ?? plain.trim();
    const unquoted = quoted?.replaceAll(/\\(.)/gs, '$1') ?? raw;
    parameters.push({ name: name?.toLowerCase() ?? '', value: unquoted, raw, isValid });
  }
  const value = before.trim().toLowerCase();
  return { value, parameters, isValid: parameters.every(({ isValid }) => isValid) };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

export function parameterOf(
  { parameters }: HeaderValue,
  name: string,
): HeaderParameter | undefined {
  return parameters.find((parameter) => parameter.name === name);
}

/** Returns the media type in a `content-type`, in lower case and without parameters. Empty if there is none. */
export function mediaType(contentType: string | null | undefined): string {
  const [type = ''] = (contentType ?? '').split(';', 1);
  return type.trim().toLowerCase();
}

/** An item of a list, up to a comma outside of quoted strings. */
const ITEM = /(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/gs;

/** Returns the items of a list, as in `Accept: text/csv, application/json;q=0.5`. */
export function listItems(text: string): readonly string[] {
  const items = text.match(ITEM) ?? [];
  return items.map((item) => item.trim()).filter((item) => item !== '');
}

/** Whether an `Accept` names a media type, and none of the `usual` one before it or with a higher weight. */
export function prefersType(
  accept: string | undefined,
  isWanted: (type: string) => boolean,
  usual: string,
): boolean {
  const ranges = listItems(accept ?? '').map((item) => {
    const range = parseHeaderValue(item);
    const weight = Number(parameterOf(range, 'q')?.value ?? 1);
    return { type: range.value, weight: Number.isNaN(weight) ? 1 : weight };
  });
  const [best] = ranges
    .filter(({ type, weight }) => weight > 0 && (type === usual || isWanted(type)))
    .toSorted((a, b) => b.weight - a.weight);
  return best !== undefined && best.type !== usual;
}
