// What is told of a pool after a reset: slots that nobody has claimed yet are a figure of their own.
import { beforeEach, describe, expect, it } from 'vitest';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { after } from '../../../src/core/words/ids.ts';
import { poolPreview } from '../../../src/group/observe/preview.ts';
import { TestGroup } from '../../support/core-builders.ts';
import { CONFIG, statusOf } from './pool-status.ts';

let group: TestGroup;

beforeEach(() => {
  const before = TestGroup.stored({ slotsMax: 4 });
  before.askAll('a', 'b', 'c', 'd');
  before.write();
  group = before.reset();
});

describe('the status', () => {
  it('tells how many there are, and until when', () => {
    const until = new Date(after(group.now, LEASE_TTL_MS)).toISOString();
    expect(statusOf(group)).toMatchObject({
      in_use: 0,
      cooling: 0,
      unclaimed: 4,
      unclaimed_until: until,
    });
  });

  it('counts one that was claimed as in use', () => {
    group.resume('a');
    expect(statusOf(group)).toMatchObject({ in_use: 1, unclaimed: 3 });
  });

  it('tells no end where there are none', () => {
    group.advance(LEASE_TTL_MS);
    expect(statusOf(group)).toMatchObject({ in_use: 0, unclaimed: 0, unclaimed_until: null });
  });
});

it('a preview counts calls in flight without them, and grants none of them away', () => {
  group.advance(1_000);
  group.ask('waiter');
  group.resume('a');
  const preview = poolPreview(group.state, CONFIG, CONFIG, group.now);
  expect(preview).toMatchObject({ in_use: 1, queued: 1, granted: 0 });
  const wider = JSON.stringify(groupSchema.parse({ name: 'g', limits: { max_concurrency: 5 } }));
  expect(poolPreview(group.state, CONFIG, wider, group.now)).toMatchObject({ granted: 1 });
});
