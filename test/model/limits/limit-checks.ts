import assert from 'node:assert/strict';
import type { InstantMs } from '../../../src/core/words/ids.ts';
import { checkInvariants } from '../../../src/core/invariants.ts';
import { spentIn } from '../../../src/core/parts/spend.ts';
import type { GroupState, Lease } from '../../../src/core/state.ts';
import type { LimitLedger } from './limit-ledger.ts';

/** Checks that the group has counted what the ledger has, call by call. */
export function checkLedger(
  { controls, leases }: GroupState,
  ledger: LimitLedger,
  told: string,
  now: InstantMs,
): void {
  const { requests, tokens, reservedUsd, spentUsd } = ledger.totals();
  const sum = (name: 'rpd' | 'tpd'): number =>
    (controls.rates.windows[name]?.bins ?? []).reduce((total, [, amount]) => total + amount, 0);
  assert.equal(sum('rpd'), requests, `${told}: requests`);
  assert.equal(sum('tpd'), tokens, `${told}: tokens`);
  // A price is dollars by tokens, and so a fraction.
  assertClose(controls.spend.reservedUsd, reservedUsd, `${told}: dollars in flight`);
  assertClose(spentIn(controls.spend.total, 'month', now), spentUsd, `${told}: dollars`);
  for (const { id, reserved } of leases.values()) {
    assert.equal(reserved !== null, ledger.isOpen(id), `${told}: ${id} is settled or not`);
  }
}

function assertClose(actual: number, expected: number, told: string): void {
  assert.ok(Math.abs(actual - expected) < 1e-6, `${told}: ${actual} and not ${expected}`);
}

/** Checks what must hold after every step, with the leases that it granted. */
export function checkGranted(
  state: GroupState,
  fresh: readonly Lease[],
  told: string,
  now: InstantMs,
): void {
  const { controls, settings, slotsInUse, leases } = state;
  assert.deepEqual(checkInvariants(state, now), [], told);
  const isWithin = slotsInUse <= settings.slotsMax || fresh.length === 0 || !settings.isHard;
  assert.ok(isWithin, `${told}: granted above the limit`);
  const { phase, probes, served } = controls.breaker;
  for (const id of probes) {
    const isHeld = leases.has(id) && leases.get(id)?.phase !== 'cooling';
    assert.ok(isHeld, `${told}: the permit of ${id} did not come back`);
  }
  if (phase !== 'half_open') return;
  assert.ok(probes.length <= (served === 0 ? 1 : 3), `${told}: too many probes`);
  const arePermitted = fresh.every(({ id }) => probes.includes(id));
  assert.ok(arePermitted, `${told}: granted without a permit`);
}

/** Checks that nothing is left once everybody has gone. */
export function checkRest({ controls, accounts, ...state }: GroupState): void {
  const { slotsInUse, slotsByLane, slotsCooling, slotsWaitingElsewhere, slotsRefused } = state;
  const sums = [slotsInUse, slotsCooling, slotsWaitingElsewhere, slotsRefused];
  assert.deepEqual([...sums, ...Object.values(slotsByLane)], [0, 0, 0, 0, 0, 0, 0], 'slots stayed');
  assertClose(controls.spend.reservedUsd, 0, 'dollars stayed set aside');
  assert.deepEqual(controls.breaker.probes, [], 'a permit stayed behind');
  for (const { key, slots, waiting } of accounts.tenants.values()) {
    assert.equal(slots + waiting, 0, `the account of ${key} drifted`);
  }
}
