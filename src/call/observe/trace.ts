import { tracing } from 'cloudflare:workers';
import type { Settlement } from '../../core/words/ticket.ts';
import type { Located } from '../locate.ts';

/** Maximum length of a model in a trace, because callers choose the name. */
export const TRACED_MODEL_MAX = 100;

/** The attributes of a call in the platform's trace, under OpenTelemetry's GenAI names where those exist. */
export interface Traced {
  readonly located: Located;
  readonly groups: string;
  /** The member of its group that served it. null if it had none. */
  readonly member: string | null;
  readonly waitMs: number;
  readonly tries: number;
}

/** Sets the attributes of a call on the platform's span. Does nothing if the request is not traced. */
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

/** Sets the usage of a call, if its upstream reported it and a group counts it. */
export function traceUsage(usedBy: () => Settlement['seen']): void {
  const span = tracedSpan();
  const used = span === undefined ? null : usedBy();
  if (used === null) return;
  span?.setAttributes({
    'gen_ai.usage.input_tokens': used.inputTokens,
    'gen_ai.usage.output_tokens': used.outputTokens,
  });
}

/** Sets why a call failed: the kind of its upstream's refusal, or one of Headgate's reasons. */
export function traceError(type: string): void {
  tracedSpan()?.setAttribute('error.type', type);
}

/** The span of the request. undefined if it is not traced, as most are not, so that no attributes are computed. */
function tracedSpan() {
  const span = tracing.getActiveSpan();
  return span?.isTraced === true ? span : undefined;
}
