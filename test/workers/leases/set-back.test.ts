// Leases over HTTP when the wall clock is set back: the clocks of Worker and pool differ from then on by the step.
import { afterAll, expect, it } from 'vitest';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { steadyClock } from '../../../src/runtime/async.ts';
import { heldBy, nothingLeaks, pool, request, resetPool } from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { del, group, leased, limitTo, put } from './scene.ts';

/** More than a lease lasts. */
const STEP_MS = 60_000;

/** Maximum duration of the requests of a test. */
const TAKEN_MS = 20_000;

afterAll(nothingLeaks);

/** Sets the wall clock back, and has the Worker notice, whose clock goes on from where it was. */
function setBack(): void {
  steadyClock.now();
  passTime(-STEP_MS);
  steadyClock.now();
}

function expectWholeTtl(answer: {
  readonly expires_at: string;
  readonly expires_after_ms: number;
  readonly renew_within_ms: number;
}): void {
  expect(answer.expires_after_ms).toBeGreaterThan(LEASE_TTL_MS - TAKEN_MS);
  expect(answer.expires_after_ms).toBeLessThan(LEASE_TTL_MS + TAKEN_MS);
  expect(answer.renew_within_ms).toBeGreaterThan(5_000);
  // By the clock on the wall, which its reader has as well.
  const leftMs = Date.parse(answer.expires_at) - Date.now();
  expect(leftMs).toBeGreaterThan(LEASE_TTL_MS - TAKEN_MS);
  expect(leftMs).toBeLessThanOrEqual(LEASE_TTL_MS);
}

it('a lease of an unused group lasts one TTL, and so does its renewal', async () => {
  await limitTo([group('back-new', 1)]);
  setBack();
  const lease = await leased({ group: 'back-new' });
  expectWholeTtl(lease);
  const renewed = await put(lease.lease);
  expect(renewed).toMatchObject({ status: 200 });
  expectWholeTtl(renewed.body);
  await del(renewed.body.lease);
});

it('a lease that is renewed in time outlives every reset of its pool', async () => {
  await limitTo([group('back-reset', 1)]);
  let { lease } = await leased({ group: 'back-reset' });
  setBack();
  for (let resets = 0; resets < 3; resets += 1) {
    const renewed = await put(lease);
    expect(renewed).toMatchObject({ status: 200 });
    expectWholeTtl(renewed.body);
    ({ lease } = renewed.body);
    await resetPool('back-reset');
  }
  expect(await put(lease)).toMatchObject({ status: 200 });
  expect(await pool('back-reset').leases()).toHaveLength(1);
  await del(lease);
});

it('a pool tells a holder that names no instant when a lease expires by its own clock', async () => {
  await limitTo([group('back-unnamed', 1)]);
  setBack();
  const asked = request('back-unnamed', 'a', { isById: true, kind: 'lease' });
  const answer = await pool('back-unnamed').acquire(asked);
  if (answer.kind !== 'granted') throw new Error(answer.kind);
  const { expiresAt = 0, leaseId } = answer;
  expect(expiresAt - Date.now()).toBeLessThanOrEqual(LEASE_TTL_MS);
  const held = heldBy('back-unnamed', answer, { isById: true, kind: 'lease' });
  const renewed = await pool('back-unnamed').renew(leaseId, null, held);
  if (renewed.kind !== 'ok') throw new Error(renewed.kind);
  expect(renewed.expiresAt - Date.now()).toBeLessThanOrEqual(LEASE_TTL_MS);
  expect(renewed.expiresAt).toBeGreaterThan(Date.now());
  await pool('back-unnamed').release(leaseId, 'unused', null, undefined, held);
});
