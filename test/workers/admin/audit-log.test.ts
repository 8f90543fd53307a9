// The directory's audit log by itself: what it keeps, what it says of a change, and how it is read.
import { runInDurableObject } from 'cloudflare:test';
import { describe, expect, it } from 'vitest';
import {
  configSchema,
  type Config,
  type ConfigInput,
} from '../../../src/contract/config/config.ts';
import type { AuditPage, DirectoryRpc } from '../../../src/contract/rpc/directory-rpc.ts';
import { AUDIT_MAX } from '../../../src/directory/store.ts';
import { env } from '../support/worker.ts';

/** Each test has a directory of its own. */
function directoryNamed(name: string): DirectoryRpc {
  return env.DIRECTORY.getByName(name);
}

function configOf(input: ConfigInput): Config {
  return configSchema.parse(input);
}

/** The newest entries. */
async function entriesOf(directory: DirectoryRpc, limit = 10) {
  return (await directory.auditPage({ limit })).entries;
}

/** Replaces whatever the directory holds. */
async function put(directory: DirectoryRpc, input: ConfigInput): Promise<void> {
  const version = (await directory.snapshot(null))?.version ?? -1;
  await directory.replace(configOf(input), version, 'test', 'config: import');
}

describe('the audit log', () => {
  const sequences = (page: AuditPage): number[] => page.entries.map(({ sequence }) => sequence);

  it('keeps the newest entries only', async () => {
    const directory = directoryNamed('audited');
    for (const action of ['first', 'second', 'third']) await directory.note('x', action);
    await runInDurableObject(directory as never, (_instance, state: DurableObjectState) => {
      // The next one is number 4, so that 4 minus the most is one too many.
      const move = `UPDATE audit_log SET sequence = ? WHERE action = ?`;
      state.storage.sql.exec(move, 4 - AUDIT_MAX, 'first');
      state.storage.sql.exec(move, 5 - AUDIT_MAX, 'second');
    });
    await directory.note('x', 'fourth');
    const kept = (await entriesOf(directory)).map(({ action }) => action);
    expect(kept).toEqual(['fourth', 'third', 'second']);
  });

  it('keeps entries for 90 days', async () => {
    const directory = directoryNamed('aged');
    for (const action of ['too old', 'old enough']) await directory.note('x', action);
    await runInDurableObject(directory as never, (_instance, state: DurableObjectState) => {
      const day = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
      state.storage.sql.exec(`UPDATE audit_log SET at = ? WHERE action = 'too old'`, day(91));
      state.storage.sql.exec(`UPDATE audit_log SET at = ? WHERE action = 'old enough'`, day(89));
    });
    await directory.note('x', 'new');
    const kept = (await entriesOf(directory)).map(({ action }) => action);
    expect(kept).toEqual(['new', 'old enough']);
  });

  it('has what was done without a new version, in its place', async () => {
    const directory = directoryNamed('noted');
    await directory.replace(configOf({}), 0, 'x', 'one');
    await directory.note('y', 'first note');
    await directory.note('y', 'second note');
    await directory.replace(configOf({}), 1, 'x', 'two');
    expect(await entriesOf(directory)).toMatchObject([
      { version: 2, action: 'two' },
      { version: 1, actor: 'y', action: 'second note' },
      { version: 1, actor: 'y', action: 'first note' },
      { version: 1, action: 'one' },
    ]);
  });

  it('says what a change changed, and never a hash', async () => {
    const directory = directoryNamed('changed');
    const hash = (digit: string) => `sha256:${digit.repeat(64)}`;
    await put(directory, { groups: [{ name: 'a' }], keys: [{ id: 'k', hash: hash('1') }] });
    await put(directory, {
      groups: [{ name: 'a', paused: true }],
      keys: [{ id: 'k', hash: hash('2') }],
    });
    const [entry] = await entriesOf(directory, 1);
    expect(entry?.changes).toEqual([
      { path: 'groups[a].paused', from: false, to: true },
      { path: 'keys[k].hash', from: '(hidden)', to: '(hidden)' },
    ]);
    expect(JSON.stringify(await entriesOf(directory))).not.toMatch(/1111|2222/);
  });

  it('is read page by page, and by who, what and when', async () => {
    const directory = directoryNamed('paged');
    for (const [actor, action] of [
      ['x', 'group a: pause'],
      ['y', 'group a: resume'],
      ['x', 'group b: pause'],
      ['x', 'key a: create'],
    ] as const) {
      await directory.note(actor, action);
    }
    const first = await directory.auditPage({ limit: 3 });
    expect(sequences(first)).toEqual([4, 3, 2]);
    const second = await directory.auditPage({ limit: 3, before: first.next ?? 0 });
    expect([sequences(second), second.next]).toEqual([[1], null]);
    expect(sequences(await directory.auditPage({ limit: 9, actor: 'y' }))).toEqual([2]);
    const ofGroup = { limit: 9, actor: 'x', action: 'group ' };
    expect(sequences(await directory.auditPage(ofGroup))).toEqual([3, 1]);
    const now = new Date(Date.now() + 1_000).toISOString();
    expect(sequences(await directory.auditPage({ limit: 9, since: now }))).toEqual([]);
    expect(sequences(await directory.auditPage({ limit: 9, until: now }))).toHaveLength(4);
  });
});
