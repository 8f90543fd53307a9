// Freezes `/metrics`: the name and type of each metric, its labels, their values except for names that operators
// choose, and the bounds of buckets. Also freezes the response of the Worker for each reason.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { REASON_NAMES } from '../../../src/contract/reasons.ts';
import type { LeaseOutcome } from '../../../src/core/words/outcome.ts';
import { SERVED, type RefusalKind } from '../../../src/core/words/signal.ts';
import { goldenFile, goldenText } from '../../support/golden.ts';
import { parseExposition, type ParsedFamily } from '../../unit/metrics/exposition-parser.ts';
import { haveEveryMetric } from '../metrics/scene.ts';
import { CUTS, OUTCOMES, REFUSAL_KINDS } from '../metrics/words.ts';
import { prepareReasons, ROWS } from '../refusals/rows.ts';
import { take } from '../support/pool.ts';
import { call, until } from '../support/worker.ts';

/** Labels whose values are names that operators choose. */
const NAMES: ReadonlySet<string> = new Set([
  'group',
  'partition',
  'member',
  'key',
  'team',
  'upstream',
]);

const WARNINGS = 'headgate_warnings_total';

/** Warnings that depend on how long calls wait, and therefore on the speed of the machine. */
const TIMED: ReadonlySet<string> = new Set(['near_limit', 'queue_growing', 'wait_long']);

const KINDS = Object.keys(REFUSAL_KINDS) as RefusalKind[];

/** Far more than an isolate waits with a report. */
const QUIET_MS = 2_500;

/** Keeps each case on one line. */
const LINE_MAX = 1_000;

interface AnswerShape {
  readonly type: string;
  readonly samples: Set<string>;
  readonly labels: Map<string, Set<string>>;
}

const shapes = new Map<string, AnswerShape>();

beforeAll(() => {
  vi.spyOn(console, 'log').mockImplementation(() => {});
});

afterAll(() => {
  vi.restoreAllMocks();
});

it('collects metrics of calls that end in every way', async () => {
  const limits = { max_concurrency: 4 };
  const ofKinds = KINDS.map((kind) => ({ name: `kind-${kind}`, limits }));
  await haveEveryMetric([...ofKinds, { name: 'ends', limits }]);
  for (const kind of KINDS) {
    const { lease } = await take(`kind-${kind}`, kind);
    await lease.report({ ...SERVED, kind }, false);
    await lease.release('failed', 429);
  }
  for (const outcome of Object.keys(OUTCOMES) as LeaseOutcome[]) {
    const { lease } = await take('ends', outcome);
    await lease.release(outcome, 200);
  }
  for (const cut of Object.keys(CUTS) as (keyof typeof CUTS)[]) {
    const { lease } = await take('ends', `cut-${cut}`);
    await lease.release('cancelled', 200, undefined, false, { cut });
  }
  await scrape();
  expect(shapes.size).toBeGreaterThan(50);
});

it('freezes the response for each reason', async () => {
  const placeOf = await prepareReasons();
  const answers: Record<string, unknown> = {};
  for (const reason of REASON_NAMES) {
    answers[reason] = await answerOf(await ROWS[reason].refuse(placeOf(reason)));
  }
  await expect(goldenText(answers, LINE_MAX)).toMatchFileSnapshot(goldenFile('answers-by-reason'));
});

it('freezes all metrics', async () => {
  // Isolates report with a delay.
  await until(async () => {
    await scrape();
    const reported = shapes.get('headgate_refusals_total')?.labels.get('reason');
    expect([...(reported ?? [])].toSorted()).toEqual(REASON_NAMES.toSorted());
  });
  for (let before = -1; before !== countOfValues(); await scrape()) {
    before = countOfValues();
    await new Promise((resolve) => void setTimeout(resolve, QUIET_MS));
  }
  const families = [...shapes].map(([name, { type, samples, labels }]) => {
    const shown = [...labels].map(([label, values]) => [label, orderedOf(label, values)] as const);
    return [name, { type, samples: [...samples].toSorted(), labels: Object.fromEntries(shown) }];
  });
  await expect(goldenText(Object.fromEntries(families), LINE_MAX)).toMatchFileSnapshot(
    goldenFile('metrics'),
  );
});

/** Reads the metrics and adds new labels and values to the collected shapes. */
async function scrape(): Promise<void> {
  const headers = { authorization: 'Bearer test-metrics-token' };
  const response = await call('/metrics', { headers });
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  for (const family of parseExposition(await response.text())) addShape(family);
}

function countOfValues(): number {
  const labels = [...shapes.values()].flatMap((shape) => [...shape.labels.values()]);
  return labels.reduce((count, values) => count + values.size, shapes.size);
}

function addShape({ name, type, help, samples: found }: ParsedFamily): void {
  expect([name, help.trim()]).not.toEqual([name, '']);
  const shape = shapes.get(name) ?? { type, samples: new Set(), labels: new Map() };
  shapes.set(name, shape);
  for (const sample of found) {
    shape.samples.add(sample.name);
    for (const [label, value] of Object.entries(sample.labels)) {
      if (name === WARNINGS && TIMED.has(value)) continue;
      const values = shape.labels.get(label) ?? new Set();
      shape.labels.set(label, values.add(NAMES.has(label) ? '*' : value));
    }
  }
}

/** Keeps the order of bucket bounds and sorts all other values. */
function orderedOf(label: string, values: ReadonlySet<string>): string[] {
  return label === 'le' ? [...values] : [...values].toSorted();
}

/** The frozen parts of a response. The body is null if the caller has already read it. */
async function answerOf(answer: unknown) {
  const { status, headers } = answer as Pick<Response, 'status' | 'headers'>;
  const shown = [...headers].map(([name, value]) => [name, plain(value)] as const);
  const body = withoutMessage(await bodyOf(answer));
  return { status, headers: Object.fromEntries(shown), body };
}

async function bodyOf(answer: unknown): Promise<unknown> {
  if (!(answer instanceof Response)) return (answer as { readonly body: unknown }).body;
  return answer.bodyUsed ? null : answer.json();
}

/** Replaces figures, because most depend on time. */
function plain(value: string): string {
  return value.replaceAll(/\d+(\.\d+)?/g, '<number>');
}

/** Replaces the message of a body, because it is prose. */
function withoutMessage(body: unknown): unknown {
  return JSON.parse(JSON.stringify(body), (key, value: unknown) => {
    if (key !== 'message' && key !== 'detail') return value;
    expect(value).toMatch(/\S/);
    return '<message>';
  });
}
