// What is told of a pool after a reset: slots that nobody has claimed yet are a figure of their own.
import { beforeEach, describe, expect, it } from 'vitest';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { after } from '../../../src/core/words/ids.ts';
import { definitionFrom, type Definition } from '../../../src/group/definition.ts';
import { poolPreview } from '../../../src/group/observe/preview.ts';
import { poolStatus } from '../../../src/group/observe/status.ts';
import { TestGroup } from '../../support/core-builders.ts';
import { NOTHING_LATELY } from '../../../src/overview/last-hours.ts';

const CONFIG = JSON.stringify({ name: 'g', limits: { max_concurrency: 4 } });
const DEFINITION: Definition = definitionFrom(
  { version: 1, routingVersion: 1, config: CONFIG },
  null,
);

let group: TestGroup;

beforeEach(() => {
  const before = TestGroup.stored({ slotsMax: 4 });
  before.askAll('a', 'b', 'c', 'd');
  before.write();
  group = before.reset();
});

function status() {
  const waits = { wait_p50_ms: null, wait_p95_ms: null };
  const seen = {
    ...waits,
    last_hour: NOTHING_LATELY,
    passedUnlimited: 0,
    passedUnlimitedAt: null,
    idleMs: 0,
  };
  return poolStatus({ group: 'g', partition: null }, DEFINITION, group.state, seen, group.now);
}

describe('the status', () => {
  it('tells how many there are, and until when', () => {
    const until = new Date(after(group.now, LEASE_TTL_MS)).toISOString();
    expect(status()).toMatchObject({ in_use: 0, cooling: 0, unclaimed: 4, unclaimed_until: until });
  });

  it('counts one that was claimed as in use', () => {
    group.resume('a');
    expect(status()).toMatchObject({ in_use: 1, unclaimed: 3 });
  });

  it('tells no end where there are none', () => {
    group.advance(LEASE_TTL_MS);
    expect(status()).toMatchObject({ in_use: 0, unclaimed: 0, unclaimed_until: null });
  });
});

it('a preview counts calls in flight without them, and grants none of them away', () => {
  group.advance(1_000);
  group.ask('waiter');
  group.resume('a');
  const preview = poolPreview(group.state, CONFIG, CONFIG, group.now);
  expect(preview).toMatchObject({ in_use: 1, queued: 1, granted: 0 });
  const wider = JSON.stringify({ name: 'g', limits: { max_concurrency: 5 } });
  expect(poolPreview(group.state, CONFIG, wider, group.now)).toMatchObject({ granted: 1 });
});
