import { expect, test } from 'vitest';
import { configSchema } from '../../../src/contract/config/config.ts';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { ownSecretsOf } from '../../../src/directory/changes.ts';
import { BREAKER_DEFAULTS } from '../../../src/core/words/settings.ts';
import { definitionFrom, settingsOf } from '../../../src/group/definition.ts';
import { WAITERS_MAX_CLOUDFLARE, waitersMax } from '../../../src/group/parked.ts';

function settingsFrom(config: unknown) {
  const pushed = {
    version: 3,
    routingVersion: 3,
    config: JSON.stringify(groupSchema.parse(config)),
  };
  return settingsOf(definitionFrom(pushed, null), 1_000);
}

test('a group and its members go by its breaker and its probes', () => {
  const breaker = {
    threshold: 0.2,
    min_calls: 3,
    window_ms: 9_000,
    hold_ms: 700,
    hold_max_ms: 800,
  };
  const members = [{ upstream: 'openai' }];
  const { members: of, ...settings } = settingsFrom({ name: 'a', breaker, probe: 'off', members });
  const expected = {
    breaker: { failedShare: 0.2, callsMin: 3, windowMs: 9_000, openMs: 700, openMsMax: 800 },
    probesPauses: false,
  };
  expect(settings).toMatchObject(expected);
  expect(of[0]).toMatchObject(expected);
  expect(settingsFrom({ name: 'a', breaker: { threshold: null } }).breaker.failedShare).toBe(
    Infinity,
  );
  const { breaker: usual, probesPauses } = settingsFrom({ name: 'a' });
  expect([usual, probesPauses]).toEqual([BREAKER_DEFAULTS, true]);
});

test('no more calls may wait than the object has room for, whatever is configured', () => {
  const longest = (max_length: number, env: { readonly BOOT_ID?: string }): number => {
    const config = JSON.stringify(groupSchema.parse({ name: 'a', queue: { max_length } }));
    const definition = definitionFrom({ version: 3, routingVersion: 3, config }, null);
    return settingsOf(definition, waitersMax(env)).queueLengthMax;
  };
  expect(longest(5_000, {})).toBe(WAITERS_MAX_CLOUDFLARE);
  expect(longest(5_000, { BOOT_ID: 'a-process' })).toBe(5_000);
  expect(longest(30, {})).toBe(30);
});

test('reservations of lanes and tenants are told apart', () => {
  const reserved = { acme: 2, 'lane:high': 1 };
  expect(settingsFrom({ name: 'a', fairness: { reserved } })).toMatchObject({
    reserved: { acme: 2 },
    reservedLanes: { high: 1 },
  });
});

test('shares between callers, and between the agents of each', () => {
  expect(settingsFrom({ name: 'a' }).byAgent).toBe(true);
  const assumed = { slotsMax: 64, source: 'unknown' } as const;
  expect(settingsOf(definitionFrom(null, assumed), 1_000).byAgent).toBe(true);
  expect(settingsFrom({ name: 'a', fairness: { by: ['caller'] } }).byAgent).toBe(false);
});

test('what is set of an automatic group holds with the limit of its table, and without one', () => {
  const assumed = { slotsMax: 64, source: 'unknown' } as const;
  const pushed = { version: 3, routingVersion: 3, config: null };
  const settings = (set: object, limit: typeof assumed | null) =>
    settingsOf(definitionFrom({ ...pushed, ...set }, limit), 1_000);
  expect(settings({ paused: true }, assumed)).toMatchObject({
    slotsMax: 64,
    paused: true,
    isDraining: false,
  });
  expect(settings({ draining: true }, null)).toMatchObject({ paused: false, isDraining: true });
  expect(settings({}, assumed)).toMatchObject({ paused: false, isDraining: false });
});

test("a member with the upstream's own key is where calls ran before, whether it names that key or not", () => {
  const { upstreams } = configSchema.parse({
    upstreams: [
      { id: 'ours', base_url: 'https://ours.test/v1', auth: { secret: 'UPSTREAM_OURS' } },
    ],
  });
  const members = [
    { name: 'named', upstream: 'ours', secret: 'UPSTREAM_OURS' },
    { name: 'unsaid', upstream: 'ours' },
    { name: 'other', upstream: 'ours', secret: 'UPSTREAM_OTHER' },
    { name: 'keyless', upstream: 'groq' },
  ];
  const group = groupSchema.parse({ name: 'a', members });
  const ownSecrets = ownSecretsOf({ upstreams }, group);
  const pushed = { version: 3, routingVersion: 3, config: JSON.stringify(group), ownSecrets };
  const made = settingsOf(definitionFrom(pushed, null), 1_000).members;
  expect(made.map(({ succeeds }) => succeeds)).toEqual(['ours', 'ours', null, 'groq']);
  // The same place under whatever name.
  const [named, unsaid, ...others] = made.map(({ place }) => place);
  expect(named).toBe(unsaid);
  expect(new Set([named, ...others]).size).toBe(3);
});
