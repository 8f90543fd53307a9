import { regionError } from './errors.ts';
import type { StrictDialect } from './settings.ts';

/** Ways in which calls are refused for the address that they come from. */
export const EGRESS_FORMS = [
  'region',
  'address',
  'edge_code',
  'edge_json',
  'challenge',
  'block',
] as const;

export type StrictEgress = (typeof EGRESS_FORMS)[number];

/** An answer as it goes over the wire. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const EDGE = { server: 'cloudflare', 'cf-ray': '9f1c74bde9f76c24-HKG' };
const PAGE = { ...EDGE, 'content-type': 'text/html; charset=UTF-8' };

/** Answers that do not go by the dialect, as clients have reported them. */
const ANSWERS: Readonly<Record<Exclude<StrictEgress, 'region'>, WireAnswer>> = {
  // api.anthropic.com
  address: {
    status: 403,
    headers: { ...EDGE, 'content-type': 'application/json' },
    body: '{"error":{"type":"forbidden","message":"Request not allowed"}}',
  },
  // Cloudflare's edge, to clients that ask for no page
  edge_code: {
    status: 403,
    headers: { ...EDGE, 'content-type': 'text/plain; charset=UTF-8' },
    body: 'error code: 1000',
  },
  // the same, to clients that accept JSON
  edge_json: {
    status: 403,
    headers: { ...EDGE, 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify({
      type: 'https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-1xxx-errors/error-1010/',
      title: 'Error 1010: Access denied',
      status: 403,
      detail: "The site owner has blocked access based on your browser's signature.",
      instance: '9f1c74bde9f76c24',
      error_code: 1010,
      error_name: 'browser_signature_banned',
      error_category: 'access_denied',
      ray_id: '9f1c74bde9f76c24',
      cloudflare_error: true,
      retryable: false,
      owner_action_required: true,
    }),
  },
  challenge: {
    status: 403,
    headers: { ...PAGE, 'cf-mitigated': 'challenge' },
    body: '<!DOCTYPE html><html lang="en-US"><head><title>Just a moment...</title><meta http-equiv="Content-Type" content="text/html; charset=UTF-8"><meta name="robots" content="noindex,nofollow"></head><body><script>window._cf_chl_opt = {cvId: "3", cType: "managed"};</script></body></html>',
  },
  block: {
    status: 403,
    headers: PAGE,
    body: '<!doctype html> <html class="no-js" lang="en-US"> <head> <title>Attention Required! | Cloudflare</title> </head> <body> <div id="cf-wrapper"> <div id="cf-error-details"> <h1 data-translate="block_headline">Sorry, you have been blocked</h1> <span>Cloudflare Ray ID: <strong>9f1c74bde9f76c24</strong></span> </div> </div> </body> </html>',
  },
};

/** How a call is refused that comes from where nobody is served. */
export function egressAnswer(form: StrictEgress, dialect: StrictDialect): WireAnswer {
  if (!EGRESS_FORMS.includes(form)) {
    throw new TypeError(`There is no egress refusal named ${form}.`);
  }
  if (form !== 'region') return ANSWERS[form];
  const { status, body } = regionError(dialect);
  const headers = { 'content-type': 'application/json' };
  return { status, headers, body: JSON.stringify(body) };
}
