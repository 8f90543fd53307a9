import {
  listItems,
  mediaType,
  parameterOf,
  parseHeaderValue,
  type HeaderParameter,
} from '../../runtime/header-value.ts';
import { unescaped } from '../transfer/tokens.ts';

/**
 * What the headers of a body, or of one part of a form, say about it. Every reading of a header counts that some server
 * may have.
 */

export type BodyForm =
  | { readonly kind: 'json' }
  | {
      readonly kind: 'form';
      readonly boundary: string;
      /** The longest beginning of the boundary that all parsers agree on. Usually it is the whole boundary. */
      readonly stem: string;
    }
  | { readonly kind: 'hidden'; readonly why: string };

const FORM = 'multipart/form-data';

/** Types under which clients send JSON. They include the type of a plain `fetch`, and no type. */
const JSON_TYPE = /^(?:application\/(?:[\w.+-]+\+)?json|text\/(?:json|plain))?$/;

/** Content types of most bodies. They need no parsing. */
const USUAL_JSON = /^application\/json(?:; ?charset=utf-8)?$/i;

/**
 * Types as lenient parsers read them. PHP ends the type at a comma or a blank, and others take the last of several
 * types.
 */
const ANY_FORM = /(?:^|,)\s*multipart\/form-data(?:[;,\s"]|$)/i;
const URLENCODED = /(?:^|,)\s*application\/x-www-form-urlencoded(?:[;,\s"]|$)/i;

/** Whether some parser reads a body of this type as multipart/form-data. */
export function mayBeMultipart(contentType: string): boolean {
  return ANY_FORM.test(contentType);
}

/** Whether some parser reads a body of this type as application/x-www-form-urlencoded. */
export function mayBeUrlencoded(contentType: string): boolean {
  return URLENCODED.test(contentType) && URLENCODED.test(contentType.replaceAll(QUOTED, '""'));
}

const QUOTED = /"(?:[^"\\]|\\.)*"?/gs;

/** Maximum length of a boundary. RFC 2046 allows 70 characters. */
const BOUNDARY = /^[\x20-\x7e]{1,200}$/;

/** Parsers disagree about escapes, semicolons and brackets in quotes, and about a trailing space. */
const CERTAIN_BOUNDARY = /^[^\\;<>]*[^\\;<>\s]$/;

/** A boundary as read by parsers that search for the word `boundary` and stop at the first separator. */
const SEARCHED_BOUNDARY = /boundary\s*=\s*"?([^";,\s()]*)/gi;

const NO_BOUNDARY = 'the content type has no boundary';

/** The boundary of a multipart/form-data content type. null if there is none. */
export function multipartBoundary(contentType: string): string | null {
  const boundary = parameterOf(parseHeaderValue(contentType), 'boundary')?.value;
  return boundary === undefined || !BOUNDARY.test(boundary) ? null : boundary;
}

/** The boundary that a lenient parser reads from a content type that may name several types. null if there is none. */
export function anyBoundary(contentType: string): string | null {
  // A boundary without quotes ends at a comma.
  const item = listItems(contentType).find((each) => multipartBoundary(each) !== null) ?? '';
  const [, searched = ''] = contentType.matchAll(SEARCHED_BOUNDARY).next().value ?? [];
  return multipartBoundary(item) ?? (BOUNDARY.test(searched) ? searched : null);
}

/** The form of a body. Every type except multipart/form-data counts as JSON, because some clients send no type. */
export function bodyForm(contentType: string): BodyForm {
  if (mediaType(contentType) !== FORM) return { kind: 'json' };
  const boundary = multipartBoundary(contentType);
  return boundary === null
    ? { kind: 'hidden', why: NO_BOUNDARY }
    : { kind: 'form', boundary, stem: boundary };
}

/** The form of a body, if no upstream can read it as another form. Otherwise the body is `hidden`. */
export function certainForm(contentType: string): BodyForm {
  if (USUAL_JSON.test(contentType)) return { kind: 'json' };
  const form = bodyForm(contentType);
  if (form.kind === 'hidden') return form;
  const isSeveral =
    listItems(contentType).length > 1 ||
    (form.kind === 'json' && mayBeMultipart(contentType)) ||
    URLENCODED.test(contentType.replace(/^[^,;]*/, ''));
  if (isSeveral) return hidden('it has several content types');
  if (hasOddCharset(contentType)) return hidden('its charset is not UTF-8');
  if (form.kind === 'form') return certainBoundary(form.boundary, contentType);
  return JSON_TYPE.test(mediaType(contentType))
    ? form
    : hidden('its content type is neither application/json nor multipart/form-data');
}

function certainBoundary(boundary: string, contentType: string): BodyForm {
  const { parameters, isValid } = parseHeaderValue(contentType);
  const named = parameters.filter(({ name }) => /^boundary(?:\*|$)/.test(name));
  if (named.length > 1) return hidden('its content type names several boundaries');
  if (!isValid || !CERTAIN_BOUNDARY.test(named[0]?.raw ?? '')) {
    return hidden('its boundary can be read in several ways');
  }
  const searched = [...contentType.matchAll(SEARCHED_BOUNDARY)].map(([, found = '']) => found);
  return { kind: 'form', boundary, stem: searched.reduce(commonStart, boundary) };
}

function commonStart(one: string, two: string): string {
  let length = 0;
  while (length < one.length && one[length] === two[length]) length += 1;
  return one.slice(0, length);
}

function hidden(why: string): BodyForm {
  return { kind: 'hidden', why };
}

/** Encodings in which the structure of JSON and forms and the name of a model have the same bytes. */
const ASCII_LIKE = /^(?:utf-?8|(?:us-)?ascii|latin-?1|iso-8859-\d{1,2}|windows-125[0-8])$/i;

/** Parsers search a malformed content type for this. */
const CHARSET = /charset[^=;]*=\s*"?([^";\s]*)/gi;

/** Whether a content type names a charset other than these. */
function hasOddCharset(contentType: string): boolean {
  const { parameters, isValid } = parseHeaderValue(contentType);
  const named = isValid
    ? parameters.filter(({ name }) => /^charset(?:\*|$)/.test(name)).map(({ value }) => value)
    : [...contentType.matchAll(CHARSET)].map(([, charset = '']) => charset);
  return named.some((charset) => !ASCII_LIKE.test(charset));
}

interface FormField {
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
interface LenientField {
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
