// Warnings about a configuration whose WebSockets are refused or bounded.
import { expect, it } from 'vitest';
import { checkConfig } from '../../../../src/config/check-config.ts';
import { importConfig } from '../../../../packages/import/src/import-config.ts';
import { BUILT_IN_UPSTREAMS } from '../../../../src/providers/catalog.ts';
import { aConfig } from '../../routing/fixtures.ts';

const OPTIONS = { privateUpstreams: false, jurisdiction: null };
const KEY = { id: 'a', hash: `sha256:${'0'.repeat(64)}` };

it.each<[string, object, object, object[], number]>([
  ['by models, with a limited key', { models: ['m'] }, {}, [{ ...KEY, groups: ['g'] }], 1],
  [
    'by models, with the key of the operator',
    { models: ['m'] },
    { auth: { secret: 'UPSTREAM_X' } },
    [],
    1,
  ],
  ['by models, with keys of callers', { models: ['m'] }, {}, [], 0],
  ['by upstreams', {}, {}, [{ ...KEY, groups: ['g'] }], 0],
])('sessions of any route in a group that goes %s', (_, match, upstream, keys, warned) => {
  const config = aConfig({
    upstreams: [{ id: 'x', base_url: 'https://x.example', websocket: 'session', ...upstream }],
    groups: [{ name: 'g', match: { upstreams: ['x'], ...match } }],
    keys: keys as never[],
  });
  const { warnings } = checkConfig(config, BUILT_IN_UPSTREAMS, OPTIONS);
  expect(warnings.filter((text) => text.includes('websocket: session'))).toHaveLength(warned);
});

it.each([
  [{}, 1],
  [{ turn_connections_each: 500 }, 0],
  [{ websocket: 'auto' }, 0],
])('connections of turns that a document does not bound are noted: %j', (fields, noted) => {
  const upstream = { id: 'x', base_url: 'https://x.example', websocket: 'turns', ...fields };
  const imported = importConfig({ upstreams: [upstream] });
  const notes = imported.ok ? imported.notes : [];
  expect(notes.filter((text) => text.startsWith('`turn_connections_each`'))).toHaveLength(noted);
});
