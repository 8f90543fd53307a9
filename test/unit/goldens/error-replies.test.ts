// Freezes the errors of each reason in each dialect: the response, the last events of a stream and the event of a
// WebSocket. All errors have the same message here, because messages are prose.
import { expect, it } from 'vitest';
import { errorReplyFrame, upstreamErrorFrame } from '../../../src/call/results/error-frame.ts';
import { errorEvent, errorResponse } from '../../../src/call/results/wire-error.ts';
import { DIALECTS } from '../../../src/contract/http.ts';
import { REASONS, type ErrorReply, type Reason } from '../../../src/contract/reasons.ts';
import { goldenFile, goldenText } from '../../support/golden.ts';

const message = '<message>';

/** Keeps each case on one line. */
const LINE_MAX = 1_000;

const REASON_NAMES = Object.keys(REASONS) as Reason[];

/** Properties of an error that change its response, in addition to the reason. */
const VARIANTS = {
  plain: {},
  'retry in 2.5 s': { retryAfterMs: 2_500 },
  'ends in 90 s': { retryAfterMs: 2_500, endsInMs: 90_000 },
  'no retry': { retryAfterMs: 2_500, isPermanent: true },
  'no retry, ends in 90 s': { isPermanent: true, endsInMs: 90_000 },
  'after 3 tries': { attempts: 3 },
  'other methods': { allow: ['GET', 'HEAD'] },
} satisfies Record<string, Partial<ErrorReply>>;

/** A temporary reason, one with a different error code, and a permanent one. */
const VARIED = ['busy', 'upstream_limited', 'method_unknown'] as const;

const STREAMS = {
  chat: 'openai',
  responses: 'openai_responses',
  messages: 'anthropic',
  generateContent: 'gemini',
  interactions: 'gemini_interactions',
} as const;

function tableOf<Key extends string, Value>(keys: readonly Key[], value: (key: Key) => Value) {
  return Object.fromEntries(keys.map((key) => [key, value(key)]));
}

async function shapeOf(response: Response) {
  const headers = Object.fromEntries(response.headers);
  return { status: response.status, headers, body: await response.json() };
}

async function answersOf(reply: ErrorReply) {
  const rows = DIALECTS.map(async (dialect) => {
    return [dialect, await shapeOf(errorResponse(dialect, reply))] as const;
  });
  return Object.fromEntries(await Promise.all(rows));
}

/** Splits a stream into events and replaces the id and the time of a response. */
function eventsOf(frames: string) {
  const events = frames.split('\n\n').filter((frame) => frame !== '');
  return events.map((frame) =>
    frame
      .replaceAll(/"resp_[0-9a-f]{32}"/g, '"resp_<id>"')
      .replaceAll(/"created_at":\d{10}\b/g, '"created_at":<seconds>'),
  );
}

it('freezes the response for each reason in each dialect', async () => {
  const answers = REASON_NAMES.map(
    async (reason) => [reason, await answersOf({ reason, message })] as const,
  );
  await expect(
    goldenText(Object.fromEntries(await Promise.all(answers)), LINE_MAX),
  ).toMatchFileSnapshot(goldenFile('error-answers'));
});

it('freezes how each property of an error changes the response', async () => {
  const answers = VARIED.flatMap((reason) =>
    Object.entries(VARIANTS).map(
      async ([name, variant]) =>
        [`${reason}: ${name}`, await answersOf({ reason, message, ...variant })] as const,
    ),
  );
  await expect(
    goldenText(Object.fromEntries(await Promise.all(answers)), LINE_MAX),
  ).toMatchFileSnapshot(goldenFile('error-variants'));
});

it('freezes the last events of each kind of stream', async () => {
  const text = JSON.stringify({ error: { message, type: 'tokens', code: 'rate_limit_exceeded' } });
  const refused = { status: 429, text, retryAfterMs: 2_500 };
  const streams = Object.entries(STREAMS).map(([name, shape]) => {
    const own = (variant: Partial<ErrorReply>) =>
      tableOf(REASON_NAMES, (reason) =>
        eventsOf(errorReplyFrame(shape, { reason, message, ...variant }, 'model')),
      );
    const upstream = tableOf(['with an error', 'without one'], (kind) => {
      const seen = kind === 'with an error' ? refused : { ...refused, text: 'Busy.' };
      return eventsOf(
        upstreamErrorFrame(shape, seen, 'model').replaceAll(/The upstream [^".]*\./g, message),
      );
    });
    return [name, { ours: own({}), upstream }] as const;
  });
  await expect(goldenText(Object.fromEntries(streams), LINE_MAX)).toMatchFileSnapshot(
    goldenFile('error-streams'),
  );
});

it('freezes the event of a WebSocket', async () => {
  const events = tableOf(REASON_NAMES, (reason) =>
    JSON.parse(errorEvent('openai', { reason, message }, null)),
  );
  const varied = tableOf(Object.keys(VARIANTS) as (keyof typeof VARIANTS)[], (name) =>
    JSON.parse(errorEvent('openai', { reason: 'busy', message, ...VARIANTS[name] }, 'stream')),
  );
  await expect(goldenText({ plain: events, busy: varied }, LINE_MAX)).toMatchFileSnapshot(
    goldenFile('error-sockets'),
  );
});

it('covers every reason', () => {
  expect(REASON_NAMES.length).toBeGreaterThan(40);
});
