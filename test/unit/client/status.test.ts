import { expectTypeOf, test } from 'vitest';
import type { Status } from '../../../packages/client/src/index.ts';
import type { CallerStatus } from '../../../src/contract/caller-status.ts';

test('what the client says of the status is what Headgate tells', () => {
  expectTypeOf<CallerStatus>().toExtend<Status>();
});
