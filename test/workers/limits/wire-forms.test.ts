// Every provider's own forms of refusal, over the wire: what becomes of the call and of its group, and that
// the reason shows in the status, in the metrics and in the log.
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RefusalKind } from '../../../src/core/words/signal.ts';
import { PROVIDERS } from '../../strict-upstream/refusal.ts';
import { nothingLeaks } from '../support/pool.ts';
import { call, until } from '../support/worker.ts';
import {
  later,
  newStage,
  pausedMs,
  send,
  served,
  statusOf,
  reportedBy,
  untilGroup,
} from './stage.ts';
import type { LimitsStage } from './stage.ts';

afterAll(nothingLeaks);

/** Words of each provider; where that reads as something else, what it is taken for. */
const FORMS: Record<string, Partial<Record<string, RefusalKind>>> = {
  // The first, as long as the clock here is the upstream's: it says when a window ends, not how long it lasts.
  zai: same('concurrency requests overload quota long_window'),
  openai: same('concurrency requests tokens ramp overload quota never_fits long_window'),
  anthropic: same('concurrency requests tokens ramp overload quota never_fits long_window'),
  // A quota without a detail is how it says that it is full.
  gemini: {
    ...same('concurrency requests tokens overload quota never_fits long_window'),
    ramp: 'overload',
  },
  azure: same('concurrency requests tokens long_window'),
  bedrock: {
    ...same('concurrency requests tokens overload never_fits long_window'),
    ramp: 'requests',
  },
  groq: same('requests tokens never_fits long_window'),
  cerebras: same('requests tokens overload'),
  // It does not say which of its limits.
  mistral: { ...same('requests overload'), tokens: 'unknown' },
  deepseek: same('concurrency quota'),
  moonshot: same('concurrency requests tokens overload quota long_window'),
  minimax: {
    ...same('concurrency requests tokens ramp quota long_window'),
    overload: 'error',
  },
  dashscope: same('requests tokens ramp quota'),
  openrouter: same('requests overload quota long_window'),
  ollama: same('concurrency overload long_window'),
  cohere: same('requests tokens'),
  together: same('overload'),
};

/** Providers that say when a window of hours ends. */
const KNOW_THE_END = new Set(['openai', 'anthropic', 'azure', 'groq', 'zai', 'openrouter']);

function same(kinds: string): Partial<Record<string, RefusalKind>> {
  return Object.fromEntries(kinds.split(' ').map((kind) => [kind, kind as RefusalKind]));
}

const CASES = Object.entries(FORMS).flatMap(([provider, kinds]) =>
  Object.entries(kinds).map(([said, seen]) => ({ provider, said, seen: seen ?? 'unknown' })),
);

/** The kinds after which a call waits for its turn once more, for a pause among them. */
const WAITS_AGAIN = new Set<RefusalKind>(['concurrency', 'requests', 'tokens', 'ramp', 'unknown']);
const PAUSES = new Set<RefusalKind>(['requests', 'tokens', 'ramp', 'unknown']);
const IS_TRIED_AGAIN = new Set<RefusalKind>(['overload', 'error']);

let lines: string[] = [];

beforeEach(() => {
  lines = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
});

async function stageOf(provider: string, said: string): Promise<LimitsStage> {
  const stage = await newStage({
    settings: { refusal: provider },
    group: { retries: { max: 1, budget: 1 } },
    upstream: { id: provider, dialect: 'openai' },
  });
  await stage.strict.failNext(said);
  return stage;
}

/** The reason is the same wherever an operator looks. */
async function expectShown(stage: LimitsStage, provider: string, kind: RefusalKind): Promise<void> {
  expect((await statusOf(stage)).refusals_total).toEqual({ [kind]: 1 });
  const refused = lines
    .map((line) => JSON.parse(line))
    .filter(({ event }) => event === 'upstream_refused');
  expect(refused).toMatchObject([{ upstream: provider, groups: stage.group, kind }]);
  const authorization = 'Bearer test-metrics-token';
  const sample = new RegExp(
    `^headgate_upstream_refusals_total\\{[^}]*group="${stage.group}"[^}]*kind="${kind}"[^}]*\\} 1$`,
    'm',
  );
  await until(async () => {
    const metrics = await call('/metrics', { headers: { authorization } });
    expect(await metrics.text()).toMatch(sample);
  });
}

const of = (takes: (kind: RefusalKind) => boolean) => CASES.filter(({ seen }) => takes(seen));

describe('a refusal that waiting does not mend goes to the caller at once, who is not to retry', () => {
  it.each(of((kind) => !WAITS_AGAIN.has(kind) && !IS_TRIED_AGAIN.has(kind)))(
    '$provider, $said: taken for $seen',
    async ({ provider, said, seen }) => {
      const stage = await stageOf(provider, said);
      const reported = await reportedBy(send(stage, 'one'));
      expect(reported).toMatchObject({ tries: '1', reason: null, shouldRetry: 'false' });
      await untilGroup(stage, { in_use: 0 });
      const isBlocked = pausedMs(await statusOf(stage)) > 600_000;
      expect(isBlocked).toBe(seen === 'long_window' && KNOW_THE_END.has(provider));
      if (isBlocked) await later(stage, 3_600_000);
      expect(await reportedBy(send(stage, 'two'))).toEqual(served(1));
      await expectShown(stage, provider, seen);
    },
  );
});

describe('a refusal that waiting mends is not seen by the caller', () => {
  it.each(of((kind) => WAITS_AGAIN.has(kind)))(
    '$provider, $said: taken for $seen',
    async ({ provider, said, seen }) => {
      const stage = await stageOf(provider, said);
      const one = send(stage, 'one');
      await untilGroup(stage, { refusals_total: { [seen]: 1 } });
      const isPaused = pausedMs(await statusOf(stage)) > 0;
      expect(isPaused).toBe(PAUSES.has(seen));
      await later(stage, 65_000);
      expect(await reportedBy(one)).toEqual(served(2));
      await expectShown(stage, provider, seen);
    },
  );
});

describe('a refusal for lack of capacity is tried again where the operator says so', () => {
  it.each(of((kind) => IS_TRIED_AGAIN.has(kind)))(
    '$provider, $said: taken for $seen',
    async ({ provider, said, seen }) => {
      const stage = await stageOf(provider, said);
      expect(await reportedBy(send(stage, 'one'))).toEqual(served(2));
      await expectShown(stage, provider, seen);
    },
  );
});

it('no provider whose forms are known is left out', () => {
  expect(Object.keys(FORMS).toSorted()).toEqual([...PROVIDERS].toSorted());
});
