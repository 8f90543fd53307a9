import { describe, expect, it } from 'vitest';
import type { Dialect } from '../../../src/contract/http.ts';
import type { Sockets } from '../../../src/contract/config/upstream.ts';
import {
  classifyTurn,
  classifyUpgrade,
  isNamedInMessage,
} from '../../../src/upstream/operation/upgrades.ts';

function at(path: string, sockets: Sockets, query = '', dialect: Dialect = 'openai') {
  return classifyUpgrade(path, new URLSearchParams(query), { dialect, sockets });
}

const SESSION = { name: 'realtime', limited: true, socket: 'session' };

describe('the use of a WebSocket', () => {
  it.each([
    '/v1/realtime',
    '/openai/realtime',
    '/openai/v1/REALTIME/',
    '/v1/realtime/translations',
    '/v1/live',
    '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent',
    '/ws/google.ai.generativelanguage.v1alpha.GenerativeService.BidiGenerateContentConstrained',
    '/ws/google.cloud.aiplatform.v1.LlmBidiService/BidiGenerateContent',
  ])('a session, which takes a slot: %s', (path) => {
    expect(at(path, 'sessions')).toMatchObject(SESSION);
    expect(at(path, 'none')).toMatchObject({ limited: false, socket: 'unserved' });
  });

  it('turns, where the upstream speaks them', () => {
    const turns = { name: 'responses', limited: false, socket: 'turns' };
    expect(at('/v1/responses', 'turns')).toMatchObject(turns);
    expect(at('/v1/responses/', 'sessions').socket).toBe('unserved');
  });

  it('a session whatever its path, where the operator says so', () => {
    expect(at('/v1/responses', 'any')).toMatchObject(SESSION);
    expect(at('/anything', 'any')).toMatchObject(SESSION);
  });

  it('nothing on other routes', () => {
    const nothing = { limited: false, socket: 'unserved' };
    expect(at('/v1/chat/completions', 'turns')).toMatchObject(nothing);
  });
});

it.each<[Sockets, string]>([
  ['turns', 'turns'],
  ['sessions', 'unserved'],
  ['any', 'unserved'],
])('a turn takes a slot and names its model like a POST: at %s it is %s', (sockets, socket) => {
  const upstream = { dialect: 'openai', sockets } as const;
  const turn = classifyTurn('/v1/responses', new URLSearchParams(), upstream);
  const post = { name: 'responses', limited: true, model: { from: 'body' } };
  expect(turn).toMatchObject({ ...post, socket });
});

it.each([
  ['model=gpt-realtime', { from: 'path', value: 'gpt-realtime' }],
  ['deployment=mine&api-version=1', { from: 'path', value: 'mine' }],
  ['model=', { from: 'none' }],
  ['', { from: 'none' }],
])('the model of a session stands in the query: %s', (query, model) => {
  expect(at('/v1/realtime', 'sessions', query).model).toEqual(model);
});

it('that of Gemini stands in its first message', () => {
  expect(isNamedInMessage('/ws/x.v1.GenerativeService.BidiGenerateContent')).toBe(true);
  expect(isNamedInMessage('/v1/realtime')).toBe(false);
});

it('errors of a session are in the dialect that it is called in', () => {
  expect(at('/openai/realtime', 'sessions', 'api-version=1', 'azure').shape).toBe('azure');
});
