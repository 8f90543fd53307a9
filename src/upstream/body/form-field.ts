import { listItems, parameterOf, parseHeaderValue } from '../../runtime/header-value.ts';
import type { HeaderParameter } from '../../runtime/header-value.ts';
import { unescaped } from '../transfer/gateway-key.ts';
import { hasOddCharset } from './charset.ts';

export interface FormField {
  readonly name: string;
  /** Whether its content is the plain value of the field, not a file and not encoded. */
  readonly isText: boolean;
}

/** A header line continues on the next line if that one begins with a blank. */
const FOLD = /\r?\n[ \t]+/g;

const HEADER = /^([!#$%&'*+.^_`|~\w-]+):([^\r\n]*)$/;
const LENIENT_DISPOSITION = /^content-disposition[ \t]*:(.*)$/im;

const PLAIN_ENCODING = /^\s*(?:7bit|8bit|binary)\s*$/i;

/** A name as read by parsers that search for the word `name` anywhere in the headers. */
const SEARCHED_NAME =
  /(?<![\w*-])name(?:\*\d*\*?)?\s*=[\s"\\]*(?:[\w-]*'[\w-]*')?[\s"'\\]*([^\s"'\\;,:()<>]*)/gi;

/** Without escapes, all parsers end the name of a file at the same quote. */
const FILE_NAME = /filename\s*=\s*"[^"\\]*"/gi;

/** Names that only some parsers decode: encoded words (RFC 2047) and control characters. */
// oxlint-disable-next-line no-control-regex
const UNCERTAIN_NAME = /=\?.*\?=|[\u0000-\u001f\u007f]/;

/** The names and the kind of a part, as a lenient parser reads its headers. */
export interface LenientField {
  /** All names that parsers may read. Empty if there is none. */
  readonly names: readonly string[];
  readonly isFile: boolean;
}

export function lenientField(headers: string): LenientField {
  const disposition = LENIENT_DISPOSITION.exec(headers.replaceAll(FOLD, ' '))?.[1] ?? '';
  const parsed = parseHeaderValue(disposition);
  const name = parameterOf(parsed, 'name')?.value;
  const extended = parameterOf(parsed, 'name*')?.value;
  return {
    names: [
      ...(name === undefined ? [] : [name]),
      ...(extended === undefined ? [] : [decoded(extended)]),
    ],
    isFile: parsed.parameters.some(isFileName),
  };
}

/**
 * Reads the field that the headers of a part describe, if all parsers agree on it. Returns null if they may disagree
 * and `matters` holds for one of the possible names, which then decides about the call. Parts without a name and parts
 * that are multipart themselves always return null.
 */
export function plainField(headers: string, matters: (name: string) => boolean): FormField | null {
  const text = headers.replaceAll(FOLD, ' ');
  const lines = text.split('\r\n').filter((line) => line !== '');
  const pairs = lines.map((line) => HEADER.exec(line));
  if (pairs.includes(null)) return null;
  const valuesOf = (name: string): string[] =>
    pairs.flatMap((pair) => (pair?.[1]?.toLowerCase() === name ? [pair[2] ?? ''] : []));
  const [value, another] = valuesOf('content-disposition');
  const types = valuesOf('content-type');
  if (value === undefined || another !== undefined || types.some(isMultipart)) return null;
  const parsed = parseHeaderValue(value);
  if (parsed.value !== 'form-data' || !parsed.parameters.every(isPlain)) return null;
  const name = certainName(parsed.parameters, matters);
  if (name === null) return null;
  // Some parsers join a folded value without a blank.
  const texts = text === headers ? [text] : [text, headers.replaceAll(FOLD, '')];
  const isOther = (found: string): boolean => found !== name && matters(found);
  if (texts.flatMap(searchedNames).some(isOther)) return null;
  const encodings = valuesOf('content-transfer-encoding');
  const isEncoded =
    encodings.some((each) => !PLAIN_ENCODING.test(each)) || types.some(hasOddCharset);
  const isFile = /filename/i.test(value);
  return { name, isText: !isFile && !isEncoded };
}

function searchedNames(headers: string): string[] {
  const found = headers.replaceAll(FILE_NAME, '').matchAll(SEARCHED_NAME);
  return [...found].map(([, name = '']) => unescaped(name));
}

/** The name of a field, if all parsers read the same one, or no possible name matters. */
function certainName(
  parameters: readonly HeaderParameter[],
  matters: (name: string) => boolean,
): string | null {
  const [one, another] = parameters.filter(({ name }) => name === 'name');
  const extended = parameters.filter(({ name }) => name.startsWith('name*'));
  if (one === undefined || another !== undefined || UNCERTAIN_NAME.test(one.value)) return null;
  const isOdd = extended.some(
    ({ name, value }) => name !== 'name*' || hasOddCharset(`;charset=${value.split("'", 1)[0]}`),
  );
  if (isOdd) return null;
  const ofName = [one.raw, one.value.trim(), unescaped(one.value)];
  const readings = ofName.concat(extended.map(({ value }) => decoded(value)));
  const isCertain = readings.every((reading) => reading === one.value);
  return isCertain || ![one.value, ...readings].some(matters) ? one.value : null;
}

/** Some clients omit the quotes that a file name would need. No parser confuses these with another field. */
function isPlain({ name, raw, isValid }: HeaderParameter): boolean {
  return isValid || (isFileName({ name }) && /^[^\s"\\]+$/.test(raw));
}

function isFileName({ name }: Pick<HeaderParameter, 'name'>): boolean {
  return /^filename(?:\*|$)/.test(name);
}

function isMultipart(contentType: string): boolean {
  const isBroken = !parseHeaderValue(contentType).isValid && /multipart\//i.test(contentType);
  return isBroken || listItems(contentType).some((type) => /^multipart\//i.test(type));
}

/** Decodes the name in an extended parameter (RFC 8187), as in `name*=utf-8''%5Fname`. */
function decoded(extended: string): string {
  return unescaped(extended.replace(/^[^']*'[^']*'/, ''));
}
