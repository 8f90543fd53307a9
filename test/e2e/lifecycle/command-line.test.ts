// Each command of `headgate` as people and scripts run it: a process, its output, its exit code.
import { chmod, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from '../../../scripts/serve/build.ts';
import { runToEnd, type Ended } from '../support/command-line.ts';
import { openChat, type LifecycleOpenCall } from '../support/lifecycle-call.ts';
import {
  practiceConfig,
  startStage,
  STAGE_TOKEN,
  type LifecycleStage,
} from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

let stage: LifecycleStage;
const open: LifecycleOpenCall[] = [];

beforeAll(async () => {
  stage = await startStage({ config: practiceConfig(2), upstream: { silentAfterChunks: 1 } });
});

afterEach(async () => {
  for (const call of open.splice(0)) call.leave('FIN');
  await stage.admin.untilGroup('practice', { in_use: 0, queued: 0 });
});

afterAll(() => stage.close());

interface CommandLineReport {
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string;
}

function headgate(
  args: readonly string[],
  { env = {}, input = '' }: CommandLineReport = {},
): Promise<Ended> {
  return runToEnd([process.execPath, 'scripts/headgate.ts', ...args], {
    cwd: ROOT,
    input,
    env: {
      PATH: process.env['PATH'],
      HEADGATE_URL: stage.url(),
      HEADGATE_TOKEN: STAGE_TOKEN,
      ...env,
    },
  });
}

async function jsonOf<Answer>(...args: string[]): Promise<Answer> {
  const { code, out, err } = await headgate([...args, '--json']);
  expect([code, err]).toEqual([0, '']);
  return JSON.parse(out) as Answer;
}

/** Fills the group: two in flight, one waits. */
async function fill(): Promise<void> {
  for (const label of ['one', 'two', 'three']) {
    open.push(openChat(stage.url(), { label, headers: { 'headgate-agent': `run-${label}` } }));
  }
  await stage.admin.untilGroup('practice', { in_use: 2, queued: 1 });
}

async function file(name: string, text: string | Uint8Array): Promise<string> {
  const path = join(stage.dataDir, name);
  await writeFile(path, text);
  return path;
}

/** The current configuration with another limit. It sets leases, so that there is no note about them. */
const documentWith = (limit: number): Promise<string> => {
  const document = Object.assign({ leases: 'keys' }, practiceConfig(limit)(stage.upstream));
  return file('wanted.json', JSON.stringify(document));
};

describe('looking', () => {
  it('status, leases and waiters show what there is, as tables and as JSON', async () => {
    await fill();
    const status = await headgate(['status']);
    expect(status.code).toBe(0);
    expect(status.out).toMatch(/^GROUP +STATE +IN USE +LIMIT/);
    expect(status.out).toMatch(/^practice +full +2 +2 +1 /m);
    expect(status.err).toMatch(/^Configuration: version \d+\.$/m);
    expect(status.err).toMatch(/^Needs attention: /m);
    const one = await jsonOf<{ groups: { name: string; in_use: number }[] }>('status', 'practice');
    expect(one.groups).toMatchObject([{ name: 'practice', in_use: 2 }]);

    const leases = await headgate(['leases']);
    expect(leases.out).toMatch(/run-one/);
    const held = await jsonOf<{ leases: { group: string }[] }>('leases', 'practice');
    expect(held.leases.map(({ group }) => group)).toEqual(['practice', 'practice']);
    const waiters = await headgate(['waiters']);
    expect(waiters.out).toMatch(/practice +0 .*run-three/);
    const waiting = await jsonOf<{ waiters: { agent: string }[] }>('waiters');
    expect(waiting.waiters.map(({ agent }) => agent)).toEqual(['run-three']);
  });

  it('refusals lists calls that no group was asked for, with what to do', async () => {
    const headers = { 'x-request-id': 'req-cli' };
    const answer = await fetch(`${stage.url()}/nowhere/v1/models`, { headers });
    expect(answer.headers.get('headgate-reason')).toBe('upstream_unknown');
    let listed: Ended | null = null;
    await until('the refused call is listed', async () => {
      listed = await headgate(['refusals', 'req-cli']);
      return /^upstream_unknown +1 /m.test(listed.out);
    });
    expect(listed).toMatchObject({
      code: 0,
      err: expect.stringContaining('upstream_unknown: Correct the base URL of the client'),
    });
    const known = await jsonOf<{ count: number }>('refusals', '--reason', 'upstream_unknown');
    expect(known.count).toBeGreaterThan(0);
    const wrong = await headgate(['refusals', '--reason', 'upstream_unknwn']);
    expect(wrong.code).toBe(7);
    expect(wrong.err).toContain('Did you mean `upstream_unknown`');
  });

  it('a group that is not there is named with the nearest, and ends with 5', async () => {
    const { code, out, err } = await headgate(['status', 'practise']);
    expect([code, out]).toEqual([5, '']);
    expect(err).toContain('Group `practise` does not exist. Did you mean practice?');
    expect((await headgate(['pause', 'nothing-like-it'])).err).toContain('Groups: practice.');
  });

  it('names of callers cannot write on the terminal', async () => {
    const headers = { 'headgate-agent': 'a\u009b2Jb' };
    open.push(openChat(stage.url(), { label: 'one', headers }));
    await stage.admin.untilGroup('practice', { in_use: 1 });
    const { out } = await headgate(['leases']);
    expect(out).toContain('practice');
    expect(out).not.toContain('\u009b');
  });
});

describe('acting', () => {
  it('release takes a slot back, wherever it is, and says so of one that is nowhere', async () => {
    await fill();
    const held = await jsonOf<{ leases: { id: string }[] }>('leases');
    const [lease] = held.leases;
    const released = await headgate(['release', lease?.id ?? '']);
    expect(released).toMatchObject({ code: 0 });
    expect(released.out).toContain('in group `practice` is being released');
    await stage.admin.untilGroup('practice', { in_use: 2, queued: 0 });
    expect((await headgate(['release', 'nowhere'])).code).toBe(5);
    expect((await headgate(['release', 'nowhere', '--group', 'practice'])).code).toBe(5);
  });

  it('pause and resume, limit and its effect at once', async () => {
    await fill();
    expect(await headgate(['pause', 'practice'])).toMatchObject({
      code: 0,
      out: 'practice is paused.\n',
    });
    expect((await headgate(['status'])).out).toMatch(/^practice +paused/m);
    expect((await headgate(['resume', 'practice'])).out).toBe('practice is resumed.\n');
    const raised = await headgate(['limit', 'practice', '3']);
    expect(raised.out).toMatch(/^practice: 2 → 3 slots \(version \d+\)\.\n1 queued call started/);
    await stage.admin.untilGroup('practice', { in_use: 3, queued: 0 });
    const lowered = await jsonOf<{ from: number; to: number }>('limit', 'practice', '2');
    expect(lowered).toMatchObject({ from: 3, to: 2, now: { in_use_above: 1 } });
    expect((await headgate(['limit', 'practice', 'many'])).code).toBe(2);
  });
});

describe('an automatic group', () => {
  it('gets its limit in an entry of its own, and an unknown one is not made', async () => {
    const limited = await headgate(['limit', 'auto:openai', '2']);
    expect([limited.code, limited.err]).toEqual([
      0,
      'Created a configuration entry for group `auto:openai`.\n',
    ]);
    // Nobody has called it, so that what it had before is not known.
    const again = await headgate(['limit', 'auto:openai', '3']);
    expect([again.code, again.out, again.err]).toEqual([
      0,
      expect.stringMatching(/^auto:openai: 3 slots \(version \d+\)\.$/m),
      '',
    ]);
    expect((await headgate(['limit', 'auto:nowhere', '2'])).code).toBe(5);
    expect((await headgate(['apply', await documentWith(2), '--yes'])).code).toBe(0);
  });
});

describe('what was begun', () => {
  it('is told to scripts where one of several groups is not there', async () => {
    const { code, out } = await headgate(['pause', 'practice', 'nowhere', '--json']);
    expect(code).toBe(5);
    expect(JSON.parse(out)).toMatchObject([{ group: 'practice', paused: true }]);
    expect((await headgate(['resume', 'practice'])).code).toBe(0);
  });

  it('is done to its end where nobody reads what is said of it', async () => {
    const unread = '("$@"; echo "code $?" >&2) | true';
    const program = [process.execPath, 'scripts/headgate.ts'];
    const env = {
      PATH: process.env['PATH'],
      HEADGATE_URL: stage.url(),
      HEADGATE_TOKEN: STAGE_TOKEN,
    };
    const run = (...args: string[]) =>
      runToEnd(['sh', '-c', unread, 'sh', ...program, ...args], { cwd: ROOT, env });
    expect((await run('pause', 'practice', 'practice')).err).toBe('code 0\n');
    expect((await headgate(['status'])).out).toMatch(/^practice +paused/m);
    expect((await run('resume', 'practice')).err).toBe('code 0\n');
  });
});

describe('for a while', () => {
  interface CommandLineTemporary {
    readonly groups: { temporary: { field: string; until: string }[] }[];
  }

  const temporaryOf = async (): Promise<CommandLineTemporary['groups'][0]['temporary']> => {
    const { groups } = await jsonOf<CommandLineTemporary>('status', 'practice');
    return groups[0]?.temporary ?? [];
  };

  it('a pause and a limit have an end, and go back by themselves', async () => {
    const paused = await headgate(['pause', 'practice', '--until', '2026-01-01T00:00:00Z']);
    expect(paused.code).toBe(7);
    const raised = await headgate(['limit', 'practice', '9', '--for', '2h']);
    expect(raised.out).toMatch(/^practice: 2 → 9 slots until \S+Z \(version/);
    expect((await headgate(['pause', 'practice', '--for', '1h'])).out).toMatch(/is paused until/);
    expect((await temporaryOf()).map(({ field }) => field).toSorted()).toEqual([
      'limits.max_concurrency',
      'paused',
    ]);
    expect((await headgate(['pause', 'practice', '--for', '1s'])).code).toBe(0);
    const fields = async () => (await temporaryOf()).map(({ field }) => field);
    const isOver = async () => !(await fields()).includes('paused');
    await until('it goes on by itself', isOver, { withinMs: 30_000 });
    expect((await headgate(['status'])).out).not.toMatch(/^practice +paused/m);
    expect((await headgate(['limit', 'practice', '2'])).code).toBe(0);
    expect(await temporaryOf()).toEqual([]);
    expect((await headgate(['pause', 'practice', '--for', 'ever'])).code).toBe(2);
  });
});

describe('configuring', () => {
  it('apply shows the plan, does nothing without a yes, and then does it', async () => {
    const path = await documentWith(4);
    const differs = await headgate(['diff', path]);
    expect(differs.code).toBe(1);
    expect(differs.out).toContain('groups[practice].limits.max_concurrency: 2 → 4');
    for (const input of ['', 'n\n', 'yesterday\n']) {
      const no = await headgate(['apply', path], { input });
      expect(no.code).toBe(1);
      expect(no.out).toContain('Nothing was changed.');
    }
    const asked = await headgate(['apply', path, '--json'], { input: 'n\n' });
    expect(JSON.parse(asked.out)).toMatchObject({ applied: false });
    expect(asked.err).toMatch(/max_concurrency: 2 → 4\nApply these changes\?/);
    expect((await stage.admin.group('practice')).limit.effective).toBe(2);
    const yes = await headgate(['apply', path], { input: 'y\n' });
    expect(yes.code).toBe(0);
    expect(yes.out).toMatch(/max_concurrency: 2 → 4\nApplied as version \d+\./);
    expect(await headgate(['diff', path])).toMatchObject({ code: 0 });
    const again = await jsonOf<{ applied: boolean }>('apply', path, '--yes');
    expect(again.applied).toBe(false);
  });

  it('a plan shows of a new group what is not as usual', async () => {
    const own = practiceConfig(2)(stage.upstream) as { groups: object[] };
    const added = { name: 'added', match: { models: ['m'] }, limits: { rpm: 5 } };
    const document = { ...own, groups: [...own.groups, added] };
    const { out } = await headgate(['diff', await file('more.json', JSON.stringify(document))]);
    expect(out).toContain(`groups[added]: (none) → ${JSON.stringify(added)}\n`);
  });

  it('a plan warns about a group that counts own keys together before it is applied', async () => {
    const own = practiceConfig(2)(stage.upstream) as { groups: object[] };
    const warned =
      "Group `together` counts calls with callers' own provider keys for `practice` together";
    const documentOf = (more: object): Promise<string> => {
      const added = { name: 'together', match: { upstreams: ['practice'] }, ...more };
      const document = { leases: 'keys', ...own, groups: [...own.groups, added] };
      return file('together.json', JSON.stringify(document));
    };
    const path = await documentOf({});
    for (const args of [
      ['diff', path],
      ['apply', path],
      ['apply', path, '--json'],
    ]) {
      const { code, err } = await headgate(args, { input: 'n\n' });
      expect([args, code]).toEqual([args, 1]);
      expect(err).toContain(warned);
      expect(err).toContain('Set `partition_by: ["api_key"]`');
    }
    const apart = await headgate(['diff', await documentOf({ partition_by: ['api_key'] })]);
    expect(apart.err).not.toContain('own provider keys');
  });

  it('rollback lists the versions, takes one change back, and goes back to a version', async () => {
    await headgate(['apply', await documentWith(7), '--yes']);
    const { version } = await jsonOf<{ version: number }>('rollback');
    const undone = await headgate(['rollback', '--undo', String(version), '--yes']);
    expect(undone.code).toBe(0);
    expect(undone.out).toMatch(/max_concurrency: 7 → \d/);
    const back = await headgate(['rollback', String(version)], { input: 'yes\n' });
    expect(back.out).toContain('→ 7');
    expect((await stage.admin.group('practice')).limit.effective).toBe(7);
    expect((await headgate(['rollback', '1', '--undo', '1'])).code).toBe(2);
    expect((await headgate(['limit', 'practice', '2'])).code).toBe(0);
  });

  it('a change that came between what was shown and the yes is a conflict', async () => {
    // A server that answers as Headgate does when somebody was faster.
    const server = createServer((request, response) => {
      request.resume();
      const isPreview = request.url?.startsWith('/admin/api/config/preview') === true;
      const version = { etag: '"1"', 'content-type': 'application/json' };
      response.writeHead(isPreview ? 200 : 412, version);
      const plan = {
        version: 1,
        changes: [{ path: 'a', to: 1 }],
        changes_omitted: 0,
        warnings: [],
      };
      const problem = { detail: `changed meanwhile, If-Match was ${request.headers['if-match']}` };
      response.end(JSON.stringify(isPreview ? plan : problem));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const env = { HEADGATE_URL: `http://127.0.0.1:${port}` };
    const { code, err } = await headgate(['apply', await documentWith(9), '-y'], { env });
    server.close();
    expect(code).toBe(6);
    expect(err).toContain('changed meanwhile, If-Match was "1"');
  });

  it('a document that is wrong ends with 7 and each field', async () => {
    const wrong = await file('wrong.yaml', 'groups:\n- name: a\n  limits: { rpm: x, tpm: -1 }\n');
    const { code, err } = await headgate(['apply', wrong, '--yes']);
    expect(code).toBe(7);
    expect(err).toContain('groups[0].limits.rpm');
    expect(err).toContain('groups[0].limits.tpm');
    expect((await headgate(['diff', await file('no.json', '{ "groups": '), '--json'])).code).toBe(
      7,
    );
    expect((await headgate(['diff', 'nowhere.yaml'])).code).toBe(2);
  });

  it.each([
    ['contains itself', 'a: &a [*a]\n', 'contains itself: the YAML alias at line 1, column 8'],
    ['is nested too deeply', `${'['.repeat(300)}${']'.repeat(300)}`, 'more than 100 levels deep'],
    ['is no text', Buffer.from([0xff, 0xfe]), 'is not UTF-8 text'],
  ])(
    'every command ends with 2 and prints no stack for a document that %s',
    async (_name, text, said) => {
      const path = await file('unreadable.yaml', text);
      for (const args of [
        ['diff', path],
        ['apply', path, '--yes'],
        ['import', 'litellm', path],
        ['import', 'clawith', path],
        ['import', 'picoclaw', path],
      ]) {
        const { code, err } = await headgate(args);
        expect([args, code]).toEqual([args, 2]);
        expect(err).toContain(said);
        expect(err).not.toContain('    at ');
      }
    },
  );

  it('reports what apply refuses in an import', async () => {
    const flags = 'ai-concurrency-shaper -upstream http://localhost:9 -failure-hold 90s';
    const { code, out, err } = await headgate(['import', 'shaper', '-'], { input: flags });
    expect(code).toBe(0);
    expect(out).toContain('failure_hold_ms: 60000');
    expect(err).toContain("counts calls with callers' own provider keys");
    expect(err).toContain('-failure-hold 90s: 60000 is the maximum of a group and');
    expect(err).toContain('On Cloudflare, headgate apply rejects this: upstreams[0].base_url');
    expect((await headgate(['diff', await file('imported.yaml', out)])).code).toBe(1);
  });

  it('prints the id of a correction whose answer was lost', async () => {
    const ids: string[] = [];
    const server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (part: string) => {
        body += part;
      });
      request.on('end', () => {
        ids.push((JSON.parse(body) as { id: string }).id);
        response.writeHead(503, { 'content-type': 'application/json' });
        response.end('{"detail": "not reached"}');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const env = { HEADGATE_URL: `http://127.0.0.1:${port}` };
    const args = ['budgets', 'correct', 'practice', '--by', '-1'];
    try {
      const lost = await headgate(args, { env });
      expect(lost.code).toBe(3);
      expect(lost.err).toContain(`--id ${ids[0]}`);
      await headgate([...args, '--id', ids[0] ?? ''], { env });
      expect(ids).toEqual([ids[0], ids[0]]);
    } finally {
      server.close();
    }
  });

  it('corrections of a budget are made, listed and undone', async () => {
    const by = (usd: string) => ['budgets', 'correct', 'practice', '--by', usd, '--period', 'day'];
    const raised = await headgate([...by('2.5'), '--id', 'one', '--note', 'a wrong price']);
    expect([raised.code, raised.out]).toEqual([
      0,
      'practice: $0 spent in the current hour, $2.5 today, $2.5 this month (UTC).\n',
    ]);
    expect(raised.err).toContain('headgate budgets undo practice one');
    expect((await headgate(by('-1'))).out).toContain('$1.5 today');
    const listed = await headgate(['budgets', 'list', 'practice']);
    expect(listed.out).toMatch(/^one .* day +2\.5 .*a wrong price/m);
    const undone = await headgate(['budgets', 'undo', 'practice', 'one']);
    expect(undone.out).toContain('$0 this month');
    expect((await headgate(['budgets', 'undo', 'practice', 'two'])).code).toBe(5);
    expect((await headgate(['budgets', 'correct', 'practise', '--by', '1'])).code).toBe(5);
    for (const usd of ['0', 'much', '1e9']) expect((await headgate(by(usd))).code).toBe(2);
    expect((await headgate(['budgets', 'correct', 'practice'])).code).toBe(2);
  });

  it('a first key that would lock callers out is asked for on a terminal, and reported elsewhere', async () => {
    open.push(openChat(stage.url(), { label: 'without a key' }));
    await until('the caller is counted', async () => {
      const listed = await stage.admin.request('GET', '/keyless-callers');
      const { first_key: first } = (await listed.json()) as { first_key: { callers: number } };
      return first.callers > 0;
    });
    const command = `${process.execPath} scripts/headgate.ts keys create first`;
    const env = {
      PATH: process.env['PATH'],
      HEADGATE_URL: stage.url(),
      HEADGATE_TOKEN: STAGE_TOKEN,
    };
    const onTerminal = ['script', '-qec', command, '/dev/null'];
    const refused = await runToEnd(onTerminal, { cwd: ROOT, input: 'n\n', env });
    expect(refused.out).toContain('will be rejected with `key_missing`');
    expect(refused.out).toContain('Nothing was changed.');
    expect(refused.code).toBe(1);
    const made = await headgate(['keys', 'create', 'first']);
    expect(made).toMatchObject({
      code: 0,
      err: expect.stringContaining('will be rejected with `key_missing`'),
    });
    const before = practiceConfig(2)(stage.upstream);
    expect((await stage.admin.request('PUT', '/config', before)).status).toBe(200);
    const sure = await headgate(['keys', 'create', 'first', '--yes']);
    expect(sure.err).not.toContain('[y/N]');
    expect((await stage.admin.request('PUT', '/config', before)).status).toBe(200);
  });

  it('keys are made, listed, rotated, revoked and forgotten; the key alone is on standard output', async () => {
    const made = await headgate([
      'keys',
      'create',
      'team-a',
      '--groups',
      'practice',
      '--slots',
      '2',
    ]);
    expect(made.code).toBe(0);
    expect(made.out).toMatch(/^hg_\w+\n$/);
    const rotated = await headgate(['keys', 'rotate', 'team-a', '--grace', '60']);
    expect(rotated.out).toMatch(/^hg_\w+\n$/);
    expect(rotated.out).not.toBe(made.out);
    const { keys } = await jsonOf<{ keys: { id: string; groups: string[] }[] }>('keys', 'list');
    expect(keys).toMatchObject([{ id: 'team-a', groups: ['practice'] }]);
    expect((await headgate(['keys', 'revoke', 'team-a'])).out).toContain('is revoked');
    expect((await headgate(['keys', 'list'])).out).toMatch(/^team-a +revoked +practice/m);
    expect((await headgate(['keys', 'create', 'team-a'])).code).toBe(6);
    expect((await headgate(['keys', 'delete', 'team-b'])).code).toBe(5);
    // The last key stays: without one everybody would come in.
    expect((await headgate(['keys', 'delete', 'team-a'])).code).toBe(6);
    const cleared = await documentWith(2);
    expect((await headgate(['apply', cleared, '--yes'])).code).toBe(0);
  });
});

describe('doctor', () => {
  it('tells what is set up, what a provider answers, and makes one call if a model is named', async () => {
    stage.upstream.configure({ silentAfterChunks: null });
    // The callers of the tests above left all their calls: a group counts as serving once it has served one.
    await openChat(stage.url(), { label: 'served' }).ended;
    await stage.admin.untilGroup('practice', { in_use: 0 });
    const well = await headgate(['doctor', stage.url(), '--model', 'practice/gpt-4o'], {
      env: { HEADGATE_URL: '', HEADGATE_KEY: 'sk-caller' },
    });
    stage.upstream.configure({ silentAfterChunks: 1 });
    expect(well.out).toMatch(/^token +ok +admin-token, role admin$/m);
    expect(well.out).toMatch(/^practice +ok +returned \d+ in \d+ ms/m);
    expect(well.out).toMatch(/^test call +ok +the provider returned 200 in \d+ ms/m);
    expect(well.out).toMatch(/^clock +ok /m);
    expect(well.out).toMatch(/^versions +ok +Headgate \d+\.\d+\.\d+ on both sides/m);
    // The calls that the tests above had refused are the only fault.
    expect(well.out).not.toMatch(/^(?!refused calls).* (?:missing|failed) /m);
  });

  it('ends with 1 where something is missing, and names it', async () => {
    const config = practiceConfig(2)(stage.upstream) as { upstreams: object[] };
    const auth = { secret: 'UPSTREAM_NOT_THERE' };
    const upstreams = config.upstreams.map((upstream) => ({ ...upstream, auth }));
    await headgate(['apply', await file('s.json', JSON.stringify({ ...config, upstreams })), '-y']);
    const { code, out } = await headgate(['doctor', '--json']);
    expect(code).toBe(1);
    const { findings } = JSON.parse(out) as { findings: { result: string; detail: string }[] };
    const missing = findings.filter(({ result }) => result === 'missing');
    expect(missing.some(({ detail }) => detail.includes('UPSTREAM_NOT_THERE'))).toBe(true);
    await headgate(['apply', await documentWith(2), '--yes']);
  });

  it('ends with 3 where there is no Headgate', async () => {
    expect((await headgate(['doctor', stage.upstream.url])).code).toBe(3);
  });
});

describe('whoever asks', () => {
  it('a wrong token ends with 4 and is not repeated, wherever it stands', async () => {
    const env = { HEADGATE_TOKEN: 'hga_wrong-4711' };
    const wrong = await headgate(['status'], { env });
    expect(wrong.code).toBe(4);
    expect(wrong.err).toContain('Set HEADGATE_TOKEN');
    const misplaced = [
      await headgate(['hga_wrong-4711'], { env: { HEADGATE_TOKEN: '' } }),
      await headgate(['status', '--token', 'wrong-4711', 'a', 'wrong-4711']),
      await headgate(['status', '--url', 'wrong-4711', '--token=wrong-4711']),
    ];
    expect(misplaced.map(({ code }) => code)).toEqual([2, 2, 2]);
    for (const { out, err } of [wrong, ...misplaced]) expect(out + err).not.toContain('4711');
  });

  it('a token comes from a file as well', async () => {
    const path = await file('token', `${STAGE_TOKEN}\n`);
    const env = { HEADGATE_TOKEN: '', ADMIN_TOKEN: '' };
    expect((await headgate(['status', '--token-file', path], { env })).code).toBe(0);
    expect((await headgate(['status'], { env: { ...env, ADMIN_TOKEN: STAGE_TOKEN } })).code).toBe(
      0,
    );
    expect((await headgate(['status'], { env })).code).toBe(4);
  });

  it('a token of the environment loses white space at its ends, and one with white space inside is refused', async () => {
    const ends = { HEADGATE_TOKEN: ` ${STAGE_TOKEN}\r\n`, HEADGATE_KEY: '' };
    expect((await headgate(['status'], { env: ends })).code).toBe(0);
    for (const name of ['HEADGATE_TOKEN', 'ADMIN_TOKEN', 'HEADGATE_KEY']) {
      const env = { HEADGATE_TOKEN: '', [name]: 'two-4711\nwords-4711' };
      for (const command of ['doctor', 'canary']) {
        if (command === 'doctor' && name !== 'HEADGATE_KEY') continue;
        const refused = await headgate([command], { env });
        expect([refused.code, refused.err]).toEqual([
          2,
          expect.stringContaining(`${name} has white space or control characters inside`),
        ]);
        expect(refused.out + refused.err).not.toContain('4711');
      }
    }
  });

  it('a token is read from standard input, and a token in the arguments prints a warning', async () => {
    const env = { HEADGATE_TOKEN: '', ADMIN_TOKEN: '' };
    const input = `${STAGE_TOKEN}\n`;
    const piped = await headgate(['status', '--token-file', '-'], { env, input });
    expect([piped.code, piped.err]).toEqual([0, expect.not.stringContaining('Use --token-file')]);
    const seen = await headgate(['status', '--token', STAGE_TOKEN], { env });
    expect([seen.code, seen.err]).toEqual([0, expect.stringContaining('Use --token-file FILE')]);
    expect(seen.err).not.toContain(STAGE_TOKEN);
  });

  it.each([
    [['apply', '-', '--yes'], 'both read standard input'],
    [['diff', '-'], 'both read standard input'],
    [['apply', 'CONFIG'], 'Add --yes'],
    [['rollback', '1'], 'Add --yes'],
    [['rollback', '--undo', '1'], 'Add --yes'],
  ])('standard input is one thing, a token or something else: %j', async (args, words) => {
    const env = { HEADGATE_TOKEN: '', ADMIN_TOKEN: '' };
    const path = await file('config.yaml', 'groups: []\n');
    const given = args.map((arg) => (arg === 'CONFIG' ? path : arg));
    const input = `${STAGE_TOKEN}\n`;
    const refused = await headgate([...given, '--token-file', '-'], { env, input });
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining(words)]);
    expect(refused.err).toContain('HEADGATE_TOKEN');
  });

  it('a list of versions asks nothing, so its token may come from standard input', async () => {
    const env = { HEADGATE_TOKEN: '', ADMIN_TOKEN: '' };
    const input = `${STAGE_TOKEN}\n`;
    expect((await headgate(['rollback', '--token-file', '-'], { env, input })).code).toBe(0);
  });

  it('a token file that other users can read prints a warning', async () => {
    const env = { HEADGATE_TOKEN: '', ADMIN_TOKEN: '' };
    const path = await file('wide-token', STAGE_TOKEN);
    await chmod(path, 0o644);
    const wide = await headgate(['status', '--token-file', path], { env });
    expect([wide.code, wide.err]).toEqual([0, expect.stringContaining(`chmod 600 ${path}`)]);
    await chmod(path, 0o600);
    const narrow = await headgate(['status', '--token-file', path], { env });
    expect([narrow.code, narrow.err]).toEqual([0, expect.not.stringContaining('chmod')]);
  });

  it('a token that is none is not sent, nor repeated', async () => {
    const wrong = {
      'wrong\n4711': 'HEADGATE_TOKEN has white space or control characters inside',
      'wrong–4711': 'The token is empty or contains',
    };
    for (const [HEADGATE_TOKEN, why] of Object.entries(wrong)) {
      const { code, err } = await headgate(['status'], { env: { HEADGATE_TOKEN } });
      expect([code, err]).toEqual([2, expect.stringContaining(why)]);
      expect(err).not.toContain('4711');
    }
  });

  it('nobody there ends with 3, and wrong usage with 2', async () => {
    const nobody = { HEADGATE_URL: 'http://127.0.0.1:9' };
    expect((await headgate(['status'], { env: nobody })).code).toBe(3);
    const codes = await Promise.all(
      [['nothing'], ['release'], ['status', '--no-such'], ['keys', 'nothing'], []].map(
        async (args) => (await headgate(args)).code,
      ),
    );
    expect(codes).toEqual([2, 2, 2, 2, 2]);
  });

  it.each([
    'status',
    'apply',
    'keys create',
    'budgets correct',
    'doctor',
    'import',
    'serve',
    'canary',
  ])('%s --help tells how, and ends with 0', async (command) => {
    const { code, out } = await headgate([...command.split(' '), '--help']);
    expect(code).toBe(0);
    expect(out).toContain(`Usage: headgate ${command}`);
  });
});

describe('import', () => {
  const SHAPES: readonly [string, string, string, string][] = [
    [
      'clawith',
      'concurrency_groups:\n- { name: Kimi, max_concurrency: 3, providers: [kimi] }\n',
      'moonshot-cn',
      'Provider `kimi` became upstream `moonshot-cn`.',
    ],
    [
      'litellm',
      'router_settings: {}\nmodel_list:\n- { model_name: m, litellm_params: { model: openai/gpt-4o, rpm: 5 } }\n',
      'rpm: 5',
      'Set the secret UPSTREAM_OPENAI_API_KEY to the value of the environment variable OPENAI_API_KEY.',
    ],
    [
      'picoclaw',
      '{ "model_list": [{ "model_name": "glm", "model": "zai/glm-5.1", "rpm": 9 }] }',
      'max_concurrency: 1',
      'keeps the known concurrency of `glm-5.1`',
    ],
    [
      'shaper',
      'ai-concurrency-shaper \\\n  -upstream https://api.openai.com \\\n  -limit "POST /v1/chat/completions:2" -tui -cb-threshold 3\n',
      'max_concurrency: 2',
      '-tui is the dashboard at /admin, and headgate status.',
    ],
    [
      'hermes',
      'model: { provider: openrouter, default: x/y, max_concurrent: 4 }\nterminal: {}\n',
      'max_concurrency: 4',
      'Hermes keeps these settings and still uses them: `terminal`.',
    ],
    [
      'portkey',
      '{ "strategy": { "mode": "loadbalance" }, "targets": [{ "provider": "openai", "api_key": "sk-1", "weight": 2 }, { "provider": "openai", "api_key": "sk-2" }] }',
      'weight: 2',
      'Set the secret UPSTREAM_OPENAI_API_KEY_2 to the key of targets[1].api_key',
    ],
  ];
  it.each(SHAPES)(
    'of %s is our shape, with notes, and applies',
    async (system, text, part, note) => {
      const turned = await headgate(['import', system, await file('foreign', text)]);
      expect(turned.code).toBe(0);
      expect(turned.out).toContain(part);
      expect(turned.err).toContain(note);
      const ours = await file('ours.yaml', turned.out);
      expect((await headgate(['diff', ours])).code).toBe(1);
      const json = await headgate(['import', system, '-', '--json'], { input: text });
      expect(JSON.parse(json.out)).toMatchObject({ config: { groups: [{}] } });
    },
  );

  it('exits with 8 if something was left out, and says where', async () => {
    const text = 'ai-concurrency-shaper -upstream https://api.openai.com -cb-max-penalty 9s';
    const turned = await headgate(['import', 'shaper', await file('foreign', text)]);
    expect(turned.code).toBe(8);
    expect(turned.err).toContain('Not imported: -cb-max-penalty: has no counterpart');
  });

  it('writes a file, or says that it cannot; and repeats no password', async () => {
    const path = await file('foreign', SHAPES[0]?.[1] ?? '');
    const to = join(stage.dataDir, 'turned.yaml');
    expect(await headgate(['import', 'clawith', path, '-o', to])).toMatchObject({
      code: 0,
      out: '',
    });
    expect((await headgate(['diff', to])).code).toBe(1);
    const nowhere = join(stage.dataDir, 'nowhere', 'turned.yaml');
    const refused = await headgate(['import', 'clawith', path, '-o', nowhere]);
    expect([refused.code, refused.err]).toEqual([2, `${nowhere} cannot be written (ENOENT).\n`]);
    const input = 'ai-concurrency-shaper -upstream https://me:word-4711@llm.example.com';
    const reported = await headgate(['import', 'shaper', '-'], { input });
    expect(reported.code).toBe(7);
    expect(reported.out + reported.err).not.toContain('4711');
  });

  it('of another shape than it says ends with 7', async () => {
    const path = await file('foreign', '{ "groups": [] }');
    expect((await headgate(['import', 'litellm', path])).code).toBe(7);
    expect((await headgate(['import', 'shaper', path])).code).toBe(7);
    expect((await headgate(['import', 'nginx', path])).code).toBe(2);
  });
});
