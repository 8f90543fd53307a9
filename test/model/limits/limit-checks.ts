import assert from 'node:assert/strict';
import type { InstantMs, LeaseId } from '../../../src/core/words/ids.ts';
import { checkInvariants } from '../../../src/core/invariants.ts';
import { isPaused } from '../../../src/core/parts/pause.ts';
import { spentIn } from '../../../src/core/parts/spend.ts';
import type { GroupState, ActiveLease } from '../../../src/core/state.ts';
import type { LimitLedger } from './limit-ledger.ts';

/**
 * Checks that the group has counted what the ledger has, call by call.
 *
 * @param awaited leases of an instance before whose holders have yet to take them up
 */
export function checkLedger(
  { controls, leases, unclaimed: orphaned }: GroupState,
  ledger: LimitLedger,
  awaited: ReadonlySet<LeaseId>,
  told: string,
  now: InstantMs,
): void {
  const { requests, tokens, reservedUsd, spentUsd } = ledger.totals();
  assert.equal(orphaned.slots, ledger.unclaimed, `${told}: unclaimed slots`);
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
  for (const id of ledger.openIds()) {
    assert.ok(leases.has(id) || awaited.has(id), `${told}: ${id} has gone, and is not settled`);
  }
}

function assertClose(actual: number, expected: number, told: string): void {
  assert.ok(Math.abs(actual - expected) < 1e-6, `${told}: ${actual} and not ${expected}`);
}

/**
 * Checks what must hold after every step, with the leases that it granted.
 *
 * @param awaited leases of an instance before whose holders have yet to take them up
 */
export function checkGranted(
  state: GroupState,
  fresh: readonly ActiveLease[],
  awaited: ReadonlySet<LeaseId>,
  told: string,
  now: InstantMs,
): void {
  const { controls, settings, slotsInUse, leases } = state;
  assert.deepEqual(checkInvariants(state, now), [], told);
  const isWithin = slotsInUse <= settings.slotsMax || fresh.length === 0 || !settings.isHard;
  assert.ok(isWithin, `${told}: granted above the limit`);
  for (const { id, scopes } of fresh) {
    for (const { limiter } of scopes) {
      const { pause, breaker } = limiter.controls;
      assert.ok(!isPaused(pause, now) || pause.probe === id, `${told}: ${id} in a paused scope`);
      assert.ok(breaker.phase !== 'open', `${told}: ${id} in a scope whose breaker is open`);
    }
  }
  const { phase, probes, served } = controls.breaker;
  const ofScopes = controls.scopes.narrower.flatMap((each) => each.breaker.probes);
  for (const id of [...probes, ...ofScopes]) {
    const isHeld = leases.has(id) && leases.get(id)?.phase !== 'cooling';
    assert.ok(isHeld || awaited.has(id), `${told}: the permit of ${id} did not come back`);
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
  for (const { breaker } of [controls, ...controls.scopes.narrower]) {
    assert.deepEqual(breaker.probes, [], 'a permit stayed behind');
  }
  for (const { key, slots, waiting } of accounts.tenants.values()) {
    assert.equal(slots + waiting, 0, `the account of ${key} drifted`);
  }
}
