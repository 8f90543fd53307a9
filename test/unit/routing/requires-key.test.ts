import { expect, it } from 'vitest';
import { configSchema } from '../../../src/contract/config/config.ts';
import { callsThatNeedKey, requiresKey } from '../../../src/routing/key-access.ts';
import { resolveUpstreams } from '../../../src/routing/upstreams.ts';

type RequiresKeyRule = 'auto' | boolean;

const KEY = { id: 'one', hash: `sha256:${'0'.repeat(64)}` };

function configOf(all: RequiresKeyRule, own: RequiresKeyRule, hasKey: boolean) {
  return configSchema.parse({
    require_key: all,
    upstreams: [{ id: 'mine', base_url: 'https://llm.example.com', require_key: own }],
    keys: hasKey ? [KEY] : [],
  });
}

it.each<[RequiresKeyRule, RequiresKeyRule, hasKey: boolean, expected: boolean]>([
  ['auto', 'auto', false, false],
  ['auto', 'auto', true, true],
  [false, 'auto', true, false],
  [true, 'auto', false, true],
  ['auto', false, true, false],
  ['auto', true, false, true],
  [true, false, true, false],
  [false, true, false, true],
])('require_key %s, %s at the upstream, a key: %s: needed %s', (all, own, hasKey, expected) => {
  const config = configOf(all, own, hasKey);
  const mine = resolveUpstreams(config, []).get('mine');
  expect(mine && requiresKey(config, mine)).toBe(expected);
});

it.each<[RequiresKeyRule, RequiresKeyRule, hasKey: boolean, expected: string]>([
  ['auto', 'auto', false, 'none'],
  ['auto', 'auto', true, 'all'],
  [false, true, true, 'some'],
  [true, false, true, 'some'],
  [true, true, false, 'all'],
])(
  'require_key %s, %s at the upstream, a key: %s: %s calls need one',
  (all, own, hasKey, needs) => {
    const config = configOf(all, own, hasKey);
    expect(callsThatNeedKey(config, resolveUpstreams(config, []).values())).toBe(needs);
  },
);
