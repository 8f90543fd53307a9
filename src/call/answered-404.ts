import { readErrorFields } from '../upstream/refusal/error-fields.ts';
import { peekAnswer } from '../upstream/transfer/fetch-answer.ts';
import { cureAt, cureBehindV1 } from './base-url.ts';
import type { AuthenticatedCall } from './call.ts';
import type { Located } from './locate.ts';
import { rejected, type Answered, type Rejected } from './result.ts';

const QUOTED_MAX = 300;

const NOT_SERVED: ReadonlySet<number> = new Set([404, 405]);

/**
 * Words of errors about something that a call names. An upstream looks such a name up only where it serves the route.
 */
const ABOUT_A_NAME =
  /model|deployment|engine|endpoints? found|file|image|response|conversation|\bitem|thread|assistant|prompt|agent|account|organi[sz]ation|project|session|voice|adapter|\bllm\b|access to|with id|模型/i;

/** Many upstreams repeat the path in their error, and it may contain `/models/`. */
const PATHS = /\/[^\s"]*/g;

/**
 * Names the right base URL if the upstream has no such route. The answer passes unchanged if it is about a model or
 * something else that the call names, because then the upstream serves the route.
 */
export async function withCure(
  result: Answered,
  call: AuthenticatedCall,
  { upstream, path, chosenBy }: Located,
): Promise<Answered | Rejected> {
  const { status } = result.response;
  if (!NOT_SERVED.has(status) || call.early.hasBegun) return result;
  const cure = chosenBy === null ? cureAt(call, upstream, path) : cureBehindV1(call);
  if (cure === null) return result;
  const { text, answer } = await peekAnswer(result.response, undefined, call.after);
  const { message } = readErrorFields(text, answer.headers);
  // An HTML page comes from an intermediate server, so its words give no information about the route.
  const words = text.trimStart().startsWith('<') ? '' : text.replace(PATHS, '');
  if (ABOUT_A_NAME.test(words)) return { ...result, response: answer };
  answer.body?.cancel().catch(() => {});
  const quoted = message === null ? '' : ` (${message.slice(0, QUOTED_MAX)})`;
  const what = `You called \`${call.url.pathname.slice(0, 100)}\`, and upstream \`${upstream.id}\` answered ${status}${quoted}.`;
  return rejected({ reason: 'upstream_unknown', message: `${what}${cure}` });
}
