// The types of the client's `status()` have what `GET /status` says of stopped calls.
import { expect, expectTypeOf, it } from 'vitest';
import type { CallScope, Status } from '../../../packages/client/src/index.ts';
import {
  callerStatusSchema,
  type CallerGroup,
  type CallerStatus,
} from '../../../src/contract/caller-api.ts';
import type { Frozen } from '../../../src/contract/shared-shapes.ts';

type Stopped = 'paused_until' | 'pause_message' | 'about' | 'scopes';

const ABOUT = { model: 'pro', service_tier: null, credential: null };
const UNTIL = '2026-11-27T10:00:00.000Z';

it('the calls that a pause is about, and further scopes, have types', () => {
  expectTypeOf<CallerStatus>().toExtend<Status>();
  expectTypeOf<Pick<Status['groups'][number], Stopped>>().toEqualTypeOf<
    Frozen<Pick<CallerGroup, Stopped>>
  >();
  const status: Status = callerStatusSchema.parse({
    at: UNTIL,
    key: { id: 'k', kind: 'gateway', lane_max: 'normal', weight: 1, expires_at: null },
    may_use: ['g'],
    groups: [
      {
        name: 'g',
        kind: 'configured',
        partition: null,
        limits: { slots: 1, slots_each: null, slots_each_agent: null, rates: {}, budget_usd: {} },
        paused: false,
        paused_until: UNTIL,
        about: ABOUT,
        scopes: [{ about: { ...ABOUT, model: 'flash' }, paused_until: UNTIL }],
        draining: false,
        in_flight: 0,
        slots_in_use: 0,
        waiting: [],
      },
    ],
    refusals: [],
    left_out: 0,
    unreachable: [],
  });
  const [group] = status.groups;
  const all: (CallScope | undefined)[] = [group?.about, group?.scopes?.[0]?.about];
  expect(all.map((scope) => scope?.model)).toEqual(['pro', 'flash']);
});
