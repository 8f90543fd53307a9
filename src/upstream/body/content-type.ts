import { hasOddCharset } from './charset.ts';
import { multipartBoundary } from './multipart-scan.ts';

/** The form that a body is read as. */
export type BodyForm =
  | { readonly kind: 'json' }
  | { readonly kind: 'form'; readonly boundary: string }
  /** `why` says what keeps it from being read. */
  | { readonly kind: 'hidden'; readonly why: string };

const FORM = /^\s*multipart\/form-data\s*(?:;|$)/i;

/** Types under which clients send JSON, the one of plain `fetch` and none at all among them. */
const JSON_TYPE = /^\s*(?:application\/(?:[\w.+-]+\+)?json|text\/(?:json|plain))?\s*(?:;|$)/i;

/** Parsers disagree about what is escaped, left open, commented or bracketed: `"a\\b"`, `"a`, `a b`, `<a>`. */
const PLAIN_BOUNDARY = /;\s*boundary=(?:"[^\s"\\;()<>]+"|[!#$%&'*+.^_`|~\w-]+)\s*(?:;|$)/i;

const NO_BOUNDARY = 'the content type names no boundary';

/** Anything that does not say that it is a form may be JSON: some clients name no type. */
export function bodyForm(contentType: string): BodyForm {
  if (!FORM.test(contentType)) return { kind: 'json' };
  const boundary = multipartBoundary(contentType);
  return boundary === null ? { kind: 'hidden', why: NO_BOUNDARY } : { kind: 'form', boundary };
}

/** The same, where the upstream must not be able to take the body for something else than it is read as. */
export function certainForm(contentType: string): BodyForm {
  const hidden = (why: string): BodyForm => ({ kind: 'hidden', why });
  const form = bodyForm(contentType);
  if (form.kind === 'hidden') return form;
  if (contentType.includes(',')) return hidden('it has several content types');
  if (hasOddCharset(contentType)) return hidden('its charset is not UTF-8');
  if (form.kind === 'form') {
    const boundaries = contentType.match(/boundary/gi) ?? [];
    if (boundaries.length > 1) return hidden('its content type names several boundaries');
    return PLAIN_BOUNDARY.test(contentType)
      ? form
      : hidden('its boundary can be read in several ways');
  }
  return JSON_TYPE.test(contentType)
    ? form
    : hidden('its content type is neither application/json nor multipart/form-data');
}
