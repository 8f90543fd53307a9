import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { after } from '../../../src/core/words/ids.ts';
import { emptyTotals } from '../../../src/core/parts/totals.ts';
import { ViolationLog } from '../../../src/group/observe/lesson-warnings.ts';
import { START } from '../../support/core-builders.ts';

const lines: unknown[] = [];

const warned: number[] = [];
let log: ViolationLog;
let { violations } = emptyTotals();

beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(JSON.parse(line)));
  lines.length = 0;
  warned.length = 0;
  ({ violations } = emptyTotals());
  log = new ViolationLog({ group: 'g', partition: 'p' }, (all) => warned.push(all.above_mark));
});

afterEach(() => vi.restoreAllMocks());

const line = (invariant: string, count: number) => ({
  event: 'invariant_violated',
  level: 'error',
  group: 'g',
  partition: 'p',
  invariant,
  violations: count,
});

it('tells nothing of a pool that keeps its promises', () => {
  log.note(violations, START);
  expect([lines, warned]).toEqual([[], []]);
});

it('tells each invariant by itself, and whoever warns', () => {
  violations.above_mark = 1;
  violations.settled_twice = 2;
  log.note(violations, START);
  expect(lines).toEqual([line('above_mark', 1), line('settled_twice', 2)]);
  expect(warned).toEqual([1, 1]);
});

it('tells one of them once a second at the most, and with the next line what came meanwhile', () => {
  for (let ms = 0; ms < 1_000; ms += 100) {
    violations.above_mark += 1;
    log.note(violations, after(START, ms));
  }
  expect(lines).toEqual([line('above_mark', 1)]);
  violations.granted_twice = 1;
  log.note(violations, after(START, 999));
  expect(lines.at(-1)).toEqual(line('granted_twice', 1));
  log.note(violations, after(START, 1_000));
  expect(lines.at(-1)).toEqual(line('above_mark', 9));
  log.note(violations, after(START, 5_000));
  expect(lines).toHaveLength(3);
});
