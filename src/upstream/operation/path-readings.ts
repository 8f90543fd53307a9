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
  const decoded = decodeAscii(path)
    .replace(/[\t\n\r]/g, '')
    .replaceAll('\\', '/');
  const withoutParameters = new Set([
    decoded.replace(/[;?#\0][^/]*/g, ''),
    // Gemini's verb stands behind the model, in its segment.
    decoded.replace(/[;?#\0][^/:]*/g, ''),
    decoded.replace(/[;?#\0].*$/s, ''),
  ]);
  return [...new Set([...withoutParameters].flatMap(resolve))];
}

/** Routes are ASCII: whatever else is escaped, well or badly, stays as it came. */
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
