/// <reference types="vite/types/importMeta.d.ts" />
// docs/limits.md has a table of what providers do, what Headgate does, and what the caller sees. Each row is either
// provoked here and compared with its text, or listed below with the test that covers it.
import { afterAll, describe, expect, it } from 'vitest';
import page from '../../../docs/limits.md?raw';
import { nothingLeaks } from '../support/pool.ts';
import { until } from '../support/worker.ts';
import { newStage, pausedMs, send, statusOf, reportedBy, type LimitsStage } from './stage.ts';

afterAll(nothingLeaks);

interface DocumentedRow {
  readonly did: string;
  readonly kinds: readonly string[];
  readonly headgate: string;
  readonly sees: string;
}

const HEAD = '| what the provider did | kind | what Headgate does | what the caller sees |';

const [table = ''] = page.slice(page.indexOf(HEAD)).split('\n\n');

const ROWS: readonly DocumentedRow[] = table
  .split('\n')
  .slice(2)
  .map((line) => {
    const [, did = '', kind = '', headgate = '', sees = ''] = line
      .split(' | ')
      .join('|')
      .split('|');
    const kinds = [...kind.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
    const [begin = ''] = did.split(/[:(]/);
    return { did: begin.trim(), kinds, headgate, sees };
  });

function rowOf(begin: string): DocumentedRow {
  const row = ROWS.find(({ did }) => did.startsWith(begin));
  if (row === undefined) throw new Error(`no row begins with: ${begin}`);
  return row;
}

/** Rows that a single failed call provokes, with the failure to request from the strict upstream. */
const PROVOKED: Readonly<Record<string, readonly string[]>> = {
  "Refuses the Worker's address": ['egress'],
  'Reports an empty account': ['quota'],
  'Cannot serve this call': ['never_fits'],
  'Reports that a daily limit or a plan is used up': ['long_window'],
  'Reports too many concurrent calls': ['concurrency'],
  'Has no capacity': ['overload'],
  'Asks for slower growth': ['ramp'],
  'Reports that a limit per minute is used up': ['requests', 'tokens'],
  Fails: ['error'],
};

/** Rows that need more than one failed call, with the tests that cover them. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'Refuses a [member]': 'workers/proxy/members-refused',
  'Returns 429 without a cause': 'workers/limits/wire-forms',
  'Returns such a refusal [inside a 200]': 'workers/proxy/refused-inside',
  'Ends a stream with an error': 'workers/proxy/refused-inside',
  'Refuses one model, tier or key': 'workers/limits/scopes',
  'Compresses the refusal': 'workers/proxy/packings',
  'Asks for a wait of more than 15 minutes': 'unit/core/limits/long-pauses',
  'Reports a nearly empty limit': 'workers/limits/feed-forward',
  'Accepts a call but sends no content': 'workers/spill/slow',
};

const FILES = Object.keys(import.meta.glob('/test/{unit,workers}/**/*.{test,slow}.ts'));

async function settled(stage: LimitsStage) {
  await until(async () => expect((await statusOf(stage)).in_use).toBe(0));
  const status = await statusOf(stage);
  return { isPaused: pausedMs(status) > 0, effective: status.limit.effective ?? 0, status };
}

describe('a row of the table', () => {
  it.each(Object.entries(PROVOKED))('%s: its text holds', async (begin, failures) => {
    const { kinds, headgate, sees } = rowOf(begin);
    expect(kinds).toEqual(failures.toSorted((a, b) => kinds.indexOf(a) - kinds.indexOf(b)));
    for (const failure of failures) {
      const stage = await newStage();
      await stage.strict.failNext(failure);
      const reported = await reportedBy(send(stage, 'one'));
      // The first status of the cell.
      expect(String(reported.status)).toBe(/`(\d{3})`/.exec(sees)?.[1]);
      expect(reported.shouldRetry === 'false').toBe(sees.includes('`x-should-retry: false`'));
      expect(reported.tries).toBe(sees.includes('a later answer') ? '2' : '1');
      const { status, effective } = await settled(stage);
      expect(status.refusals_total).toEqual({ [failure]: 1 });
      expect(effective).toBe(headgate.includes('to 70 %') ? 5 : 8);
    }
  });

  it.each([
    'Reports that a daily limit or a plan is used up',
    'Asks for slower growth',
    'Reports that a limit per minute is used up',
  ])('%s: it pauses the group', async (begin) => {
    const { kinds, headgate } = rowOf(begin);
    expect(headgate).toMatch(/\bpauses\b/);
    const stage = await newStage();
    const headers = {
      'x-strict-fail': kinds[0] ?? '',
      'x-strict-fail-wait-ms': '3600000',
      'headgate-max-wait': '0',
    };
    await reportedBy(send(stage, 'one', { headers }));
    expect((await settled(stage)).isPaused).toBe(true);
    const { sees } = rowOf('Refuses calls for longer than a caller can wait');
    const next = await reportedBy(send(stage, 'next', { headers: { 'headgate-max-wait': '0' } }));
    expect([String(next.status), next.reason]).toEqual(
      [...sees.matchAll(/`(\w+)`/g)].slice(0, 2).map(([, word]) => word),
    );
  });

  it('every row has a test', () => {
    const tested = [
      ...Object.keys(PROVOKED),
      ...Object.keys(ELSEWHERE),
      'Refuses calls for longer than a caller can wait',
    ];
    expect(ROWS.filter(({ did }) => !tested.some((begin) => did.startsWith(begin)))).toEqual([]);
    expect(ROWS).toHaveLength(tested.length);
    const isMissing = (name: string) => !FILES.some((file) => file.startsWith(`/test/${name}.`));
    expect(Object.values(ELSEWHERE).filter(isMissing)).toEqual([]);
  });
});
