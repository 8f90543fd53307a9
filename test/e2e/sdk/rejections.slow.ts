// Each SDK raises its own typed error for each of Headgate's refusals, and for the upstream's own
// errors the very one that it raises without Headgate.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { HeldSlot } from '../support/held-slot.ts';
import { holdSlot } from '../support/held-slot.ts';
import type { SdkStage } from '../support/sdk-stage.ts';
import { startSdkStage } from '../support/sdk-stage.ts';
import { errorOf } from '../support/reported-by-error.ts';
import type { Ask, SdkCaller } from './callers.ts';
import { CALLERS } from './callers.ts';
import { CALLER_KEY } from './cases/sdk-case.ts';

/** Nothing listens on the port of TCP's discard service. */
const NO_ACTOR = 'http://127.0.0.1:9';

const PROVIDERS = ['openai', 'anthropic', 'gemini'];

let stage: SdkStage;
let held: HeldSlot[];
beforeAll(async () => {
  const holds = { release_cooldown_ms: 0, cancel_cooldown_ms: 0 };
  stage = await startSdkStage({
    upstreams: (strict) =>
      PROVIDERS.flatMap((dialect) => [
        { id: `dead-${dialect}`, base_url: NO_ACTOR, dialect },
        {
          id: `sealed-${dialect}`,
          base_url: strict.url,
          dialect,
          auth: { secret: 'UPSTREAM_SEALED_KEY' },
        },
      ]),
    env: { UPSTREAM_SEALED_KEY: 'sk-of-the-operator' },
    groups: [
      { name: 'one', match: { models: ['one'] }, limits: { max_concurrency: 1 }, holds },
      {
        name: 'no-queue',
        match: { models: ['no-queue'] },
        limits: { max_concurrency: 1 },
        queue: { max_length: 0 },
        holds,
      },
      { name: 'resting', match: { models: ['resting'] }, paused: true },
      { name: 'draining', match: { models: ['draining'] }, draining: true },
      {
        name: 'broke',
        match: { models: ['broke'] },
        limits: { budget_usd: { per_day: 0, fallback_price: { input: 1, output: 1 } } },
      },
      {
        name: 'unpriced',
        match: { models: ['unpriced'] },
        limits: { budget_usd: { per_day: 1 } },
      },
    ],
  });
  held = await Promise.all([holdSlot(stage.url, 'one'), holdSlot(stage.url, 'no-queue')]);
});
afterAll(async () => {
  await Promise.all(held.map((slot) => slot.letGo()));
  await stage.stop();
});

/** A refusal of Headgate's, and a call that meets it. */
interface RejectionsRefused {
  readonly reason: string;
  readonly status: number;
  readonly permanent?: true;
  /** In front of the provider's id; or another first segment of the path. @default '' */
  readonly prefix?: '' | 'sealed-' | 'dead-';
  readonly path?: string;
  readonly ask?: Partial<Ask>;
}

const REFUSED: readonly RejectionsRefused[] = [
  {
    reason: 'busy',
    status: 429,
    ask: { model: 'one', headers: { 'headgate-max-wait': '0' } },
  },
  {
    reason: 'queue_timeout',
    status: 429,
    ask: { model: 'one', headers: { 'headgate-max-wait': '100ms' } },
  },
  { reason: 'queue_full', status: 429, ask: { model: 'no-queue' } },
  {
    reason: 'paused',
    status: 503,
    ask: { model: 'resting', headers: { 'headgate-max-wait': '100ms' } },
  },
  { reason: 'draining', status: 503, ask: { model: 'draining' } },
  { reason: 'budget_exhausted', status: 402, permanent: true, ask: { model: 'broke' } },
  { reason: 'price_unknown', status: 400, permanent: true, ask: { model: 'unpriced' } },
  {
    reason: 'never_fits',
    status: 413,
    permanent: true,
    ask: { model: 'one', headers: { 'headgate-weight': '2' } },
  },
  { reason: 'upstream_unreachable', status: 502, prefix: 'dead-' },
  { reason: 'key_invalid', status: 401, permanent: true, ask: { key: 'hg_nobody_knows_it' } },
  { reason: 'key_missing', status: 401, permanent: true, prefix: 'sealed-' },
  { reason: 'upstream_unknown', status: 404, permanent: true, path: 'nowhere' },
  {
    reason: 'header_invalid',
    status: 400,
    permanent: true,
    ask: { headers: { 'headgate-max-wait': 'a while' } },
  },
];

const KINDS: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  401: 'AuthenticationError',
  404: 'NotFoundError',
  429: 'RateLimitError',
  502: 'InternalServerError',
  503: 'InternalServerError',
};

