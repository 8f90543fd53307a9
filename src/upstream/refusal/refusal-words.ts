import { mediaType } from '../../runtime/header-value.ts';
import { parseCutJson } from '../json/json-syntax.ts';
import type { ErrorFields } from './error-fields.ts';

/**
 * What the words of a refusal mean: whether the request is too long, and whether the upstream refuses the key or the
 * address.
 *
 * Messages repeat what callers wrote: the name of a model, a tool or a parameter, with or without quotes, at any
 * position. A message therefore only counts as evidence about a key or an address if it is known as a whole.
 */

/** Whether one message of an error, given in lower case and complete, matches. */
export type MessageTest = (message: string) => boolean;

/** Creates the test for messages that consist of exactly one of the sentences. */
export function isSentence(...sentences: readonly RegExp[]): MessageTest {
  const any = sentences.map(({ source }) => source).join('|');
  const whole = new RegExp(`^(?:${any})$`, 'u');
  return (message) => whole.test(message);
}

const WORD = /\p{L}+/gu;

/**
 * Creates the test for messages that match a pattern and contain only known words, in any order. It is for sentences
 * with too many forms to list. It is weaker than `isSentence`, so it is only for errors that harm no other caller if a
 * caller provokes them.
 */
export function isInWords(pattern: RegExp, words: string): MessageTest {
  const known = new Set(words.split(/\s+/));
  return (message) =>
    pattern.test(message) && (message.match(WORD) ?? []).every((word) => known.has(word));
}

