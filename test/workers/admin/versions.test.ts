// The versions of the configuration that are kept, and the ways back to them, through the admin API.
import { abortAllDurableObjects } from 'cloudflare:test';
import { beforeEach, describe, expect, it } from 'vitest';
import { configSchema } from '../../../src/contract/config/config.ts';
import { VERSIONS_MAX } from '../../../src/directory/store.ts';
import { directoryOf } from '../../../src/env.ts';
import { gatewayKeyHash } from '../../../src/runtime/secrets.ts';
import { env } from '../support/worker.ts';
import { asAdmin, bodyOf } from './ask.ts';

const limit = async (max_concurrency: number) =>
  bodyOf(
    await asAdmin('PATCH /groups/{name}', {
      params: { name: 'a' },
      body: { limits: { max_concurrency } },
    }),
  ).version;

const limitNow = async () =>
  bodyOf(await asAdmin('GET /groups/{name}', { params: { name: 'a' } })).limits.max_concurrency;

const versionNow = async () => bodyOf(await asAdmin('GET /groups')).version;

beforeEach(async () => {
  bodyOf(await asAdmin('PUT /config', { body: { groups: [], keys: [], admin_keys: [] } }));
  bodyOf(
    await asAdmin('PUT /groups/{name}', {
      params: { name: 'a' },
      body: { match: { models: ['gpt-4o'] }, limits: { max_concurrency: 5 } },
    }),
  );
});

describe('versions', () => {
  it('are listed with who made them, and read one by one, also after a reset', async () => {
    const version = await limit(8);
    await abortAllDurableObjects();
    const { version: inForce, versions } = bodyOf(await asAdmin('GET /config/versions'));
    expect(inForce).toBe(version);
    expect(versions[0]).toMatchObject({ version, actor: 'admin-token', action: 'group a: patch' });
    expect(versions[1]?.version).toBe(version - 1);
    const read = async (at: number) =>
      bodyOf(await asAdmin('GET /config', { query: { version: at } })).groups[0]?.limits
        .max_concurrency;
    expect([await read(version), await read(version - 1)]).toEqual([8, 5]);
  });

  it('that are not stored are named', async () => {
    const answer = await asAdmin('GET /config', { query: { version: 999_999 } });
    expect(answer).toMatchObject({
      status: 422,
      problem: {
        errors: [{ path: 'version', message: expect.stringContaining('Stored versions: ') }],
      },
    });
    const undo = await asAdmin('POST /config/rollback', { body: { undo: 999_999 } });
    expect(undo).toMatchObject({ status: 422, problem: { errors: [{ path: 'undo' }] } });
  });

  it('are the last 50 before the one in force', async () => {
    const directory = directoryOf(env);
    const snapshot = await directory.snapshot(null);
    if (snapshot === null) throw new Error('no configuration');
    for (let more = 0; more <= VERSIONS_MAX; more++) {
      await directory.replace(snapshot.config, snapshot.version + more, 'test', 'again');
    }
    const versions = (await directory.versions()).map(({ version }) => version);
    expect(versions).toHaveLength(VERSIONS_MAX + 1);
    expect(versions[0]).toBe(await versionNow());
  });

  it('of canaries push out no other, and leave one behind', async () => {
    const real = bodyOf(await asAdmin('GET /config/versions')).versions.map(
      ({ version }) => version,
    );
    for (let made = 0; made <= VERSIONS_MAX / 2; made++) {
      const name = `canary-1f-${made}`;
      const body = { match: { models: [`headgate-${name}`] }, limits: { max_concurrency: 0 } };
      bodyOf(await asAdmin('PUT /groups/{name}', { params: { name }, body }));
      bodyOf(await asAdmin('DELETE /groups/{name}', { params: { name } }));
    }
    const after = bodyOf(await asAdmin('GET /config/versions'));
    expect(after.versions.map(({ version }) => version)).toEqual([after.version, ...real]);
    const pruned = await asAdmin('GET /config', { query: { version: after.version - 1 } });
    const kept = `Stored versions: ${real.at(-1)} to ${real[0]}, ${after.version}`;
    expect(pruned).toMatchObject({
      problem: { errors: [{ message: expect.stringContaining(kept) }] },
    });
    // The next change is undone, though a canary made the version before it.
    const version = await limit(8);
    bodyOf(await asAdmin('POST /config/rollback', { body: { undo: version } }));
    expect(await limitNow()).toBe(5);
  });

  it('that change more than groups of a canary count', async () => {
    const { groups } = bodyOf(await asAdmin('GET /config'));
    for (const paused of [true, false]) {
      const canary = { name: 'canary-1f-x', match: { models: ['headgate-canary-1f-x'] } };
      const all = paused ? [...groups, canary] : groups;
      bodyOf(await asAdmin('PUT /config', { body: { groups: all as never, paused } }));
      // The name alone does not make a group one of a canary.
      const name = `canary-${paused}`;
      bodyOf(
        await asAdmin('PUT /groups/{name}', {
          params: { name },
          body: { match: { models: ['gpt'] } },
        }),
      );
    }
    const { version, versions } = bodyOf(await asAdmin('GET /config/versions'));
    const newest = versions.slice(0, 4).map((each) => each.version);
    expect(newest).toEqual([version, version - 1, version - 2, version - 3]);
  });

  it('take as much room as the largest configuration needs', async () => {
    const directory = directoryOf(env);
    const snapshot = await directory.snapshot(null);
    if (snapshot === null) throw new Error('no configuration');
    const keys = Array.from({ length: 4_000 }, (_none, at) => ({
      id: `key-${at}`,
      hash: `sha256:${crypto.getRandomValues(new Uint8Array(32)).toHex()}`,
      note: crypto.getRandomValues(new Uint8Array(80)).toHex(),
    }));
    const { version } = await directory.replace(
      configSchema.parse({ keys }),
      snapshot.version,
      'test',
      'large',
    );
    const large = await directory.configAt(version);
    expect(JSON.stringify(large).length).toBeGreaterThan(1_500_000);
    expect(large?.keys.at(-1)?.hash).toBe(keys.at(-1)?.hash);
  });
});

