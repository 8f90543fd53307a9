import { beforeEach, expect, test } from 'vitest';
import { PauseWaiters } from '../../../src/group/pause-waiters.ts';

const MAX = 20;

let waiters: PauseWaiters;
let answers: string[];

beforeEach(() => {
  waiters = new PauseWaiters(MAX);
  answers = [];
});

function park(name: string, sliceMs: number, now = 0): void {
  const told = async (): Promise<void> => {
    answers.push(`${name} ${await waiters.park(sliceMs, now)}`);
  };
  told().catch(expect.unreachable);
}

/** Collects the answers so far. */
async function answered(): Promise<string[]> {
  await Promise.resolve();
  await Promise.resolve();
  return answers.splice(0);
}

test('all are told when the group opens, and none of them again', async () => {
  park('a', 1_000);
  park('b', 2_000);
  waiters.open();
  expect(await answered()).toEqual(['a true', 'b true']);
  expect(waiters.isAwaited).toBe(false);
  expect(waiters.nextDueAt()).toBe(Infinity);
  waiters.answerDue(5_000);
  expect(await answered()).toEqual([]);
});

test('each is told at the end of its slice that it has not, whatever their order', async () => {
  park('long', 3_000);
  park('short', 1_000, 500);
  expect(waiters.nextDueAt()).toBe(1_500);
  waiters.answerDue(1_499);
  expect(await answered()).toEqual([]);
  waiters.answerDue(1_500);
  expect(await answered()).toEqual(['short false']);
  expect(waiters.nextDueAt()).toBe(3_000);
  waiters.answerDue(9_000);
  expect(await answered()).toEqual(['long false']);
  expect(waiters.isAwaited).toBe(false);
});

test('as many are parked as may wait in a queue, and who comes then is answered at once', async () => {
  for (let index = 0; index < MAX; index += 1) park(`call-${index}`, 1_000);
  park('late', 1_000);
  expect(await answered()).toEqual(['late false']);
  waiters.answerDue(1_000);
  expect(await answered()).toHaveLength(MAX);
  park('later', 1_000);
  expect(await answered()).toEqual([]);
});
