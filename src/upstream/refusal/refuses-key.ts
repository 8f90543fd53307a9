import type { ErrorFields } from './error-fields.ts';

/** An answer that may say that the key of a call is not accepted. */
export interface KeyAnswer {
  readonly status: number;
  readonly fields: ErrorFields;
}

/** Statuses with which a key may be what is wrong, where a code says so. Google says 400. */
const MAY_REFUSE_KEY: ReadonlySet<number> = new Set([400, 401, 403]);

/** Codes for a key that is wrong, revoked, disabled or over. As of 2026-11-23, from the providers' error references. */
const KEY_CODES: ReadonlySet<string> = new Set([
  'invalid_api_key',
  'incorrect_api_key',
  'api_key_invalid', // Google's reason.
  'api_key_expired',
  'api_key_disabled',
  'account_deactivated',
  'account_suspended',
  'consumer_suspended', // Google's, of a project.
  'token_expired',
  'token_revoked',
  'unrecognizedclientexception', // Bedrock's, with 403.
  'expiredtokenexception',
]);

/** Words for the same, in lower case: on either side of what they are said of. */
const KEY = String.raw`(?:api[ _-]?key|access[ _-]?key|subscription key|oauth token|access token|bearer token|credential|account|organization|workspace)s?\b`;
const WRONG = String.raw`\b(?:invalid|not valid|incorrect|revoked|disabled|deactivated|expired|deleted|suspended)\b`;
const KEY_TEXT = new RegExp(`${KEY}[^.\\n]{0,60}${WRONG}|${WRONG}[^.\\n]{0,30}${KEY}`);

/**
 * Codes and words of a 401 that is about what the caller asks for, which another caller of the same key need not: an
 * organisation that the key is not of, or a route that it is not for.
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

/** Parts of a message that repeat what the caller wrote, who could say there that a key is revoked. */
const QUOTED = /(["'`]).*?\1/g;

/** Tells whether an answer says that the key of the call is not accepted, or not any more. */
export function refusesKey({ status, fields: { codes, text } }: KeyAnswer): boolean {
  if (!MAY_REFUSE_KEY.has(status)) return false;
  if ([...codes].some((code) => CALL_CODES.has(code)) || CALL_TEXT.test(text)) return false;
  if (status === 401) return true;
  if ([...codes].some((code) => KEY_CODES.has(code))) return true;
  return status === 403 && KEY_TEXT.test(text.replace(QUOTED, ''));
}
