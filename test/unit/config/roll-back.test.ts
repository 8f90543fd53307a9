// The way back of a configuration: to a version, or one change back with everything else left alone.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isOfDoorsAlone, restored, undone } from '../../../src/config/document-changes.ts';
import {
  configSchema,
  type Config,
  type ConfigInput,
} from '../../../src/contract/config/config.ts';

function configOf(input: ConfigInput): Config {
  return configSchema.parse(input);
}

const hash = (digit: string) => `sha256:${digit.repeat(64)}`;

const group = (name: string) =>
  fc.record({
    name: fc.constant(name),
    limits: fc.record({
      max_concurrency: fc.option(fc.integer({ min: 1, max: 9 })),
      rpm: fc.option(fc.integer({ min: 1, max: 9 })),
    }),
    match: fc.record({ models: fc.subarray(['a', 'b', 'c']) }),
    paused: fc.boolean(),
    members: fc
      .subarray(['openai', 'groq', 'mistral'])
      .map((ids) => ids.map((upstream) => ({ upstream }))),
  });

const config: fc.Arbitrary<Config> = fc
  .record({
    groups: fc
      .tuple(...['one', 'two', 'three', 'four'].map(group))
      .chain((all) => fc.shuffledSubarray(all)),
    keys: fc
      .subarray(['k', 'l'])
      .chain((ids) =>
        fc.tuple(
          ...ids.map((id) =>
            fc.record({ id: fc.constant(id), hash: fc.constant(hash(id === 'k' ? '1' : '2')) }),
          ),
        ),
      ),
    default_upstream: fc.constantFrom(null, 'openai', 'groq'),
  })
  .map((input) => configOf(input as ConfigInput));

/** The part of a configuration that goes back: not its keys. */
const rest = ({ keys: _keys, ...others }: Config) => others;

describe('a change that is undone', () => {
  it('at once, leaves what was there before it, in the order of before', () => {
    fc.assert(
      fc.property(config, config, (before, after) => {
        const { config: back, conflicts } = undone(after, before, after, false);
        expect(rest(back)).toEqual(rest(before));
        expect(conflicts).toEqual([]);
        expect(back.keys).toEqual(after.keys);
      }),
    );
  });

  it('after others that do not meet it, takes nothing of these back', () => {
    fc.assert(
      fc.property(
        config,
        fc.integer({ min: 10, max: 20 }),
        fc.integer({ min: 10, max: 20 }),
        (one, limit, other) => {
          fc.pre(one.groups.length > 0);
          const edit = (field: 'max_concurrency' | 'tpm', to: number) => (from: Config) => ({
            ...from,
            groups: from.groups.map((each, at) =>
              at === 0 ? { ...each, limits: { ...each.limits, [field]: to } } : each,
            ),
          });
          const [bad, good] = [edit('max_concurrency', limit), edit('tpm', other)];
          const { config: back, conflicts } = undone(good(bad(one)), one, bad(one), false);
          expect({ back, conflicts }).toEqual({ back: good(one), conflicts: [] });
        },
      ),
    );
  });

  const of = (max_concurrency: number, more: object = {}) =>
    configOf({ groups: [{ name: 'a', limits: { max_concurrency }, ...more }] });

  it('shows what was changed since, and leaves it or takes it back as it is told', () => {
    const [before, after, now] = [of(5), of(8, { paused: true }), of(10, { paused: true })];
    const conflicts = [{ path: 'groups[a].limits.max_concurrency', was: 5, now: 10 }];
    expect(undone(now, before, after, false)).toEqual({ config: of(10), notes: [], conflicts });
    expect(undone(now, before, after, true)).toEqual({ config: of(5), notes: [], conflicts });
  });

  it('of a group that is gone by now, leaves it gone unless it is told otherwise', () => {
    const none = configOf({});
    const { config: left, conflicts } = undone(none, of(5), of(8), false);
    expect(left).toEqual(none);
    expect(conflicts).toMatchObject([{ path: 'groups[a]', was: { name: 'a' } }]);
    expect(undone(none, of(5), of(8), true).config).toEqual(of(5));
  });

  it('tells no address of warnings and no hash', () => {
    const to = (path: string) =>
      configOf({ webhook: { url: `https://x.example/${path}`, secret: 'WEBHOOK_A' } });
    const { conflicts } = undone(to('third'), to('first'), to('second'), false);
    expect(JSON.stringify(conflicts)).not.toMatch(/first|third/);
    expect(conflicts).toMatchObject([{ path: 'webhook.url', was: 'https://x.example/(hidden)' }]);
  });
});

describe('keys, whatever goes back', () => {
  const at = '2026-11-20T10:00:00Z';
  const then = configOf({
    keys: [
      { id: 'kept', hash: hash('1'), note: 'then' },
      { id: 'rotated', hash: hash('2') },
      { id: 'revoked', hash: hash('3') },
      { id: 'ended', hash: hash('4') },
      { id: 'deleted', hash: hash('5') },
    ],
    admin_keys: [{ id: 'gone', hash: hash('6'), role: 'admin' }],
  });
  const now = configOf({
    keys: [
      { id: 'kept', hash: hash('1'), note: 'now' },
      { id: 'rotated', hash: hash('7') },
      { id: 'revoked', hash: hash('3'), revoked_at: at },
      { id: 'ended', hash: hash('4'), expires_at: at },
      { id: 'made', hash: hash('8') },
    ],
    admin_keys: [{ id: 'new', hash: hash('9'), role: 'viewer' }],
  });

  it('open what they open now, and say so', () => {
    const { config: back, notes } = restored(now, then);
    const doors = ({ keys }: Config) =>
      keys.map(({ id, hash: own, revoked_at, expires_at }) => [id, own, revoked_at, expires_at]);
    expect(doors(back)).toEqual(doors(now));
    expect(back.admin_keys).toEqual(now.admin_keys);
    // Their settings go back like those of groups.
    expect(back.keys[0]?.note).toBe('then');
    expect(notes).toEqual([
      'Keys created since then remain: `made`.',
      'Keys deleted since then remain deleted: `deleted`.',
      'Keys rotated, revoked or given a new expiry since then are left unchanged: `rotated`, `revoked`, `ended`.',
      'Admin keys are not rolled back.',
    ]);
  });

  it('are not touched by the undo of a change of them', () => {
    expect(undone(now, then, now, true).config.keys.map(({ hash: own }) => own)).toEqual(
      now.keys.map(({ hash: own }) => own),
    );
    const revoked = { ...then, keys: then.keys.map((key) => ({ ...key, revoked_at: at })) };
    expect(isOfDoorsAlone(then, revoked)).toBe(true);
    expect(isOfDoorsAlone(then, now)).toBe(false);
  });
});
