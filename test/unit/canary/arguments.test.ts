import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
// What somebody has consented to, and what is asked of them before anything is sent.
import { expect, it } from 'vitest';
import { consentsOf, readArguments } from '../../../scripts/canary/arguments.ts';
import { CHECKS } from '../../../scripts/canary/checks.ts';
import { hide } from '../../../scripts/canary/hide.ts';
import { paceOf } from '../../../scripts/canary/pace.ts';
import { planOf, refusedOf } from '../../../scripts/canary/plan.ts';

const TOKEN = 'a-token-that-nobody-sees';
const read = (...args: readonly string[]) =>
  readArguments(['--url', 'https://headgate.test/some/path', ...args], { ADMIN_TOKEN: TOKEN });

/** Ids of what would run, or the refusals. */
function planned(...args: readonly string[]): string[] {
  const given = read(...args);
  if (given === null) throw new Error('help');
  const choice = { only: given.only, consents: consentsOf(given) };
  const plan = planOf(CHECKS, choice);
  const refused = refusedOf(plan, choice);
  return refused.length > 0
    ? refused
    : plan.flatMap(({ check, leftOut }) => (leftOut === null ? [check.id] : []));
}

it('takes the origin of the URL, and the token from the environment or the line', () => {
  expect(read()).toMatchObject({ url: 'https://headgate.test', token: TOKEN, load: 1 });
  const notes: string[] = [];
  const args = ['--url', 'https://headgate.test', '--token', 'other'];
  expect(readArguments(args, {}, (note) => notes.push(note))).toMatchObject({ token: 'other' });
  expect(notes).toEqual([expect.stringContaining('Use --token-file FILE')]);
  expect(read('--help')).toBeNull();
});

it('reads the token from a file', async () => {
  const path = join(await mkdtemp(join(tmpdir(), 'headgate-token-')), 'token');
  await writeFile(path, 'from-a-file\n', { mode: 0o600 });
  expect(read('--token-file', path)).toMatchObject({ token: 'from-a-file' });
  expect(() => read('--token-file', `${path}-none`)).toThrow('cannot be read');
  await rm(path);
});

it('runs nothing expensive that was not asked for', () => {
  const cheap = ['latency', 'isolates', 'release', 'silence', 'upload', 'feed', 'cost'];
  expect(planned()).toEqual(cheap);
  expect(planned('--allow-load')).toEqual([...cheap, 'overload', 'memory']);
  expect(planned('--upstream', 'up', '--model', 'm', '--allow-spend')).toEqual([
    ...cheap,
    'egress',
  ]);
  expect(planned('--only', 'deploy,cost', '--during-deploy')).toEqual(['cost', 'deploy']);
});

it.each([
  ['overload', '--allow-load'],
  ['memory', '--allow-load'],
  ['deploy', '--during-deploy'],
  ['egress', '--allow-spend'],
])('refuses %s by name without %s', (id, flag) => {
  expect(planned('--only', id)).toEqual([expect.stringContaining(flag)]);
});

it.each([
  [['--upstream', 'up', '--model', 'm'], '--allow-spend: required with --upstream'],
  [['--upstream', 'up', '--allow-spend'], '--model: required with --upstream'],
  [['--only', 'nonsense'], '--only: expected one or more of latency'],
  [['--load', '7'], '--load: '],
  [['--waits-s', '0'], '--waits-s: '],
  [['--nonsense'], '--nonsense'],
  [['--url', 'nonsense'], '--url: expected the http or https URL of a deployment'],
])('says what is wrong with %j', (args, says) => {
  expect(() => read(...args)).toThrow(says);
});

it('says nothing of keys that are wrong', () => {
  const env = { ADMIN_TOKEN: TOKEN, HEADGATE_KEY: 'sk-a-wrong-one' };
  const args = ['--url', 'https://headgate.test'];
  expect(() => readArguments(args, env)).toThrow(/^HEADGATE_KEY: (?!.*sk-a-wrong-one)/);
  expect(() => readArguments(args, {})).toThrow('--token: expected --token-file FILE');
});

it('takes secrets out of whatever is told', () => {
  const text = `refused: Bearer ${TOKEN} and sk-1, sk-1`;
  expect(hide(text, [TOKEN, null, 'sk-1'])).toBe('refused: Bearer *** and ***, ***');
});

it('waits for minutes only where that was asked for', () => {
  const waits = (long: boolean, waitsS: number[] | null) =>
    paceOf({ load: 1, long, waitsS }).silence.waitsMs;
  expect(waits(false, null)).toEqual([60_000]);
  expect(waits(true, null)).toEqual([60_000, 300_000, 420_000, 600_000]);
  expect(waits(true, [1, 2])).toEqual([1_000, 2_000]);
});

it('takes a key that is set to nothing for none', () => {
  const none = { ADMIN_TOKEN: TOKEN, HEADGATE_KEY: '', PROVIDER_KEY: '' };
  const given = readArguments(['--url', 'https://headgate.test'], none);
  expect(given).toMatchObject({ gatewayKey: null, providerKey: null });
});

it('repeats nothing that stands where an option should, which may be the token', () => {
  expect(() => read(TOKEN)).toThrow('Unexpected argument');
});
