import { expect, test } from 'vitest';
import type { Env } from '../../../src/env.ts';
import { poolOf } from '../../../src/routing/pool.ts';

/** Where the objects of a group are made. */

type PoolRequest = readonly unknown[];

/** A namespace that notes what it is asked for. */
function namespaceOf(
  asked: PoolRequest[],
  canJurisdiction = true,
  jurisdiction: string | null = null,
) {
  return {
    getByName: (...args: unknown[]) => {
      asked.push([jurisdiction, ...args]);
      return {};
    },
    jurisdiction(name: string) {
      if (!canJurisdiction) throw new Error('Jurisdictions are not implemented in workerd.');
      return namespaceOf(asked, canJurisdiction, name);
    },
  };
}

function askedFor(
  place: Parameters<typeof poolOf>[3],
  canJurisdiction = true,
  variables: Partial<Env> = {},
): PoolRequest | undefined {
  const asked: PoolRequest[] = [];
  const env = { GROUPS: namespaceOf(asked, canJurisdiction), ...variables } as unknown as Env;
  poolOf(env, 'shared', null, place);
  return asked[0];
}

test.each<[string, Parameters<typeof poolOf>[3], PoolRequest]>([
  ['nowhere in particular', null, [null, 'shared']],
  [
    'where location hints',
    { location: 'weur', jurisdiction: null },
    [null, 'shared', { locationHint: 'weur' }],
  ],
  ['in its jurisdiction', { location: null, jurisdiction: 'eu' }, ['eu', 'shared']],
  ['in both', { location: 'weur', jurisdiction: 'eu' }, ['eu', 'shared', { locationHint: 'weur' }]],
])('an object is made %s', (_, place, expected) => {
  expect(askedFor(place)).toEqual(expected);
});

test.each<[string, Parameters<typeof poolOf>[3], string]>([
  ['a group that names none', { location: null, jurisdiction: null }, 'eu'],
  ['an automatic group', null, 'eu'],
  ['a group of its own jurisdiction', { location: null, jurisdiction: 'us' }, 'us'],
])('the jurisdiction of the deployment holds for %s', (_, place, expected) => {
  expect(askedFor(place, true, { JURISDICTION: 'eu' })).toEqual([expected, 'shared']);
});

test('where it is self-hosted there is one place', () => {
  expect(askedFor({ location: null, jurisdiction: 'eu' }, false)).toEqual([null, 'shared']);
});
