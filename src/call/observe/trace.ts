import { tracing } from 'cloudflare:workers';
import type { Settlement } from '../../core/words/ticket.ts';
import { logEvent } from '../../runtime/log.ts';
import { steadyClock } from '../../runtime/async.ts';
import type { Located } from '../request/locate.ts';
import type { Candidate } from '../plan/plan.ts';

/** The span attributes of a call, and a log line about refused locations. */

/** Maximum length of a model in a trace, because callers choose the name. */
export const TRACED_MODEL_MAX = 100;

/** The attributes of a call in the platform's trace, under OpenTelemetry's GenAI names where those exist. */
interface Traced {
  readonly located: Located;
  readonly groups: string;
  /** The member of its group that served it. null if it had none. */
  readonly member: string | null;
  readonly waitMs: number;
  readonly attempts: number;
}

/** Sets the attributes of a call on the platform's span. Does nothing if the request is not traced. */
export function traceCall({ located, groups, member, waitMs, attempts }: Traced): void {
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

/** Minimum interval between two lines about the same upstream, because all calls to it are refused alike. */
const SILENT_MS = 60_000;

const WHAT_TO_SET =
  'A Worker sends calls from a location near its caller. Set [placement] in wrangler.toml to a region that this upstream serves, or set base_url to a gateway that it serves, and deploy. See docs/production.md, "Region and placement".';

/** When each upstream was last logged by this isolate. */
const reportedAt = new Map<string, number>();

/** Logs that an upstream serves no calls from this location, with the location and what to set. */
export function logEgressRefused(
  { call: { request }, located: { upstream } }: Candidate,
  answer: Response | null,
): void {
  const now = steadyClock.now();
  if (now - (reportedAt.get(upstream.id) ?? -Infinity) < SILENT_MS) return;
  reportedAt.set(upstream.id, now);
  const colo = request.cf?.colo;
  logEvent('upstream_refused_egress', {
    upstream: upstream.id,
    status: answer?.status ?? null,
    // Cloudflare locations: where the caller's request arrived, and from where the call left if it went through
    // Cloudflare.
    colo: typeof colo === 'string' ? colo : null,
    upstream_colo: /-([A-Z]{3})$/.exec(answer?.headers.get('cf-ray') ?? '')?.[1] ?? null,
    set: WHAT_TO_SET,
  });
}
