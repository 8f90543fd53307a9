import { mediaType } from '../../runtime/header-value.ts';
import { parseCutJson } from '../json/cut-json.ts';
import type { ErrorFields } from './error-fields.ts';
import { isSentence } from './own-words.ts';

export interface EgressAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The beginning of its body, decompressed. Empty if the runtime cannot decompress it. */
  readonly body: string;
  readonly fields: ErrorFields;
}

/** The code of OpenAI and compatible APIs. */
const REGION_CODE = 'unsupported_country_region_territory';

/**
 * Gemini has no code of its own for it, because `FAILED_PRECONDITION` has other meanings as well. Some gateways keep
 * only the message.
 */
const isAboutRegion = isSentence(
  /user location is not supported for the api use(?: without a billing account linked)?\.?/,
  /country, region, or territory not supported\.?(?: \(request id: [\w-]{1,64}\))?/,
);

/**
 * Anthropic's message for addresses that it does not serve. A key without a permission is a `permission_error`. As of
 * 2026-11-22, anthropics/claude-code#1613.
 */
const ANTHROPIC_TYPE = 'forbidden';
const isAboutAddress = isSentence(/request not allowed\.?/);

/** Statuses of Cloudflare's errors 1000 to 1999 that refuse. 1015 and 1027 are limits, and have status 429. */
const EDGE_STATUSES = new Set([403, 409, 530]);

/** Cloudflare's errors about the upstream: its name was not found, or its tunnel is down. */
const OF_UPSTREAM = new Set([1016, 1033]);

/** Cloudflare's error as plain text. */
const EDGE_TEXT = /^\s*error code: (1\d{3})\s*$/i;

/**
 * Marks of Cloudflare's challenge pages. Scripts that Cloudflare inserts into other pages do not contain them. Text of
 * a caller that a page repeats does not either, because its brackets and quotes are escaped.
 */
const CHALLENGE_PAGE = /<title>just a moment|<script[^<>]*>[^<]*_cf_chl_opt/i;

/** Marks of Cloudflare's other pages, which block with a 403. With a 503 they report an outage. */
const BLOCK_PAGE =
  /<title>attention required|\| cloudflare<\/title>|id="cf-error-details"|<center>cloudflare/i;

/**
 * Whether the upstream, or the edge in front of it, refuses every call from the address that this call was sent from,
 * which belongs to the Worker. Errors of the key or of the upstream itself, and limits, do not count.
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

/** Reads the number of Cloudflare's error, from text, or from the JSON that clients receive if they accept it. */
function edgeCode(headers: Headers, body: string): number | null {
  const code = EDGE_TEXT.exec(body)?.[1];
  if (code !== undefined) return Number(code);
  if (!body.includes('"cloudflare_error"')) return null;
  if (!mediaType(headers.get('content-type')).includes('json')) return null;
  const parsed = parseCutJson(body).value as Readonly<Record<string, unknown>> | null | undefined;
  return parsed?.['cloudflare_error'] === true ? Number(parsed['error_code']) : null;
}

/** Cloudflare marks every challenge page with this header. */
function isChallenged({ status, headers }: EgressAnswer): boolean {
  return status >= 400 && headers.get('cf-mitigated') === 'challenge';
}

/**
 * Whether the edge responded with a page of its own. `server: cloudflare` alone does not prove that, because it is also
 * set on the upstream's responses. An API's own 403 is not a page, so a page that cannot be decompressed counts as the
 * edge's.
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

/**
 * Whether a page contains the edge's id of this call, which no caller knows. This recognizes pages that the operator of
 * the upstream has written.
 */
function namesRay(headers: Headers, body: string): boolean {
  const ray = /^[0-9a-f]{16}/.exec(headers.get('cf-ray') ?? '')?.[0];
  return ray !== undefined && /cloudflare ray id/i.test(body) && body.includes(ray);
}
