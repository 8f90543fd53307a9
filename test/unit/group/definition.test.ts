import { expect, test } from 'vitest';
import { groupSchema } from '../../../src/contract/config.ts';
import { definitionFrom, settingsOf } from '../../../src/group/definition.ts';

function settingsFrom(config: unknown) {
  const pushed = { version: 3, routingVersion: 3, config: JSON.stringify(config) };
  return settingsOf(definitionFrom(pushed, null));
}

test('a definition that an older release stored gets the defaults of newer fields', () => {
  const {
    queue,
    fairness: _,
    draining: __,
    dry_run: ___,
    ...old
  } = groupSchema.parse({ name: 'a' });
  const { max_length, timeout_ms } = queue;
  const stored = { ...old, queue: { max_length, timeout_ms } };
  expect(settingsFrom(stored)).toEqual(settingsFrom({ name: 'a' }));
});

test('a definition that a newer release stored is taken as it is', () => {
  const newer = { ...groupSchema.parse({ name: 'a', paused: true }), colour: 'red' };
  expect(settingsFrom(newer).paused).toBe(true);
});

test('reservations of lanes and tenants are told apart', () => {
  const reserved = { acme: 2, 'lane:high': 1 };
  expect(settingsFrom({ name: 'a', fairness: { reserved } })).toMatchObject({
    reserved: { acme: 2 },
    reservedLanes: { high: 1 },
  });
});
