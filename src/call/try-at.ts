import { changedSince } from './changed-since.ts';
import { forward } from './forward.ts';
import { hasAccountByNow } from './learn-account.ts';
import { measure } from './metering.ts';
import { passThrough } from './pass-through.ts';
import { forbiddenAt, type Candidate } from './plan.ts';
import { never, rejected, type Result } from './result.ts';
import { targetOf } from './target.ts';
import type { Turn } from './tries.ts';
import { admitWithBody } from './wait-with-body.ts';

/** Sends a call to its upstream, after it has waited for its slot if it needs one. */
export async function tryAt(candidate: Candidate, turn: Turn): Promise<Result> {
  const { call, located, rules } = candidate;
  const target = targetOf(candidate);
  // What may come behind comments of ours cannot be compressed.
  if (turn.listener !== null) target.headers.set('accept-encoding', 'identity');
  const forbidden = forbiddenAt(candidate);
  if (forbidden !== null) return (await changedSince(call)) ?? rejected(forbidden);
  if (!located.operation.limited) {
    return (await changedSince(call)) ?? passThrough(call, located, target);
  }
  const measured = rules.isMetered ? await measure(call, located) : null;
  if (measured !== null && measured.kind !== 'measured') return measured;
  const metering = measured?.metering ?? null;
  // Tokens are counted on their way through, which compressed ones are not.
  if (metering !== null) target.headers.set('accept-encoding', 'identity');
  const { listener } = turn;
  const admitted = await admitWithBody(candidate, turn, { ...call, listener, metering });
  switch (admitted.kind) {
    case 'admitted': {
      const { admission } = admitted;
      if (hasAccountByNow(candidate)) {
        await admission.release('unused');
        return { kind: 'moved', configVersion: call.table.snapshot.version };
      }
      try {
        return await forward({ candidate, turn, target, metering, admission });
      } catch (error) {
        await admission.release('failed'); // a bug of ours must not cost a slot
        throw error;
      }
    }
    case 'moved':
    case 'rejected':
    case 'left':
      return admitted;
    default:
      return never(admitted);
  }
}
