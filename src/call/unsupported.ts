import type { ErrorReply } from '../contract/reasons.ts';
import type { Caller } from './identity/authenticate.ts';

/** The error reply to a call that no upstream could serve. null for other calls. */
export function unsupported({ credentials }: Caller): ErrorReply | null {
  if (!credentials.sigV4) return null;
  const message =
    'A call signed with SigV4 is bound to its host, so Headgate cannot forward it. Use a Bedrock API key as a bearer token instead.';
  return { reason: 'key_invalid', message };
}
