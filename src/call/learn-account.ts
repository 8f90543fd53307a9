import { autoPlacementOf } from './plan.ts';
import type { Admission } from './acquire/admission.ts';
import { knownAccountOf, noteRevoked, noteTaken } from './identity/accounts.ts';
import type { Candidate } from './plan.ts';

/**
 * Learns the account of a call's key from the upstream's answer. An upstream knows a key if it serves its calls or
 * rate-limits them. Returns whether the account was found just now.
 */
export async function learnAccount(candidate: Candidate, answer: Response): Promise<boolean> {
  const { call, located, key, routed } = candidate;
  const { upstream } = located;
  if (answer.status === 401) noteRevoked(call, upstream, key);
  if (!answer.ok && answer.status !== 429) return false;
  return (await noteTaken(call, upstream, key, routed.account, answer)) !== null;
}

/** Moves the slot of a call to the pool of its account, which counts the call from now on. */
export function moveToAccount(
  { call, located, key, routed }: Candidate,
  admission: Admission,
): void {
  const name = knownAccountOf(located.upstream, key);
  if (name === null || routed.account?.kind !== 'unproved') return;
  const account = { kind: 'known', name, isProved: true } as const;
  const placement = autoPlacementOf(call, { ...routed, account });
  if (placement !== null) admission.moveToAccount(placement, name);
}

/** Returns whether the account of the key was found after the call was placed. */
export function hasAccountByNow({ located, key, routed }: Candidate): boolean {
  return routed.account?.kind === 'unproved' && knownAccountOf(located.upstream, key) !== null;
}