describe('a rollback', () => {
  it('restores a version as a new one, and is shown before', async () => {
    const then = await versionNow();
    await limit(8);
    bodyOf(await asAdmin('POST /groups/{name}/pause', { params: { name: 'a' } }));
    const now = await versionNow();
    const seen = bodyOf(
      await asAdmin('POST /config/preview', {
        query: { as: 'rollback' },
        body: { version: then } as never,
      }),
    );
    expect(seen).toMatchObject({
      version: now,
      changes: [
        { path: 'groups[a].limits.max_concurrency', from: 8, to: 5 },
        { path: 'groups[a].paused', from: true, to: false },
      ],
      conflicts: [],
      // What a change of each of these groups would be reviewed by.
      effects: [{ group: 'a', now: { in_use: 0, queued: 0 }, last_hour: { granted: 0 } }],
    });
    expect(await versionNow()).toBe(now);
    const done = bodyOf(
      await asAdmin('POST /config/rollback', { body: { version: then }, ifMatch: `"${now}"` }),
    );
    expect(done).toMatchObject({ version: now + 1, groups: ['a'] });
    expect(bodyOf(await asAdmin('GET /groups/{name}', { params: { name: 'a' } }))).toMatchObject({
      paused: false,
      limits: { max_concurrency: 5 },
    });
    const [entry] = bodyOf(await asAdmin('GET /audit')).entries;
    expect(entry).toMatchObject({
      version: now + 1,
      actor: 'admin-token',
      action: `config: restore version ${then}`,
    });
  });

  it('is refused on top of a change that nobody has looked at', async () => {
    const then = await versionNow();
    await limit(8);
    const answer = await asAdmin('POST /config/rollback', {
      body: { version: then },
      ifMatch: `"${then}"`,
    });
    expect(answer.status).toBe(412);
    expect(await limitNow()).toBe(8);
  });

  it('takes one change back, and leaves alone what was changed since', async () => {
    const bad = await limit(8);
    bodyOf(
      await asAdmin('PATCH /groups/{name}', {
        params: { name: 'a' },
        body: { limits: { rpm: 60 } },
      }),
    );
    bodyOf(await asAdmin('PUT /groups/{name}', { params: { name: 'b' }, body: {} }));
    bodyOf(await asAdmin('POST /config/rollback', { body: { undo: bad } }));
    const { groups } = bodyOf(await asAdmin('GET /groups'));
    expect(groups).toMatchObject([{ limits: { max_concurrency: 5, rpm: 60 } }, { name: 'b' }]);
    // To undo the undo is to do it again.
    bodyOf(await asAdmin('POST /config/rollback', { body: { undo: await versionNow() } }));
    expect(await limitNow()).toBe(8);
  });

  it('says what was changed since, and does as it is told about it', async () => {
    const bad = await limit(8);
    await limit(10);
    const refused = await asAdmin('POST /config/rollback', { body: { undo: bad } });
    expect(refused).toMatchObject({
      status: 409,
      problem: {
        errors: [
          {
            path: 'groups[a].limits.max_concurrency',
            message: 'changed since: it would revert to 5, and is now 10',
          },
        ],
      },
    });
    const seen = bodyOf(
      await asAdmin('POST /config/preview', {
        query: { as: 'rollback' },
        body: { undo: bad } as never,
      }),
    );
    expect(seen).toMatchObject({
      changes: [],
      conflicts: [{ path: 'groups[a].limits.max_concurrency', was: 5, now: 10 }],
    });
    const kept = bodyOf(
      await asAdmin('POST /config/rollback', { body: { undo: bad, conflicts: 'keep' } }),
    );
    expect([kept.version, await limitNow()]).toEqual([seen.version, 10]);
    expect(kept.warnings[0]).toMatch(/left unchanged: groups\[a\]\.limits/);
    const all = bodyOf(
      await asAdmin('POST /config/rollback', { body: { undo: bad, conflicts: 'overwrite' } }),
    );
    expect(await limitNow()).toBe(5);
    expect(all.warnings[0]).toMatch(/also reverted: groups\[a\]\.limits/);
  });

  it('says that it wants one way, and only one', async () => {
    for (const body of [{}, { version: 1, undo: 1 }]) {
      const answer = await asAdmin('POST /config/rollback', { body });
      expect(answer).toMatchObject({
        status: 422,
        problem: { detail: expect.stringContaining('expected either "version" or "undo"') },
      });
    }
  });

  it('lets no key come back, and none go', async () => {
    bodyOf(await asAdmin('POST /keys', { body: { id: 'old' } }));
    const revoked = bodyOf(await asAdmin('POST /keys', { body: { id: 'revoked' } }));
    const then = await versionNow();
    bodyOf(await asAdmin('DELETE /keys/{id}', { params: { id: 'old' } }));
    bodyOf(await asAdmin('POST /keys/{id}/revoke', { params: { id: 'revoked' } }));
    const revoking = await versionNow();
    const made = bodyOf(await asAdmin('POST /keys', { body: { id: 'made' } }));
    await limit(8);
    const { warnings } = bodyOf(
      await asAdmin('POST /config/rollback', { body: { version: then } }),
    );
    expect(warnings).toEqual(
      expect.arrayContaining([
        'Keys created since then remain: `made`.',
        'Keys deleted since then remain deleted: `old`.',
        'Keys rotated, revoked or given a new expiry since then are left unchanged: `revoked`.',
      ]),
    );
    const { keys } = bodyOf(await asAdmin('GET /config'));
    expect(keys).toMatchObject([
      { id: 'revoked', hash: await gatewayKeyHash(revoked.secret), revoked_at: expect.any(String) },
      { id: 'made', hash: await gatewayKeyHash(made.secret), revoked_at: null },
    ]);
    const undo = await asAdmin('POST /config/rollback', { body: { undo: revoking } });
    expect(undo).toMatchObject({
      status: 409,
      problem: {
        detail: expect.stringContaining('changed only the existence or validity of keys'),
      },
    });
  });

  it('that leads to what cannot be is refused with what is wrong', async () => {
    bodyOf(await asAdmin('PUT /upstreams/{id}', { params: { id: 'mine' }, body: MINE }));
    const using = bodyOf(
      await asAdmin('PATCH /groups/{name}', {
        params: { name: 'a' },
        body: { match: { upstreams: ['mine'] } },
      }),
    ).version;
    bodyOf(
      await asAdmin('PATCH /groups/{name}', {
        params: { name: 'a' },
        body: { match: { upstreams: [] } },
      }),
    );
    bodyOf(await asAdmin('DELETE /upstreams/{id}', { params: { id: 'mine' } }));
    const answer = await asAdmin('POST /config/rollback', { body: { undo: using + 1 } });
    expect(answer).toMatchObject({
      status: 422,
      problem: { errors: [{ path: 'groups[0].match.upstreams[0]' }] },
    });
  });
});

const MINE = { base_url: 'https://llm.example.com', models: ['llama-*'] };
