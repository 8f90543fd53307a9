// A path that a group names takes a slot, however it is written; it opens a route only where every reading is named.
import { describe, expect, test } from 'vitest';
import { calledAt, compilePaths } from '../../../src/routing/group-match.ts';
import { compileRoutes, type RoutedCall } from '../../../src/routing/placement.ts';
import { aCall, aConfig, anUpstream, byId } from './fixtures.ts';

const house = anUpstream('house');
const elsewhere = anUpstream('elsewhere');

const isNamed = compilePaths({ paths: ['/v1/custom/*', '/predict', '*/render'], methods: [] });

test.each([
  '/v1/custom/run',
  '/V1/Custom/RUN',
  '/v1/custom/run/',
  '/v1/custom//run',
  '/v1//custom/run',
  '/v1%2Fcustom%2frun',
  '/v1/%63ustom/run',
  '/v1/%2563ustom/run',
  '/v1/custom;x=1/run',
  '/v1/custom./run',
  '/v1/x/..%2fcustom/run',
  '/v1\\custom\\run',
  '/predict',
  '/predict/',
  '/predict.json',
  '/predict;a',
  '/%70redict',
  '/any/thing/render',
])('POST %s is named', (path) => {
  expect(isNamed?.(calledAt('POST', path))).toBe(true);
});

test.each(['/v1/custom', '/v1/customs/run', '/predict/more', '/v1/rendered', '', '/'])(
  'POST %s is not',
  (path) => {
    expect(isNamed?.(calledAt('POST', path))).toBe(false);
  },
);

test.each([
  [[], ['POST', 'PUT', 'PATCH']],
  [['GET'], ['GET']],
  [
    ['DELETE', 'POST'],
    ['POST', 'DELETE'],
  ],
] as const)('of methods %j these are meant: %j', (methods, taken) => {
  const named = compilePaths({ paths: ['*'], methods: [...methods] });
  const all = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'];
  expect(all.filter((method) => named?.(calledAt(method, '/x')))).toEqual([...taken]);
});

test('the root of an upstream is a path', () => {
  const root = compilePaths({ paths: ['/'], methods: [] });
  expect(['', '/', '//'].map((path) => root?.(calledAt('POST', path)))).toEqual([true, true, true]);
  expect(root?.(calledAt('POST', '/x'))).toBe(false);
});

describe('the groups of a call', () => {
  const routes = compileRoutes(
    aConfig({
      groups: [
        { name: 'custom', match: { upstreams: ['house'], paths: ['/v1/custom/*'] } },
        { name: 'of-a', match: { keys: ['team-a'], paths: ['/v1/tools/*'], methods: ['GET'] } },
        { name: 'all', match: {} },
        { name: 'chats', match: { operations: ['chat'], paths: ['/v1/chat/*'] } },
      ],
    }),
    byId(house, elsewhere),
  );
  const other = (path: string, more: Partial<RoutedCall> = {}) =>
    aCall(house, { operation: 'other', model: null, path, ...more });
  const names = (call: RoutedCall) => routes.place(call).map(({ group }) => group);

  test('are those that name its path, and those that name none', () => {
    expect(names(other('/v1/custom/run'))).toEqual(['custom', 'all']);
    expect(names(other('/v1/chat/x', { operation: 'chat' }))).toEqual([
      'auto:house',
      'all',
      'chats',
    ]);
    expect(names(other('/v1/chat/x'))).toEqual(['auto:house', 'all']);
    expect(names(aCall(house, { path: null }))).toEqual(['auto:house', 'all']);
  });

  test.each<[Partial<RoutedCall> & { path: string }, string]>([
    [{ path: '/v1/custom/run' }, 'in all readings'],
    [{ path: '/v1/custom/run/' }, 'in all readings'],
    [{ path: '/v1/custom/a%20b' }, 'in all readings'],
    [{ path: '/v1/evil/..%2fcustom/run' }, 'in a reading'],
    [{ path: '/v1/evil;/custom%2frun' }, 'no'],
    [{ path: '/v1/custom/..%2fevil' }, 'in a reading'],
    [{ path: '/v1/other' }, 'no'],
    [{ path: '/v1/custom/run', method: 'GET' }, 'no'],
    [{ path: '/v1/custom/run', method: 'HEAD' }, 'no'],
    [{ path: '/v1/custom/run', upstream: elsewhere }, 'no'],
    [{ path: '/v1/tools/1', method: 'GET' }, 'no'],
    [{ path: '/v1/tools/1', method: 'GET', keyIds: ['team-a'] }, 'in all readings'],
    [{ path: '/v1/chat/x' }, 'no'],
    [{ path: '/v1/chat/x', operation: 'chat' }, 'in all readings'],
  ])('name the path of %j: %s', (more, named) => {
    expect(routes.namedPath({ ...other(more.path), ...more })).toBe(named);
  });
});
