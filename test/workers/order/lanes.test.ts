// Which lane a call gets, and that lanes decide who is next at the upstream.
import { expect, it } from 'vitest';
import { pool } from '../support/pool.ts';
import { chat } from '../support/worker.ts';
import {
  arrived,
  CHAT,
  configureGroups,
  finish,
  group,
  groupOf,
  keyHeader,
  keyOf,
  queued,
  scene,
  streaming,
  useScenes,
} from './scene.ts';

useScenes('lanes');

const lane = (name: string) => ({ 'headgate-lane': name });

/** The lanes of those who wait, by model. */
async function lanes(): Promise<Record<string, string>> {
  const waiters = await pool(group).waiters();
  return Object.fromEntries(waiters.map((waiter) => [waiter.model ?? '', waiter.lane]));
}

/** Lets calls queue up behind a full slot in this order, and says in which the upstream got them. */
async function orderOf(
  asks: readonly (readonly [label: string, headers: Record<string, string>])[],
  expected: Readonly<Record<string, string>>,
): Promise<(string | null)[]> {
  const [, first = {}] = asks[0] ?? [];
  const key = 'headgate-key' in first ? keyHeader('holder') : {};
  const calls = [await streaming(scene, 'holder', { headers: key })];
  for (const [label, headers] of asks) {
    calls.push(
      await queued(group, label, {
        model: label,
        headers: { ...headers, 'headgate-model': label },
      }),
    );
  }
  expect(await lanes()).toEqual(expected);
  await finish(scene, calls);
  const { peak } = await scene.strict.stats();
  expect(peak).toBe(1);
  return (await arrived(scene)).slice(1);
}

it('headgate-lane puts a call before those of lower lanes that came earlier', async () => {
  await configureGroups(scene, [groupOf(group, 1)]);
  const asks = [
    ['l', lane('low')],
    ['n', {}],
    ['h1', lane('High ')],
    ['h2', lane('high')],
  ] as const;
  const expected = { l: 'low', n: 'normal', h1: 'high', h2: 'high' };
  expect(await orderOf(asks, expected)).toEqual(['h1', 'h2', 'n', 'l']);
});

it('a key gives a lane to calls that name none, and caps those that do', async () => {
  const keys = [
    await keyOf('holder'),
    await keyOf('batch', { lane_default: 'low', lane_max: 'high' }),
    await keyOf('capped'),
    await keyOf('plain', { lane_max: 'high' }),
  ];
  await configureGroups(scene, [groupOf(group, 1)], keys);
  const asks = [
    ['batch-default', keyHeader('batch')],
    ['capped-high', { ...keyHeader('capped'), ...lane('high') }],
    ['plain-high', { ...keyHeader('plain'), ...lane('high') }],
    ['batch-high', { ...keyHeader('batch'), ...lane('high') }],
  ] as const;
  const expected = {
    'batch-default': 'low',
    'capped-high': 'normal',
    'plain-high': 'high',
    'batch-high': 'high',
  };
  expect(await orderOf(asks, expected)).toEqual([
    'plain-high',
    'batch-high',
    'capped-high',
    'batch-default',
  ]);
});

it('a group gives a lane to calls that name none, and caps those that do', async () => {
  const queue = { lane_default: 'low', lane_max: 'normal' } as const;
  await configureGroups(scene, [groupOf(group, 1, { queue })]);
  const asks = [
    ['unnamed', {}],
    ['capped', lane('high')],
    ['named', lane('normal')],
  ] as const;
  const expected = { unnamed: 'low', capped: 'normal', named: 'normal' };
  expect(await orderOf(asks, expected)).toEqual(['capped', 'named', 'unnamed']);
});

it('lane_rules put models into lanes, the first that matches, unless the call names one', async () => {
  const lane_rules = [
    { models: ['title-*'], lane: 'low' as const },
    { models: ['title-x', 'urgent'], lane: 'high' as const },
  ];
  await configureGroups(scene, [groupOf(group, 1, { queue: { lane_rules } })]);
  const asks = [
    ['title-x', {}],
    ['other', {}],
    ['urgent', {}],
    ['title-said', lane('high')],
  ] as const;
  const expected = { 'title-x': 'low', other: 'normal', urgent: 'high', 'title-said': 'high' };
  expect(await orderOf(asks, expected)).toEqual(['urgent', 'title-said', 'other', 'title-x']);
});

it('a lane below gets its share of the turns though higher ones wait', async () => {
  const lane_shares = { normal: 0.5, low: 0 };
  await configureGroups(scene, [groupOf(group, 1, { queue: { lane_shares } })]);
  const high = (at: number) => [`h${at}`, lane('high')] as const;
  const normal = ['n1', 'n2'].map((name) => [name, {}] as const);
  const asks = [['l', lane('low')], ...normal, high(1), high(2), high(3), high(4)] as const;
  const highs = { h1: 'high', h2: 'high', h3: 'high', h4: 'high' } as const;
  const expected = { l: 'low', n1: 'normal', n2: 'normal', ...highs } as const;
  expect(await orderOf(asks, expected)).toEqual(['h1', 'h2', 'n1', 'h3', 'n2', 'h4', 'l']);
});

it.each([
  ['headgate-lane', 'urgent'],
  ['headgate-weight', '0'],
  ['headgate-weight', '1.5'],
  ['headgate-weight', 'many'],
  ['headgate-agent-started-at', 'yesterday'],
  ['headgate-keepalive', 'yes'],
])('%s: %s is refused by its name', async (name, value) => {
  await configureGroups(scene, [groupOf(group, 1)]);
  const response = await chat(CHAT, 'bad', { headers: { [name]: value } });
  expect(response.status).toBe(400);
  expect(response.headers.get('headgate-reason')).toBe('header_invalid');
  const { error } = await response.json<{ error: { message: string; code: string } }>();
  expect(error).toMatchObject({ code: 'header_invalid', message: expect.stringContaining(name) });
  expect((await scene.strict.stats()).total).toBe(0);
});

it('a caller without a gateway key gets lane high only if the group allows it', async () => {
  await configureGroups(scene, [groupOf(group, 1, { queue: { lane_max: null } })]);
  const expected = { claims: 'normal', plain: 'normal' } as const;
  expect(
    await orderOf(
      [
        ['plain', {}],
        ['claims', lane('high')],
      ],
      expected,
    ),
  ).toEqual(['plain', 'claims']);
});
