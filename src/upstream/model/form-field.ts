import { hasOddCharset } from './charset.ts';

/** What the headers of a part of a form say of it. */
export interface FormField {
  readonly name: string;
  /** Whether its content is the value of the field as it stands: no file, and in no encoding. */
  readonly isText: boolean;
}

const HEADER = /^([!#$%&'*+.^_`|~\w-]+):(.*)$/;

/** No backslash: some parsers escape with it, to others it is a character. */
const DISPOSITION =
  /^\s*form-data\s*(?:;\s*[^\s;="\\*]+\*?\s*=\s*(?:"[^"\\]*"|[^\s;"\\]+)\s*)+;?\s*$/i;

/**
 * The field that the headers of a part name, if every parser reads them alike. Null: folded lines, a name said
 * twice or in an encoding, a part without a name.
 */
export function plainField(headers: string): FormField | null {
  const lines = headers.split('\r\n').filter((line) => line !== '');
  const pairs = lines.map((line) => HEADER.exec(line));
  if (pairs.includes(null)) return null;
  const valuesOf = (name: string): string[] =>
    pairs.flatMap((pair) => (pair?.[1]?.toLowerCase() === name ? [pair[2] ?? ''] : []));
  const [value, another] = valuesOf('content-disposition');
  if (value === undefined || another !== undefined || !DISPOSITION.test(value)) return null;
  const names = [...value.matchAll(/;\s*([^\s;="]+)\s*=\s*(?:"([^"]*)"|([^\s;"]+))/g)];
  const [first, ...more] = names.filter(([, key = '']) => /^name\b/i.test(key));
  if (first === undefined || more.length > 0 || first[1]?.toLowerCase() !== 'name') return null;
  const isFile = names.some(([, key = '']) => /^filename\b/i.test(key));
  const isEncoded =
    valuesOf('content-transfer-encoding').length > 0 ||
    valuesOf('content-type').some(hasOddCharset);
  return { name: first[2] ?? first[3] ?? '', isText: !isFile && !isEncoded };
}

/** The parameters of a header's value, as in `form-data; name="model"`. The first of a name counts. */
export function parameters(value: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const [, name = '', quoted, plain = ''] of value.matchAll(PARAMETER)) {
    const key = name.toLowerCase();
    if (!found.has(key)) found.set(key, quoted?.replaceAll(/\\(.)/g, '$1') ?? plain.trim());
  }
  return found;
}

const PARAMETER = /;\s*([^=;\s"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;]*))/g;
