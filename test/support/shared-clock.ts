// Set-up of the unit tests, which share a process and with it the clock of the isolate.
import { beforeEach } from 'vitest';
import { steadyClock } from '../../src/runtime/async.ts';

/** More than the step back that the clock waits out. */
const STEP_MS = 2_000;

// The virtual time of the test before may have ended a little later than now. The clock would stand still until then, and
// waits would take longer. After a larger step it goes on at once.
beforeEach(() => {
  steadyClock.reach(steadyClock.now() + STEP_MS);
  steadyClock.now();
});
