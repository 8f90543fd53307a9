import { TRACED_MODEL_MAX } from './observe/trace.ts';
import type { UpstreamRefusal } from '../upstream/refusal/classify-refusal.ts';
import type { Admission } from './acquire/admission.ts';
import { CallNamesReader } from './call-names.ts';
import type { Candidate } from './plan.ts';
import type { Sending } from './sending.ts';

/** The fields of a refusal in the log, with the model if it was read. `status` is null if there was no answer. */
export function refusalFields(
  { candidate, admission }: Sending,
  { signal: { kind, retryAfterMs } }: UpstreamRefusal,
  status: number | null,
): Readonly<Record<string, string | number | null>> {
  const { located, member } = candidate;
  const model = new CallNamesReader(candidate).model?.slice(0, TRACED_MODEL_MAX) ?? null;
  return {
    upstream: located.upstream.id,
    model,
    groups: groupsOf(admission),
    ...(member !== null && { member: member.id }),
    status,
    kind,
    retry_after_ms: retryAfterMs,
    // Names from OpenTelemetry's GenAI conventions, so that logs can be joined with traces.
    'gen_ai.provider.name': located.upstream.id,
    'gen_ai.request.model': model,
    'error.type': kind,
  };
}

export function placeOf({
  located,
  members,
  member,
}: Pick<Candidate, 'located' | 'members' | 'member'>): string {
  return member === null ? located.upstream.id : `${members?.group ?? ''}#${member.id}`;
}

export function groupsOf({ placements }: Admission): string {
  return placements.map(({ group }) => group).join(', ');
}
