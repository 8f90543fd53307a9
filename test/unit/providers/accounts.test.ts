import { describe, expect, it } from 'vitest';
import { accountSignOf } from '../../../src/providers/accounts.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';
import { resolveUpstreams } from '../../../src/routing/upstreams.ts';
import type { Upstream } from '../../../src/contract/config/upstream.ts';
import { aConfig, anUpstream } from '../routing/fixtures.ts';
import { aToken } from '../upstream/account/a-token.ts';

function builtIn(id: string): Upstream {
  const found = BUILT_IN_UPSTREAMS.find((upstream) => upstream.id === id);
  if (found === undefined) throw new Error(`no ${id}`);
  return found;
}

const AUTH = 'https://api.openai.com/auth';

describe('what tells whose a key is', () => {
  it.each(['openai', 'chatgpt'])('tokens of ChatGPT name a seat in a workspace: %s', (id) => {
    const base_url = 'https://chatgpt.com/backend-api/codex';
    const config = aConfig({ upstreams: id === 'openai' ? [] : [{ id: 'codex', base_url }] });
    const upstreams = resolveUpstreams(config, BUILT_IN_UPSTREAMS);
    const upstream = upstreams.get(id === 'openai' ? id : 'codex') ?? builtIn('openai');
    const of = (account: string, user: string, exp: number) =>
      accountSignOf(
        upstream,
        aToken({ exp, [AUTH]: { chatgpt_account_id: account, chatgpt_user_id: user } }),
      );
    expect(of('a1', 'u1', 1)).toMatchObject({ by: 'claim' });
    expect(of('a1', 'u1', 1)).toEqual(of('a1', 'u1', 2));
    expect(of('a1', 'u1', 1)).not.toEqual(of('a1', 'u2', 1));
    expect(of('a1', 'u1', 1)).not.toEqual(of('a2', 'u1', 1));
  });

  it('a token that names no user stands for its workspace', () => {
    const token = aToken({ [AUTH]: { chatgpt_account_id: 'a1' } });
    expect(accountSignOf(builtIn('openai'), token)).toMatchObject({ by: 'claim' });
  });

  it.each(['zai', 'zhipu'])('signed keys of %s name the key that signed them', (id) => {
    const of = (claims: object) => accountSignOf(builtIn(id), aToken(claims));
    const first = of({ api_key: 'k1', timestamp: 1 });
    expect(first).toMatchObject({ by: 'claim' });
    expect(of({ api_key: 'k1', timestamp: 2 })).toEqual(first);
    expect(of({ api_key: 'k2', timestamp: 1 })).not.toEqual(first);
  });

  it('tokens of Claude are named by answers, its keys by themselves', () => {
    const header = 'anthropic-organization-id';
    expect(accountSignOf(builtIn('anthropic'), 'sk-ant-oat01-x')).toEqual({ by: 'answer', header });
    expect(accountSignOf(builtIn('anthropic'), 'sk-ant-api03-x')).toBeNull();
  });

  it.each([
    ['openai', 'sk-proj-0123'],
    ['openai', aToken({ sub: 'user-1' })],
    ['groq', aToken({ sub: 'user-1', api_key: 'k1' })],
    ['vertex', 'ya29.token'],
  ])('nothing does at %s of %s', (id, key) => {
    expect(accountSignOf(builtIn(id), key)).toBeNull();
  });

  it('the word of the operator goes before what is known', () => {
    const zai = (accountBy: Upstream['accountBy'], key = aToken({ api_key: 'k1', sub: 's1' })) =>
      accountSignOf({ ...builtIn('zai'), accountBy }, key);
    expect(zai('key')).toBeNull();
    expect(zai('claim:sub')).toEqual({ by: 'claim', account: '["s1"]' });
    expect(zai('claim:sub', 'sk-static')).toBeNull();
    expect(zai('answer:x-org')).toEqual({ by: 'answer', header: 'x-org' });
    expect(zai('header:x-team')).toEqual({ by: 'header', header: 'x-team' });
  });

  it('where keys name no account, only the operator has one told', () => {
    const shared = anUpstream('openai', { keyNamesAccount: false });
    const token = aToken({ sub: 's1', [AUTH]: { chatgpt_account_id: 'a1' } });
    expect(accountSignOf(shared, token)).toBeNull();
    expect(accountSignOf({ ...shared, accountBy: 'claim:sub' }, token)).not.toBeNull();
  });
});
