import { multipartBoundary } from './multipart-scan.ts';

/** What a body is read as. */
export type BodyForm =
  | { readonly kind: 'json' }
  | { readonly kind: 'form'; readonly boundary: string }
  /** `why` says what keeps it from being read. */
  | { readonly kind: 'hidden'; readonly why: string };

const FORM = /^\s*multipart\/form-data\s*(?:;|$)/i;

/** Types under which clients send JSON, the one of plain `fetch` and none at all among them. */
const JSON_TYPE = /^\s*(?:application\/(?:[\w.+-]+\+)?json|text\/(?:json|plain))?\s*(?:;|$)/i;

/** Encodings in which the structure of JSON and of forms is the same bytes. */
const CHARSET = /^(?:utf-?8|us-ascii|iso-8859-1)$/i;

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
  for (const [, charset = ''] of contentType.matchAll(/charset[^=;]*=\s*"?([^";\s]*)/gi)) {
    if (!CHARSET.test(charset)) return hidden('its charset is not UTF-8');
  }
  if (form.kind === 'form') {
    const boundaries = contentType.match(/boundary/gi) ?? [];
    return boundaries.length === 1 ? form : hidden('its content type names several boundaries');
  }
  return JSON_TYPE.test(contentType)
    ? form
    : hidden('its content type is neither application/json nor multipart/form-data');
}
