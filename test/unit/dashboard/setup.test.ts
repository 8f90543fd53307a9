import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { setupItems, type SetupFacts } from '../../../dashboard/src/model/setup-state.ts';
import { curlFor, forAddress, pythonFor } from '../../../dashboard/src/model/snippets.ts';
import {
  firstModelOf,
  isCallable,
  testCallOf,
  reportedHeaders,
} from '../../../dashboard/src/model/test-call.ts';
import type { UpstreamInfo } from '../../../dashboard/src/model/upstream-view.ts';

const ORIGIN = 'http://localhost:8787';

const OPENAI: UpstreamInfo = {
  id: 'openai',
  is_built_in: true,
  enabled: true,
  base_url: 'https://api.openai.com',
  dialect: 'openai',
  models: [],
  openai_at: '/v1',
  anthropic_at: null,
  via: null,
  secret: null,
  member_secrets: [],
  configured: null,
  groups: [],
  calls: null,
  health: {
    state: 'unknown',
    paused_until: null,
    breaker_until: null,
    refusals_total: {},
    limits: {},
  },
};

describe('a recipe for this address', () => {
  it.each([
    ['openai.ts', `baseURL: '${ORIGIN}/openai/v1'`],
    ['openai-any-provider.ts', `baseURL: '${ORIGIN}/v1'`],
    ['anthropic.ts', `baseURL: '${ORIGIN}/anthropic'`],
    ['ai-sdk.ts', `baseURL: '${ORIGIN}/anthropic/v1'`],
    ['langchain.ts', `baseURL: '${ORIGIN}/openai/v1'`],
    ['claude-code.sh', `ANTHROPIC_BASE_URL="${ORIGIN}/anthropic"`],
    ['claude-code-gateway-key.sh', `ANTHROPIC_BASE_URL="${ORIGIN}/anthropic"`],
    ['codex.toml', `base_url = "${ORIGIN}/openai/v1"`],
  ])('%s names it, and nothing is left to fill in but the key', async (file, setting) => {
    const recipe = await readFile(
      new URL(`../../e2e/sdk/recipes/${file}`, import.meta.url),
      'utf8',
    );
    const shown = forAddress(recipe, ORIGIN);
    expect(shown).toContain(setting);
    expect(shown).not.toContain('headgateUrl');
    expect(shown).not.toContain('headgate.example');
  });

  it('is there for Python and for curl too', () => {
    expect(pythonFor(ORIGIN)).toContain(`base_url="${ORIGIN}/openai/v1"`);
    expect(curlFor(ORIGIN)).toContain(`${ORIGIN}/openai/v1/chat/completions`);
  });
});

describe('a test call', () => {
  it('takes the OpenAI-shaped route where there is one', () => {
    const call = testCallOf({ ...OPENAI, anthropic_at: '/v1' }, 'gpt-4o-mini', 'sk-1');
    expect(call.path).toBe('/openai/v1/chat/completions');
    expect(call.headers).toEqual({
      'content-type': 'application/json',
      authorization: 'Bearer sk-1',
    });
    expect(JSON.parse(call.body)).toMatchObject({ model: 'gpt-4o-mini' });
  });

  it.each<[string, Partial<UpstreamInfo>]>([
    ['otherwise', { openai_at: null }],
    ['at Anthropic, which has both', { dialect: 'anthropic' }],
  ])("takes Anthropic's %s, with a bound on the answer, which is needed there", (_, how) => {
    const anthropic = { ...OPENAI, id: 'anthropic', anthropic_at: '/v1', ...how };
    const call = testCallOf(anthropic, 'claude-haiku-4-5', '');
    expect(call.path).toBe('/anthropic/v1/messages');
    expect(call.headers).toEqual({
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
    });
    expect(JSON.parse(call.body)).toMatchObject({ model: 'claude-haiku-4-5', max_tokens: 16 });
  });

  it.each([
    [OPENAI, true],
    [{ ...OPENAI, openai_at: '' }, true],
    [{ ...OPENAI, openai_at: null }, false],
    [{ ...OPENAI, openai_at: null, anthropic_at: '/v1' }, true],
    [{ ...OPENAI, enabled: false }, false],
  ])('may go to an upstream that takes calls of a known shape', (upstream, isIt) => {
    expect(isCallable(upstream)).toBe(isIt);
  });

  it('begins with a model only where one is known', () => {
    expect(firstModelOf('anthropic')).toBe('claude-haiku-4-5');
    expect(firstModelOf('my-vllm')).toBe('');
  });

  it('shows the headers that say what Headgate did, and no others', () => {
    const headers = new Headers({
      'headgate-lease': 'a.1',
      'set-cookie': 'x=y',
      'content-type': 'application/json',
      'retry-after-ms': '5',
      server: 'x',
      'x-should-retry': 'false',
    });
    expect(reportedHeaders(headers).map(([name]) => name)).toEqual([
      'content-type',
      'headgate-lease',
      'retry-after-ms',
      'x-should-retry',
    ]);
  });
});

describe('what is missing', () => {
  const stored = (isSet: boolean, fault = 'is not set'): UpstreamInfo => ({
    ...OPENAI,
    secret: {
      name: 'UPSTREAM_OPENAI_KEY',
      is_set: isSet,
      fault: isSet ? null : fault,
      set_with: 'UPSTREAM_OPENAI_KEY=… where it runs',
      command: 'export UPSTREAM_OPENAI_KEY=…',
      afterwards: 'Restart it.',
    },
  });
  const FRESH: SetupFacts = { groups: 0, keys: 0, upstreams: [OPENAI] };
  const states = (facts: SetupFacts) =>
    setupItems(facts).map(({ title, state }) => `${title}: ${state}`);

  it('is nothing in a fresh deployment, where groups and keys are a choice', () => {
    expect(states(FRESH)).toEqual([
      'Admin token: ready',
      'Directory: ready',
      'Provider keys: open',
      'Groups: open',
      'Gateway keys: open',
    ]);
  });

  it('says how a secret is set where this Headgate runs', () => {
    const item = setupItems({ groups: 0, keys: 0, upstreams: [stored(false)] }).find(
      ({ title }) => title === 'Key for openai',
    );
    expect(item).toMatchObject({
      says: 'UPSTREAM_OPENAI_KEY is not set, so calls to openai are refused:',
      command: 'export UPSTREAM_OPENAI_KEY=…',
      afterwards: 'Restart it.',
    });
  });

  it('says what is wrong with a secret that is refused', () => {
    const upstreams = [stored(false, 'has white space inside')];
    expect(setupItems({ groups: 0, keys: 0, upstreams })).toContainEqual(
      expect.objectContaining({
        says: 'UPSTREAM_OPENAI_KEY has white space inside, so calls to openai are refused:',
      }),
    );
  });

  it('is nothing where all is set up', () => {
    expect(states({ groups: 3, keys: 2, upstreams: [stored(true)] })).toEqual([
      'Admin token: ready',
      'Directory: ready',
      'Key for openai: ready',
      'Groups: ready',
      'Gateway keys: ready',
    ]);
  });

  it.each([
    ['a directory out of reach', { groups: null, keys: null, upstreams: null }, 'Directory'],
    ['a secret', { ...FRESH, keys: 1, upstreams: [stored(false)] }, 'Key for openai'],
    ['a gateway key for a stored key', { ...FRESH, upstreams: [stored(true)] }, 'Gateway keys'],
  ])('is %s', (_what, facts, title) => {
    const missing = setupItems(facts).filter(({ state }) => state === 'todo');
    expect(missing.map((item) => item.title)).toEqual([title]);
  });
});
