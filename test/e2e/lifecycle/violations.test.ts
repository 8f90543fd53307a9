// Every test that starts a Headgate fails if it says in its log that it broke an invariant.
import { expect, it } from 'vitest';
import { takeViolations } from '../../support/violations.ts';
import { changedWorker } from '../support/changed-worker.ts';
import { openChat } from '../support/lifecycle-call.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

const breakingWorker = changedWorker(
  'group/observe/lesson-warnings.ts',
  'ViolationLog',
  `const { note } = ViolationLog.prototype;
ViolationLog.prototype.note = function (violations, ...rest) {
  violations.settled_twice = 1;
  return note.call(this, violations, ...rest);
};
`,
);

it('a line of the log is found, whoever reads it', async () => {
  const stage = await startStage({ config: practiceConfig(1), module: breakingWorker });
  try {
    const call = openChat(stage.url(), { label: 'breaking' });
    expect(await call.answered).toBe(200);
    await call.ended;
    await until('the log tells it', () => stage.logs().includes('invariant_violated'));
  } finally {
    await stage.close();
  }
  expect(takeViolations()[0]).toContain('"invariant":"settled_twice"');
});
