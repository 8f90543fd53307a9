import { describe, expect, it } from 'vitest';
import { differencesOf, formOf, patchOf } from '../../../dashboard/src/model/upstream-form.ts';
import type { UpstreamInfo } from '../../../dashboard/src/model/upstream-view.ts';
import { UPSTREAM_HELP } from '../../../dashboard/src/model/upstream-help.ts';

const VLLM: UpstreamInfo = {
  id: 'my-vllm',
  is_built_in: false,
  enabled: true,
  base_url: 'https://llm.example.com',
  dialect: 'openai',
  models: ['llama-*'],
  openai_at: '/v1',
  anthropic_at: null,
  via: null,
  secret: {
    name: 'UPSTREAM_VLLM',
    is_set: true,
    fault: null,
    set_with: 'UPSTREAM_VLLM=…',
    command: 'x',
    afterwards: 'y',
  },
  member_secrets: [],
  configured: {
    id: 'my-vllm',
    base_url: 'https://llm.example.com',
    models: ['llama-*', 'qwen-*'],
    auth: { secret: 'UPSTREAM_VLLM' },
    allow: ['files', 'batches'],
    aliases: { prod: 'llama-3' },
    openai_at: '/v1',
    prices: { 'llama-*': { input: 1, output: 2 } },
    limit_headers: 'use',
    account_by: 'claim:sub',
    websocket: 'turns',
    webhook_secret: 'WEBHOOK_MINE',
    inject_usage: true,
    enabled: true,
  },
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

describe('the form of an upstream', () => {
  it('shows what is configured', () => {
    expect(formOf(VLLM)).toEqual({
      id: 'my-vllm',
      base_url: 'https://llm.example.com',
      dialect: '',
      models: 'llama-*\nqwen-*',
      openai_at: '/v1',
      anthropic_at: '',
      secret: 'UPSTREAM_VLLM',
      is_keyless: false,
      allow: 'files\nbatches',
      aliases: 'prod = llama-3',
      via: '',
      limit_headers: 'use',
      account_by: 'claim:sub',
      websocket: 'turns',
      webhook_secret: 'WEBHOOK_MINE',
      inject_usage: true,
      enabled: true,
    });
  });

  it('is empty for a built-in one of which nothing is configured', () => {
    const form = formOf({ ...VLLM, configured: null });
    expect(form.base_url).toBe('');
    expect(form.enabled).toBe(true);
    expect(form.limit_headers).toBe('auto');
  });
});

describe('the patch of an upstream', () => {
  const form = formOf(VLLM);

  it('is empty where nothing changed', () => {
    expect(patchOf(form, { ...form, base_url: ' https://llm.example.com ' })).toEqual({});
  });

  it.each([
    ['a new address', { base_url: 'https://b.example.com' }, { base_url: 'https://b.example.com' }],
    ['the dialect', { dialect: 'ollama' }, { dialect: 'ollama' }],
    ['no key of the operator', { secret: '' }, { auth: null }],
    ['another secret', { secret: 'UPSTREAM_B' }, { auth: { secret: 'UPSTREAM_B' } }],
    ['no key at all', { is_keyless: true }, { auth: 'none' }],
    ['models', { models: 'a-*\n\n b-* ' }, { models: ['a-*', 'b-*'] }],
    ['no models', { models: ' ' }, { models: null }],
    ['what else is open', { allow: 'files' }, { allow: ['files'] }],
    ['nothing else', { allow: '' }, { allow: [] }],
    ['a path back to its default', { openai_at: '' }, { openai_at: null }],
    ['what comes as a WebSocket', { websocket: 'off' }, { websocket: 'off' }],
    ['no webhooks', { webhook_secret: '' }, { webhook_secret: null }],
    ['no calls', { enabled: false }, { enabled: false }],
    ['an alias more', { aliases: 'prod = llama-3\nb=c' }, { aliases: { prod: 'llama-3', b: 'c' } }],
    ['an alias less', { aliases: '' }, { aliases: { prod: null } }],
    ['an alias without a model', { aliases: 'prod' }, { aliases: { prod: '' } }],
  ])('says %s', (_what, changed, patch) => {
    expect(patchOf(form, { ...form, ...changed })).toEqual(patch);
  });
});

it('the differences of two states name fields, from and to', () => {
  const after = {
    ...VLLM,
    configured: { ...VLLM.configured, base_url: 'https://b.example.com', via: 'NET' },
  };
  expect(differencesOf(VLLM, after)).toEqual([
    'base_url: https://llm.example.com → https://b.example.com',
    'via: default → NET',
  ]);
  expect(differencesOf(VLLM, VLLM)).toEqual([]);
});

describe('the help of the form', () => {
  it('is what the schema says of every field, in the words of a form', () => {
    const paths = Object.keys(formOf(null)).map((name) =>
      name === 'secret' || name === 'is_keyless' ? 'auth' : name,
    );
    expect(paths.filter((path) => (UPSTREAM_HELP.get(path) ?? '') === '')).toEqual([]);
    expect(UPSTREAM_HELP.get('via')).toContain('Empty means the public network.');
    expect(UPSTREAM_HELP.get('openai_at')).toContain('Empty means by dialect.');
  });
});
