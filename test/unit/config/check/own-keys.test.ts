// A group that counts calls with several callers' own provider keys together: the change that makes it do so warns.
import { expect, it } from 'vitest';
import { ownKeyWarnings } from '../../../../src/config/check/access.ts';
import { BUILT_IN_UPSTREAMS } from '../../../../src/providers/catalog.ts';
import { resolveUpstreams } from '../../../../src/routing/upstreams.ts';
import { aConfig } from '../../routing/fixtures.ts';

type OwnKeysDocument = Parameters<typeof aConfig>[0];

const UPSTREAM = { id: 'mine', base_url: 'https://api.mine.example' };
const SHARED = { name: 'shared', match: { upstreams: ['mine'] } };

function warnings(document: OwnKeysDocument, before: OwnKeysDocument = {}): string[] {
  return ownKeyWarnings(aConfig(before), aConfig(document), (config) =>
    resolveUpstreams(config, BUILT_IN_UPSTREAMS),
  );
}

it('names the group, the upstream and the field to set', () => {
  const [only, ...others] = warnings({ upstreams: [UPSTREAM], groups: [SHARED] });
  expect(others).toEqual([]);
  expect(only).toContain('Group `shared`');
  expect(only).toContain('mine');
  expect(only).toContain('partition_by: ["api_key"]');
});

it.each<[string, OwnKeysDocument]>([
  [
    'keys have partitions',
    { upstreams: [UPSTREAM], groups: [{ ...SHARED, partition_by: ['api_key'] }] },
  ],
  [
    'the upstream has a secret',
    { upstreams: [{ ...UPSTREAM, auth: { secret: 'UPSTREAM_MINE' } }], groups: [SHARED] },
  ],
  [
    'the group has members',
    {
      upstreams: [{ ...UPSTREAM, auth: { secret: 'UPSTREAM_MINE' } }],
      groups: [{ ...SHARED, members: [{ name: 'a', upstream: 'mine' }] }],
    },
  ],
])('is silent where %s', (_, document) => {
  expect(warnings(document)).toEqual([]);
});

it('does not warn of groups that a later change leaves unchanged', () => {
  const before = { upstreams: [UPSTREAM], groups: [SHARED] };
  const limits = { max_concurrency: 3 };
  expect(warnings({ ...before, groups: [{ ...SHARED, limits }] }, before)).toEqual([]);
  const added = { ...before, groups: [SHARED, { ...SHARED, name: 'second' }] };
  expect(warnings(added, before)).toHaveLength(1);
  const withSecret = { ...before, upstreams: [{ ...UPSTREAM, auth: { secret: 'UPSTREAM_MINE' } }] };
  expect(warnings(before, withSecret)).toHaveLength(1);
});
