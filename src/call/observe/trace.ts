import { tracing } from 'cloudflare:workers';
import type { Settlement } from '../../core/words/usage.ts';
import type { Located } from '../locate.ts';

/** Maximum length of a model in a trace: a caller may call it whatever it likes. */
export const TRACED_MODEL_MAX = 100;

/** Things that the platform's trace says of a call, by OpenTelemetry's GenAI conventions where they have a name. */
export interface Traced {
  readonly located: Located;
  readonly groups: string;
  /** The member of its group that it ran at; null: it went as called. */
  readonly member: string | null;
  readonly waitMs: number;
  readonly tries: number;
}

/** Notes on the platform's span what a call is. Where nobody traces it, nothing happens. */
export function traceCall({ located, groups, member, waitMs, tries: attempts }: Traced): void {
  tracedSpan()?.setAttributes({
    'gen_ai.operation.name': located.operation.name,
    'gen_ai.provider.name': located.upstream.id,
    'gen_ai.request.model': located.model?.slice(0, TRACED_MODEL_MAX),
    'headgate.groups': groups,
    'headgate.member': member ?? undefined,
    'headgate.wait_ms': waitMs,
    'headgate.tries': attempts,
  });
}

/** Notes what a call has used, where its upstream said so and a group counts it. */
export function traceUsage(usedBy: () => Settlement['seen']): void {
  const span = tracedSpan();
  const used = span === undefined ? null : usedBy();
  if (used === null) return;
  span?.setAttributes({
    'gen_ai.usage.input_tokens': used.inputTokens,
    'gen_ai.usage.output_tokens': used.outputTokens,
  });
}

/** Notes why a call failed: the kind of its upstream's refusal, or one of our reasons. */
export function traceError(type: string): void {
  tracedSpan()?.setAttribute('error.type', type);
}

/** The span of the request; undefined: most requests are not traced, and need not be put into words. */
function tracedSpan() {
  const span = tracing.getActiveSpan();
  return span?.isTraced === true ? span : undefined;
}
