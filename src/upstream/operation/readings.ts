/**
 * The readings of a path, a query and a method by different servers. None of them may bypass a limit. The readings are
 * never forwarded: an upstream receives the request unchanged.
 *
 * Some servers decode a path, once or twice, before they route. Some drop path parameters (`;x`), empty segments, dots
 * and spaces at the end of a segment, or a format after the last one (`.json`). Some resolve two dots that only appear
 * after decoding.
 */

/** Characters that servers read in different ways. */
const ODD = /[%;\\]|\/\/|\.(?:\/|$)|\.json$/i;

/** Escapes of escapes are decoded this many times. */
const ROUNDS = 3;

/** The readings of a path other than the plain one, the most likely first. Empty if the path has no others. */
export function readingsOf(path: string): readonly string[] {
  if (!ODD.test(path)) return [];
  const decoded = CARELESS.test(path)
    ? [decodeAscii(path), decodeCarelessly(path)]
    : [decodeAscii(path)];
  const withoutParameters = new Set(decoded.flatMap(cutParameters));
  return [...new Set([...withoutParameters].flatMap(resolve))];
}

function cutParameters(decoded: string): string[] {
  const text = decoded.replace(/[\t\n\r]/g, '').replaceAll('\\', '/');
  return [
    text.replace(/[;?#\0][^/]*/g, ''),
    // Gemini's verb follows the model in the same segment.
    text.replace(/[;?#\0][^/:]*/g, ''),
    text.replace(/[;?#\0].*$/s, ''),
  ];
}

/** Escapes of other characters than ASCII, which careless servers may read as ASCII. */
const CARELESS = /%(?:25)*(?:u|[89a-f])/i;

/** Decodes the escapes of ASCII. Others stay unchanged. */
function decodeAscii(path: string): string {
  let text = path;
  for (let round = 0; round < ROUNDS && text.includes('%'); round += 1) {
    text = text
      .replace(/%(?:25)+(?=[0-7][0-9a-f])/gi, '%')
      .replace(/%([0-7][0-9a-f])/gi, (_, hex: string) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      );
  }
  return text;
}

/**
 * Resolves empty segments and dots. How far two dots go up depends on what a server counts as a segment, so the part
 * after the last of them is another reading.
 */
function resolve(path: string): string[] {
  const kept: string[] = [];
  let behindDots: string[] | null = null;
  for (const each of path.split('/')) {
    if (each === '') continue;
    const segment = /^\s*\.\.?\s*$/.test(each) ? each.trim() : withoutEnd(each);
    if (segment === '..') {
      kept.pop();
      behindDots = [];
    } else if (segment !== '' && segment !== '.') {
      kept.push(segment);
      behindDots?.push(segment);
    }
  }
  return [kept, ...(behindDots === null ? [] : [behindDots])].map(joined);
}

function joined(segments: readonly string[]): string {
  const path = segments.map((segment) => `/${segment}`).join('');
  return withoutEnd(path, FORMAT);
}

const FORMAT = '.json';

/**
 * Removes dots, spaces, slashes and the ending from the end of a text. A regular expression would take quadratic time
 * on dots.
 */
function withoutEnd(text: string, ending = '.'): string {
  let end = text.length;
  for (;;) {
    if ('. /'.includes(text[end - 1] ?? '-')) end -= 1;
    else if (text.slice(end - ending.length, end).toLowerCase() === ending) end -= ending.length;
    else return text.slice(0, end);
  }
}

/** Escapes that some servers decode: one byte, or a character as old versions of IIS write it. */
const ESCAPE = /%(?:u([0-9a-f]{4})|([0-9a-f]{2}))/gi;

/**
 * Maximum number of times that a path is decoded. A proxy, a router and a framework may each decode it, and each twice.
 */
const UNDONE_MAX = 6;

/** A segment of dots of any length: some servers read three as two. */
const UP = /^\.{2,}$/;

/** Characters that servers remove from a segment or ignore. */
const UNSEEN = /[\s\p{Cc}\p{Cf}]/gu;

/**
 * Whether some server may resolve a path to a parent folder, and so outside of the base path. The two dots may be
 * escaped once or several times, or written with backslashes, parameters, overlong bytes or look-alike characters.
 */
export function mayGoUp(path: string): boolean {
  if (!/[%;\\]|\.\./.test(path)) return false;
  let text = path;
  for (let round = 0; round <= UNDONE_MAX; round += 1) {
    if (hasUp(text)) return true;
    const undone = undo(text);
    if (undone === text) return false;
    text = undone;
  }
  // No legitimate path is escaped this often.
  return true;
}

/** Replaces overlong bytes and look-alikes of ASCII characters with these, and decodes every layer of escapes. */
function decodeCarelessly(path: string): string {
  let text = path;
  for (let round = 0; round < UNDONE_MAX && text.includes('%'); round += 1) {
    text = undo(text).replace(/[^\0-\x7f]/gu, asciiLike);
  }
  return text;
}

function asciiLike(character: string): string {
  if (/[\u2044\u2215\u29f5\u29f8]/.test(character)) return '/';
  if (/\p{Cf}/u.test(character)) return '';
  const plain = character.normalize('NFKC');
  return /^[\0-\x7f]+$/.test(plain) ? plain : character;
}

function hasUp(text: string): boolean {
  // Full-width characters and the two-dot leader become the plain ones.
  const segments = text.normalize('NFKC').split(/[/\\\u2044\u2215\u29f5\u29f8]/);
  return segments.some((each) => {
    const seen = each.replace(UNSEEN, '');
    return UP.test(seen) || seen.split(/[;?#]/).some((part) => UP.test(part));
  });
}

/**
 * Decodes one layer of escapes, as UTF-8, or byte for byte if they are overlong, which only careless servers accept.
 */
function undo(text: string): string {
  const plain = text.replace(ESCAPE, (_, wide: string | undefined, byte: string | undefined) =>
    String.fromCharCode(Number.parseInt(wide ?? byte ?? '', 16)),
  );
  const shortened = plain
    .replace(/[\u00c0\u00c1]([\u0020-\u00bf])/g, (two, last: string) =>
      asAscii(((two.charCodeAt(0) & 1) << 6) | (last.charCodeAt(0) & 0x3f)),
    )
    .replace(
      /(?:\u00e0[\u0080\u0081]|\u00f0\u0080[\u0080\u0081])([\u0080-\u00bf])/g,
      (all, last: string) =>
        asAscii(((all.charCodeAt(all.length - 2) & 1) << 6) | (last.charCodeAt(0) & 0x3f)),
    );
  return utf8In(shortened);
}

function asAscii(code: number): string {
  return String.fromCharCode(code);
}

/** Decodes bytes that are written as characters as UTF-8, if they are valid. */
function utf8In(text: string): string {
  return text.replace(/[\u00c2-\u00f4][\u0080-\u00bf]{1,3}/g, (bytes) =>
    new TextDecoder().decode(Uint8Array.from(bytes, (each) => each.charCodeAt(0))),
  );
}

/** A parameter that some server may read in a query. */
interface ReadParameter {
  readonly name: string;
  readonly value: string;
  /** The name of its parameter if the query is split only at `&`, as browsers and most servers do. */
  readonly within: string;
}

/**
 * Lists the parameters that servers may read in a query. Some also split it at `;` (Rack, and older versions of Python
 * and Go, and PHP with some settings), so `?a=1;model=x` names a model there. Such a parameter must not bypass a limit.
 * The query is never rewritten for it.
 */
export function parametersIn(query: URLSearchParams): readonly ReadParameter[] {
  return [...query].flatMap(([name, value]) => {
    const whole = { name, value, within: name };
    const text = `${name}=${value}`;
    return text.includes(';') ? [whole, ...text.split(';').map((part) => read(part, name))] : whole;
  });
}

function read(part: string, within: string): ReadParameter {
  const equals = part.indexOf('=');
  const name = equals < 0 ? part : part.slice(0, equals);
  return { name: name.trim(), value: equals < 0 ? '' : part.slice(equals + 1), within };
}

/**
 * Some servers and frameworks process a request with another method, named by a header (Google, Microsoft, Rack,
 * Symfony, Express) or by a parameter of the query or a form (`_method`). Such a request counts as the strictest of all
 * its readings, because Headgate cannot know which one the upstream chooses.
 */

export const OVERRIDE_HEADERS: readonly string[] = [
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-method',
  'http-method-override',
  'method-override',
];

/**
 * `_method`, and the names that PHP converts to it: a blank or a dot becomes `_`, brackets create an array, and a zero
 * byte ends the name. Google reads the method of a request from `$httpMethod`, and additional headers from
 * `$httpHeaders`.
 */
const PARAMETER = /^\s*(?:[_. ]method|\$http_?(?:method|headers))(?:[[\0].*)?$/is;

interface MethodOverride {
  readonly name: string;
  readonly value: string;
}

/** Finds the header or parameter that names another method. Returns null if there is none. */
export function methodOverride(headers: Headers, query: URLSearchParams): MethodOverride | null {
  const name = OVERRIDE_HEADERS.find((each) => headers.has(each));
  if (name !== undefined) return { name, value: headers.get(name) ?? '' };
  if (query.size === 0) return null;
  const found = parametersIn(query).find((parameter) => isOverrideParameter(parameter.name));
  if (found === undefined) return null;
  return { name: `?${found.name.slice(0, 40)}`, value: found.value };
}

export function isOverrideParameter(name: string): boolean {
  return PARAMETER.test(name) || OVERRIDE_HEADERS.includes(name.toLowerCase().replaceAll('_', '-'));
}

/**
 * Whether a header is one of those, spelled with an underscore. CGI, WSGI and Rack treat it like a dash, so it is never
 * forwarded. nginx drops such headers as well.
 */
export function isUnderscoredOverride(name: string): boolean {
  return name.includes('_') && OVERRIDE_HEADERS.includes(name.replaceAll('_', '-'));
}

/** The methods that a request with an override may count as: the named ones, and always POST. */
export function overridingMethods({ value }: MethodOverride): readonly string[] {
  const named = value.split(',').map((each) => each.trim().toUpperCase());
  return [...new Set(['POST', ...named])];
}
