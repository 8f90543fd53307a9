import type { ErrorReply } from '../contract/reasons.ts';
import type { Caller } from './identity/authenticate.ts';

/** The error reply to a call that no upstream could do anything about; null: it is none of those. */
export function unsupported({ credentials }: Caller): ErrorReply | null {
  if (!credentials.sigV4) return null;
  const message =
    'A call signed with SigV4 is bound to its host, so it cannot pass through another one. Use a Bedrock API key as a bearer token instead.';
  return { reason: 'key_invalid', message };
}
