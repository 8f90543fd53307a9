import { readErrorFields } from '../upstream/refusal/error-fields.ts';
import { peekAnswer } from '../upstream/refusal/refused-answer.ts';
import { cureAt } from './base-url.ts';
import type { KnownCall } from './call.ts';
import type { Located } from './locate.ts';
import { rejected, type Answered, type Rejected } from './result.ts';

/** Maximum characters of the upstream's message that are quoted. */
const QUOTED_MAX = 300;

const NOT_SERVED: ReadonlySet<number> = new Set([404, 405]);

/**
 * Names the right base URL where the upstream has no such route. Its answer passes unchanged if it is about a model, because
 * then the upstream serves the route.
 */
export async function withCure(
  result: Answered,
  call: KnownCall,
  { upstream, path, chosenBy }: Located,
): Promise<Answered | Rejected> {
  const { status } = result.response;
  if (!NOT_SERVED.has(status) || chosenBy !== null || call.early.hasBegun) return result;
  const cure = cureAt(call, upstream, path);
  if (cure === null) return result;
  const { text, answer } = await peekAnswer(result.response, undefined, call.after);
  const { message } = readErrorFields(text, answer.headers);
  // Many upstreams repeat the path, in which `/models/` may stand.
  if (/\bmodel/i.test(message?.replace(/\/\S*/g, '') ?? '')) return { ...result, response: answer };
  answer.body?.cancel().catch(() => {});
  const said = message === null ? '' : ` (${message.slice(0, QUOTED_MAX)})`;
  const what = `You called \`${call.url.pathname.slice(0, 100)}\`, and the upstream ${upstream.id} answered ${status}${said}.`;
  return rejected({ reason: 'upstream_unknown', message: `${what}${cure}` });
}
