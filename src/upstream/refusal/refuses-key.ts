import type { ErrorFields } from './error-fields.ts';
import { isSentence } from './own-words.ts';

export interface KeyAnswer {
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