/** Opening quotes, recognized by their form or by the character before them. The apostrophe in `can't` is not one. */
const OPENING = /[“„‘«‹]|(?<![\p{L}\p{N}])["'`´]/u;

/** Closing quotes, recognized in the same way. */
const CLOSING = /(?:[”’“»›]|["'`´])(?![\p{L}\p{N}])/gu;

/**
 * Removes quoted text from a message, from the first opening quote to the last closing one, because the quoted text may
 * contain quotes as well. Without a closing quote, removes everything up to the end.
 */
export function withoutQuoted(message: string): string {
  const from = message.search(OPENING);
  if (from < 0) return message;
  const rest = message.slice(from + 1);
  const end = [...rest.matchAll(CLOSING)].at(-1);
  const after = end === undefined ? '' : rest.slice(end.index + end[0].length);
  return `${message.slice(0, from)} ${after}`;
}

const SHOWN_MAX = 300;

/**
 * Patterns of secrets and account names: keys and ids by their usual prefixes, bearer tokens, mail addresses,
 * parameters of a query, and long words with digits. Names of models stay readable: they are in lower case and contain
 * dashes.
 */
const SECRETS = [
  /\bbearer\s+[^\s"',;]+/gi,
  /\b(?:sk|pk|rk|ak|gsk|hf|nvapi|org|proj|acct|cus|key|user|req|wrk|hg|tok|token|r8|ghp|gho|pat)[-_][\w-]{4,}/gi,
  /\bAIza[\w-]{10,}/g,
  /\beyJ[\w-]{6,}(?:\.[\w-]+)*/g,
  /[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g,
  /(?<=[?&][\w.-]{1,40}=)[^\s&"']+/g,
  /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi,
  /(?<![\w-])(?=[\w-]{0,200}\d)(?=[\w-]{0,200}[A-Z])(?=[\w-]{0,200}[a-z])[\w-]{24,}/g,
  /\b(?=\w{0,60}\d)(?=\w{0,60}[a-z])\w{20,}\b/gi,
] as const;

/** Returns an upstream's message as it is shown to operators and other callers: short, on one line, without secrets. */
export function shownWords(message: string): string | null {
  // Cut both before and after, because the time of the patterns grows with the length.
  let words = message
    .slice(0, 4 * SHOWN_MAX)
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .trim();
  for (const secret of SECRETS) words = words.replaceAll(secret, '…');
  if (words.length > SHOWN_MAX) words = `${words.slice(0, SHOWN_MAX - 1).trimEnd()}…`;
  return words === '' ? null : words;
}

/**
 * Codes for a call with more tokens than the model accepts: OpenAI and compatible APIs, llama.cpp, GitHub. As of
 * 2026-11-23.
 */
export const TOO_LONG_CODES: readonly string[] = [
  'context_length_exceeded',
  'exceed_context_size_error',
  'model_max_prompt_tokens_exceeded',
];

const PHRASES =
  /prompt (?:is )?too long|input is too long|(?:maximum|max) (?:context|prompt|model|allowed input) length|context (?:length|window|size|limit)|maximum number of tokens allowed|exceeded model token limit|token count of \d|range of input length|too large for model/;

/** Every word of their messages. Each provider has two or three messages of its own, with numbers. */
const WORDS = `
  a about adjust again algo allowed an and application automatically available but by completion compress compression configured
  contains context count decrease either endpoint exceed exceeded exceeding exceeds fit for from functions greater has have
  however if in increasing initial input internalerror invalidparameter is it keep large larger least length less limit
  long longer make max maximum message messages middle model more must new number of on one only or out output parameter
  please plugin prompt provided range reduce request requested requests resulted s should shorten shorter size sum system text
  than that the this to token tokens too tool total transform try trying up use using value was when window with you your be
`;

const isInKnownWords = isInWords(PHRASES, WORDS.trim());

/** Messages with a word that may also precede callers' names: Kimi's and MiniMax's. */
const isFixedSentence = isSentence(
  /invalid request: your request exceeded model token limit: \d+ \(requested: \d+\)/,
  /invalid params, context window exceeds limit(?: \(2013\))?/,
);

/**
 * Whether a message, from a provider without such a code, means that a call is too long: Anthropic, Google, Bedrock,
 * DeepSeek, OpenRouter, vLLM. A caller that provokes it only moves its own call to another upstream, and affects no
 * other caller.
 */
export const isTooLong: MessageTest = (message) =>
  isFixedSentence(message) || isInKnownWords(message);

interface EgressAnswer {
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

interface KeyAnswer {
  readonly status: number;
  readonly fields: ErrorFields;
}

/** Statuses that may mean a wrong key. Google and xAI use 400. */
const MAY_REFUSE_KEY: ReadonlySet<number> = new Set([400, 401, 403]);

/**
 * Codes for a key that is wrong, revoked, disabled or expired. As of 2026-11-23, from the providers' error references.
 */
const KEY_CODES: ReadonlySet<string> = new Set([
  'invalid_api_key',
  'incorrect_api_key',
  'api_key_invalid', // Google's reason.
  'api_key_expired',
  'api_key_disabled',
  'account_deactivated',
  'account_suspended',
  'consumer_suspended', // Google, for a project.
  'token_expired',
  'token_revoked',
  'unrecognizedclientexception', // Bedrock, with 403.
  'expiredtokenexception',
]);

/** Sentences with the same meaning, with 403. */
const KEY = String.raw`(?:api[ _-]?key|access[ _-]?key|subscription key|oauth token|access token|bearer token|credential|account|organization|workspace)s?`;
const WRONG = String.raw`(?:(?:no longer |not )(?:valid|active)|invalid|inactive|incorrect|revoked|disabled|deactivated|expired|deleted|suspended|reported as leaked)`;
const WHOSE = '(?:(?:the|this|your|provided) ){0,2}';
const IS = '(?:(?:is|are|was|has|have|has been|have been) )?';
const WHAT_TO_DO = String.raw`[.!]?(?: please (?:obtain a new token|use another api key|renew the api key|pass a valid api key|contact support)\.?)?`;
const isOfKey = isSentence(
  // Anthropic: "OAuth token has been revoked. Please obtain a new token."
  // Google: "Your API key was reported as leaked. Please use another API key."
  new RegExp(`${WHOSE}${KEY}(?: (?:you )?provided)? ${IS}${WRONG}(?: or ${WRONG})?${WHAT_TO_DO}`),
  new RegExp(`(?:an )?${WRONG} ${KEY}(?: provided)?${WHAT_TO_DO}`),
  /authentication failed: please make sure your api key is valid\.?/, // Bedrock
);

/**
 * Sentences with 400, a status that may also be about content of the call, such as a key for a tool. From Anthropic and
 * xAI.
 */
const isOfKeyWith400 = isSentence(
  /this organization has been disabled\.?/,
  /incorrect api key provided: [\w*-]{1,40}\. you can obtain an api key from https:\/\/console\.x\.ai\.?/,
);

/**
 * Codes and phrases of a 401 that is about the request, and so need not affect other callers with the same key.
 * Examples are an organization that the key does not belong to, or a route that it is not valid for.
 */
const CALL_CODES: ReadonlySet<string> = new Set([
  'mismatched_organization',
  'mismatched_project',
  'invalid_organization',
  'missing_scope',
  'insufficient_permissions',
]);
const CALL_TEXT =
  /insufficient permissions|missing scopes|no such organization|header should match/;

export function refusesKey({ status, fields: { codes, text, messages } }: KeyAnswer): boolean {
  if (!MAY_REFUSE_KEY.has(status)) return false;
  if ([...codes].some((code) => CALL_CODES.has(code)) || CALL_TEXT.test(text)) return false;
  if (status === 401) return true;
  if ([...codes].some((code) => KEY_CODES.has(code))) return true;
  return messages.some(status === 403 ? isOfKey : isOfKeyWith400);
}
