import { describe, expect, test } from 'vitest';
import { directoryOf, feedOf, type Env } from '../../../src/env.ts';
import { wrongPlace } from '../../../src/runtime/deployment.ts';

/** The two objects of which a deployment has one each, and the variables that say where they are. */

type PlacesRequest = readonly unknown[];

function namespaceOf(asked: PlacesRequest[], jurisdiction: string | null = null) {
  return {
    getByName: (...args: unknown[]) => asked.push([jurisdiction, ...args]),
    jurisdiction: (name: string) => namespaceOf(asked, name),
  };
}

function askedFor(variables: Partial<Env>): PlacesRequest[] {
  const asked: PlacesRequest[] = [];
  const namespace = namespaceOf(asked);
  const env = { DIRECTORY: namespace, FEED: namespace, ...variables } as unknown as Env;
  directoryOf(env);
  feedOf(env);
  return asked;
}

const HINT = { locationHint: 'weur' };

test.each<[string, Partial<Env>, PlacesRequest, PlacesRequest]>([
  ['nowhere in particular', {}, [null, 'directory'], [null, 'feed']],
  [
    'there neither with empty variables',
    { JURISDICTION: '', DIRECTORY_LOCATION: '' },
    [null, 'directory'],
    [null, 'feed'],
  ],
  ['in a jurisdiction', { JURISDICTION: 'eu' }, ['eu', 'directory'], ['eu', 'feed']],
  [
    'where a hint says',
    { DIRECTORY_LOCATION: 'weur' },
    [null, 'directory', HINT],
    [null, 'feed', HINT],
  ],
  [
    'in both',
    { JURISDICTION: 'eu', DIRECTORY_LOCATION: 'weur' },
    ['eu', 'directory', HINT],
    ['eu', 'feed', HINT],
  ],
])('directory and feed are %s', (_, variables, directory, feed) => {
  expect(askedFor(variables)).toEqual([directory, feed]);
});

describe('a variable', () => {
  test.each<Partial<Env>>([
    {},
    { JURISDICTION: '', DIRECTORY_LOCATION: '' },
    { JURISDICTION: 'eu', DIRECTORY_LOCATION: 'weur' },
    { JURISDICTION: 'fedramp' },
    { JURISDICTION: 'us', DIRECTORY_LOCATION: 'apac-ne' },
    { DIRECTORY_LOCATION: 'apac-se' },
  ])('may be %j', (variables) => {
    expect(wrongPlace(variables)).toBeNull();
  });

  test.each<[Partial<Env>, string]>([
    [
      { JURISDICTION: 'europe' },
      '`JURISDICTION` is "europe". Expected eu, fedramp, us, or an empty value.',
    ],
    [{ JURISDICTION: 'EU' }, '`JURISDICTION` is "EU". Expected eu'],
    [
      { JURISDICTION: 'eu', DIRECTORY_LOCATION: 'eu' },
      '`DIRECTORY_LOCATION` is "eu". Expected wnam',
    ],
  ])('may not be %j', (variables, message) => {
    expect(wrongPlace(variables)).toContain(message);
  });
});