/** Errors that Anthropic's SDK has classes for and OpenAI's does not. */
const ANTHROPIC_KINDS: Readonly<Record<number, string>> = {
  402: 'PaymentRequiredError',
  503: 'ServiceUnavailableError',
};

function kindOf({ name, upstream }: SdkCaller, status: number): string | null {
  if (name === '@google/genai') return 'ApiError';
  if (name.startsWith('ai ')) return 'APICallError';
  return (upstream === 'anthropic' ? ANTHROPIC_KINDS[status] : null) ?? KINDS[status] ?? null;
}

/** Claude Code misreads a 413, whatever it says. */
const statusFor = ({ upstream }: SdkCaller, { status }: RejectionsRefused): number =>
  upstream === 'anthropic' && status === 413 ? 400 : status;

const askOf = (caller: SdkCaller, { prefix = '', path, ask }: RejectionsRefused): Ask => ({
  origin: `${stage.url}/${path ?? prefix + caller.upstream}`,
  model: 'any-model',
  ...ask,
});

const WHOLE_SECONDS: unknown = expect.stringMatching(/^[1-9][0-9]?$/);

/** Expects the headers about the chances of another try, of an SDK that shows headers. */
function chances({ name }: SdkCaller, { permanent }: RejectionsRefused): object {
  if (name === '@google/genai') return {};
  return permanent === true
    ? { shouldRetry: 'false', retryAfter: null }
    : { shouldRetry: null, retryAfter: WHOLE_SECONDS };
}

describe.each(CALLERS)("$name raises its own error for Headgate's", (caller) => {
  test.each(REFUSED)('$reason: $status', async (refused) => {
    const { reason } = refused;
    const status = statusFor(caller, refused);
    const before = stage.strict.stats().total;
    for (const streams of [false, true]) {
      const ask = askOf(caller, refused);
      const reported = await errorOf(streams ? caller.askStreaming(ask) : caller.ask(ask));
      const expected = { kind: kindOf(caller, status), status, reason };
      expect(reported).toMatchObject({ ...expected, ...chances(caller, refused) });
      expect(reported.body).not.toContain('hg_nobody_knows_it');
    }
    expect(stage.strict.stats().total).toBe(before);
  });
});

test.each([
  { model: 'draining', headers: {}, status: 503, type: 'api_error' },
  { model: 'one', headers: { 'headgate-weight': '2' }, status: 400, type: 'invalid_request_error' },
])(
  'Claude Code does not take a refusal of Headgate for one of Anthropic: $status $type',
  async ({ model, headers, status, type }) => {
    const response = await fetch(`${stage.url}/anthropic/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': CALLER_KEY, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model, max_tokens: 9, messages: [{ role: 'user', content: 'x' }] }),
    });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ type: 'error', error: { type } });
  },
);

test.each(CALLERS.filter(({ upstream }) => upstream !== 'gemini'))(
  '$name: NotFoundError or the like for a model that no upstream knows',
  async (caller) => {
    const reported = await errorOf(caller.ask({ origin: stage.url, model: 'nobody/knows-it' }));
    expect(reported).toMatchObject({
      kind: kindOf(caller, 404),
      status: 404,
      reason: 'model_unknown',
      shouldRetry: 'false',
    });
    expect(reported.body).toContain('nobody');
  },
);

test('a call signed with SigV4 is refused with an explanation', async () => {
  const response = await fetch(`${stage.url}/bedrock/model/some-model/converse`, {
    method: 'POST',
    headers: {
      authorization: 'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261120/us-east-1/bedrock',
    },
    body: '{}',
  });
  expect(response.status).toBe(401);
  expect(response.headers.get('headgate-reason')).toBe('key_invalid');
  expect(response.headers.get('x-amzn-errortype')).toBe('AccessDeniedException');
  expect(await response.json()).toMatchObject({ message: expect.stringContaining('SigV4') });
});

describe.each(CALLERS)("$name raises the upstream's own error as it is", (caller) => {
  test.each([400, 401, 404, 429, 500, 503, 529])('%i', async (status) => {
    const headers = {
      'x-strict-status': String(status),
      'x-strict-retry-after-s': '7',
      // Who would wait does not see a 429 at all.
      'headgate-max-wait': '0',
    };
    // A key of its own, so that no pause after the error of another case is in the way.
    const key = `sk-${caller.name.replaceAll(/\W+/g, '-')}-${status}`;
    const ask = { model: 'any-model', key, headers };
    const straight = await errorOf(caller.ask({ ...ask, origin: stage.strict.url }));
    const through = await errorOf(
      caller.ask({ ...ask, origin: `${stage.url}/${caller.upstream}` }),
    );
    expect(through).toEqual(straight);
    expect(through).toMatchObject({ status, reason: null });
    expect([undefined, '7']).toContain(through.retryAfter);
    expect(through.body).toContain(`asked to answer ${status}`);
  });
});
