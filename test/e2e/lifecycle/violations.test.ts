// Every test that starts a Headgate fails if it says in its log that it broke an invariant.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ensureBuilt } from '../../../scripts/serve/build.ts';
import { takeViolations } from '../../support/violations.ts';
import { openChat } from '../support/lifecycle-call.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

const BREAKING = `
const { note: headgateNote } = ViolationLog.prototype;
ViolationLog.prototype.note = function (violations, ...rest) {
  violations.settled_twice = 1;
  return headgateNote.call(this, violations, ...rest);
};
`;

async function breakingWorker(folder: string): Promise<string> {
  const path = join(folder, 'breaking-worker.js');
  await writeFile(path, `${await readFile(await ensureBuilt(), 'utf8')}\n${BREAKING}`);
  return path;
}

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
