import { listItems, mediaType, parameterOf, parseHeaderValue } from '../../runtime/header-value.ts';
import { hasOddCharset } from './charset.ts';

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
