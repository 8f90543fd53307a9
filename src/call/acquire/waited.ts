import type { AnswerHeaders } from '../../contract/answer-headers.ts';
import type { WaitReason } from '../../core/parts/decision-log.ts';

export interface Waited {
  readonly group: string;
  readonly reason: WaitReason;
  readonly ms: number;
}

/** The longer of two waits. null if there was none. */
export function longerWait(a: Waited | null, b: Waited | null): Waited | null {
  if (a === null || b === null) return a ?? b;
  return b.ms > a.ms ? b : a;
}

/** The header with the wait reason and its group: `slots; group=openai`. */
export function waitedHeader(
  waited: Pick<Waited, 'group' | 'reason'> | null,
): Pick<AnswerHeaders, 'headgate-waited-for'> {
  if (waited === null) return {};
  return { 'headgate-waited-for': `${waited.reason.cause}; group=${waited.group}` };
}
