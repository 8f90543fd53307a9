import { mediaType } from '../../runtime/header-value.ts';
import { parseCutJson } from '../json/cut-json.ts';
import type { ErrorFields } from './error-fields.ts';
import { isSentence } from './own-words.ts';

/** An answer that may say that nobody is served from where the call came. */
export interface EgressAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The beginning of its body, unpacked; empty where the runtime cannot unpack it. */
  readonly body: string;
  /** The fields of the error in it. */
  readonly fields: ErrorFields;
}

/** OpenAI's code, and that of those who speak like it. */
const REGION_CODE = 'unsupported_country_region_territory';

/** Gemini has no code of its own for it: `FAILED_PRECONDITION` stands for much else. Some gateways keep the words alone. */
const isAboutRegion = isSentence(
  /user location is not supported for the api use(?: without a billing account linked)?\.?/,
  /country, region, or territory not supported\.?(?: \(request id: [\w-]{1,64}\))?/,
);

/**
 * Anthropic's words for addresses that it does not serve; a key that may not do something is a
 * `permission_error`. As of 2026-11-22, anthropics/claude-code#1613.
 */
const ANTHROPIC_TYPE = 'forbidden';
const isAboutAddress = isSentence(/request not allowed\.?/);

/** Statuses of Cloudflare's errors 1000 to 1999 that refuse. 1015 and 1027 are limits, and come with 429. */
const EDGE_STATUSES = new Set([403, 409, 530]);

/** Cloudflare's errors that tell of the upstream: its name is not found, its tunnel is down. */
const OF_UPSTREAM = new Set([1016, 1033]);

/** Cloudflare's error as plain text. */
const EDGE_TEXT = /^\s*error code: (1\d{3})\s*$/i;

/**
 * Marks of Cloudflare's challenge pages. Scripts that it puts into the pages of others have none of them, and no caller's word that
 * a page repeats: there its brackets and quotes are escaped.
 */
const CHALLENGE_PAGE = /<title>just a moment|<script[^<>]*>[^<]*_cf_chl_opt/i;

/** Marks of its other pages, which block with a 403; with a 503 they tell of what is out of order. */
const BLOCK_PAGE =
  /<title>attention required|\| cloudflare<\/title>|id="cf-error-details"|<center>cloudflare/i;

/**
 * Tells whether an answer says that the upstream, or the edge before it, serves nobody from the address that the
 * call came from, which is one of the Worker's. Not so an error of the key, of the upstream itself, or a limit.
 */
export function refusesEgress(answer: EgressAnswer): boolean {
  return (
    refusesRegion(answer) ||
    refusesAddress(answer) ||
    refusesAtEdge(answer) ||
    isChallenged(answer) ||
    isEdgePage(answer)
  );
}

function refusesRegion({ status, fields: { codes, messages } }: EgressAnswer): boolean {
  if (status !== 400 && status !== 403) return false;
  return codes.has(REGION_CODE) || messages.some(isAboutRegion);
}

function refusesAddress({ status, fields: { codes, messages } }: EgressAnswer): boolean {
  return status === 403 && codes.has(ANTHROPIC_TYPE) && messages.some(isAboutAddress);
}

function refusesAtEdge({ status, headers, body }: EgressAnswer): boolean {
  if (!EDGE_STATUSES.has(status)) return false;
  const code = edgeCode(headers, body);
  return code !== null && code >= 1_000 && code <= 1_999 && !OF_UPSTREAM.has(code);
}

/** Reads the number of Cloudflare's error, from text or from JSON, which clients get that accept it. */
function edgeCode(headers: Headers, body: string): number | null {
  const code = EDGE_TEXT.exec(body)?.[1];
  if (code !== undefined) return Number(code);
  if (!body.includes('"cloudflare_error"')) return null;
  if (!mediaType(headers.get('content-type')).includes('json')) return null;
  const said = parseCutJson(body).value as Readonly<Record<string, unknown>> | null | undefined;
  return said?.['cloudflare_error'] === true ? Number(said['error_code']) : null;
}

/** Cloudflare marks every challenge page with this header. */
function isChallenged({ status, headers }: EgressAnswer): boolean {
  return status >= 400 && headers.get('cf-mitigated') === 'challenge';
}

/**
 * Tells whether the edge answered with a page of its own. `server: cloudflare` alone does not say so: it stands on
 * what the upstream answers, too. An API's own 403 is no page, so one that cannot be unpacked is taken for one.
 */
function isEdgePage({ status, headers, body }: EgressAnswer): boolean {
  if (headers.get('server') !== 'cloudflare') return false;
  if (mediaType(headers.get('content-type')) !== 'text/html') return false;
  if (status === 503) return CHALLENGE_PAGE.test(body);
  if (status !== 403) return false;
  return (
    body === '' || CHALLENGE_PAGE.test(body) || BLOCK_PAGE.test(body) || namesRay(headers, body)
  );
}

/** Tells a page, also one that the operator of the upstream has written, by the edge's id of this very call, which no caller knows. */
function namesRay(headers: Headers, body: string): boolean {
  const ray = /^[0-9a-f]{16}/.exec(headers.get('cf-ray') ?? '')?.[0];
  return ray !== undefined && /cloudflare ray id/i.test(body) && body.includes(ray);
}
