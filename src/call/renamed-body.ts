import { packingsOf } from '../upstream/body/packing.ts';
import type { AuthenticatedCall } from './call.ts';

/** Maximum size of a body that is kept to be sent under another model name. */
export const RENAMED_BYTES_MAX = 4_194_304;

/** Returns whether the body of a call could be renamed, as far as its headers show. */
export function mayBeRenamed({
  body,
  request,
}: Pick<AuthenticatedCall, 'body' | 'request'>): boolean {
  const { contentLength } = body;
  return (
    packingsOf(body.encodingIn(request.headers)) !== null &&
    contentLength !== null &&
    contentLength <= RENAMED_BYTES_MAX
  );
}
