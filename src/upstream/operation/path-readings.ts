/**
 * Lists what servers may take a path for. Some decode it, once or twice, before they route; some leave out path
 * parameters (`;x`), empty segments, dots and spaces at the end of a segment, or a format behind the last one
 * (`.json`); some go up where two dots turn up only then. None of that may lead around a limit. It is never
 * forwarded: an upstream gets the path as it came.
 */

/** Signs in a path that are read in several ways. */
const ODD = /[%;\\]|\/\/|\.(?:\/|$)|\.json$/i;

/** Escapes of escapes are undone as often. */
const ROUNDS = 3;

/** The ways to read a path other than as it stands, the likeliest first. None, where it is plain. */
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
    // Gemini's verb stands behind the model, in its segment.
    text.replace(/[;?#\0][^/:]*/g, ''),
    text.replace(/[;?#\0].*$/s, ''),
  ];
}

/** Escapes other than those of ASCII, from which careless servers may read ASCII. */
const CARELESS = /%(?:25)*(?:u|[89a-f])/i;

/** Decodes the escapes of ASCII. Others stay as they came. */
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
 * A path without empty segments and dots. How far two dots go up depends on what a server takes for a
 * segment, so what stands behind the last of them is another reading.
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

/** Without dots, spaces, slashes and that ending behind it. A regular expression would take quadratic time over dots. */
function withoutEnd(text: string, ending = '.'): string {
  let end = text.length;
  for (;;) {
    if ('. /'.includes(text[end - 1] ?? '-')) end -= 1;
    else if (text.slice(end - ending.length, end).toLowerCase() === ending) end -= ending.length;
    else return text.slice(0, end);
  }
}

/** Escapes that some servers decode: one byte, and a character as old versions of IIS write it. */
const ESCAPE = /%(?:u([0-9a-f]{4})|([0-9a-f]{2}))/gi;

/** Maximum times that a path is decoded: a proxy, a router and a framework may each decode it, and each twice. */
const UNDONE_MAX = 6;

/** A segment of dots of any length: some servers read three as two. */
const UP = /^\.{2,}$/;

/** Characters that servers remove from a segment or ignore. */
const UNSEEN = /[\s\p{Cc}\p{Cf}]/gu;

/**
 * Whether some server may read a path as one that leads to a parent folder, and so out of the base path: with two dots that
 * are escaped once or several times, or written with backslashes, parameters, overlong bytes or look-alike characters.
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
  // No legitimate path is escaped so often.
  return true;
}

/** Reads overlong bytes and look-alikes of ASCII characters as these, and decodes every layer of escapes. */
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
  // Full-width characters and the leader of two dots become the plain ones.
  const segments = text.normalize('NFKC').split(/[/\\\u2044\u2215\u29f5\u29f8]/);
  return segments.some((each) => {
    const seen = each.replace(UNSEEN, '');
    return UP.test(seen) || seen.split(/[;?#]/).some((part) => UP.test(part));
  });
}

/** Decodes one layer of escapes: as UTF-8, or byte for byte if that is overlong, which only careless servers accept. */
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

/** Decodes bytes that are written as characters as UTF-8, where they are valid. */
function utf8In(text: string): string {
  return text.replace(/[\u00c2-\u00f4][\u0080-\u00bf]{1,3}/g, (bytes) =>
    new TextDecoder().decode(Uint8Array.from(bytes, (each) => each.charCodeAt(0))),
  );
}
