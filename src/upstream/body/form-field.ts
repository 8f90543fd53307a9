import { hasOddCharset } from './charset.ts';

/** A part of a form, as its headers describe it. */
export interface FormField {
  readonly name: string;
  /** Whether its content is the value of the field as it stands: no file, and in no encoding. */
  readonly isText: boolean;
}

const HEADER = /^([!#$%&'*+.^_`|~\w-]+):(.*)$/;

/** No line but these: what is in another place, in blanks, comments or escapes, parsers see in different ways. */
const DISPOSITION =
  /^\s*form-data((?:\s*;\s*(?:name=(?:"[^"\\;=]*"|[\w.-]+)|filename\*?=(?:"[^"\\]*"|[^\s;"\\]+)))+)\s*$/i;

/**
 * The field that the headers of a part name, if every parser reads them alike. Null: folded lines, a name said
 * twice or in an encoding, a part without a name or with parts of its own.
 */
export function plainField(headers: string): FormField | null {
  const lines = headers.split('\r\n').filter((line) => line !== '');
  const pairs = lines.map((line) => HEADER.exec(line));
  if (pairs.includes(null)) return null;
  const valuesOf = (name: string): string[] =>
    pairs.flatMap((pair) => (pair?.[1]?.toLowerCase() === name ? [pair[2] ?? ''] : []));
  const [value, another] = valuesOf('content-disposition');
  const types = valuesOf('content-type');
  if (value === undefined || another !== undefined || types.some(isMultipart)) return null;
  const said = [...(DISPOSITION.exec(value)?.[1] ?? '').matchAll(SAID)];
  const [name, oneMore] = said.filter(([, key]) => key?.toLowerCase() === 'name');
  if (name === undefined || oneMore !== undefined) return null;
  const encodings = valuesOf('content-transfer-encoding');
  const isEncoded =
    encodings.some((each) => !PLAIN_ENCODING.test(each)) || types.some(hasOddCharset);
  return { name: name[2] ?? name[3] ?? '', isText: said.length === 1 && !isEncoded };
}

const SAID = /;\s*(name|filename\*?)=(?:"([^"]*)"|([^\s;"]+))/gi;

const PLAIN_ENCODING = /^\s*(?:7bit|8bit|binary)\s*$/i;

function isMultipart(contentType: string): boolean {
  return /multipart\//i.test(contentType);
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
