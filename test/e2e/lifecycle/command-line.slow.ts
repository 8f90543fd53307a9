// Each command of `headgate` as people and scripts run it: a process, its output, its exit code.
import { describe, expect, it } from 'vitest';
import { ROOT } from '../../../scripts/serve/build.ts';
import { runToEnd, type Ended } from '../support/command-line.ts';
import {
  documentWith,
  file,
  fill,
  headgate,
  jsonOf,
  open,
  stage,
  useCommandLine,
} from '../support/command-line-stage.ts';
import { openChat } from '../support/lifecycle-call.ts';
import { practiceConfig, STAGE_TOKEN } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

useCommandLine();

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
    // It has had no calls, so its earlier state is unknown.
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

  it('ends normally after its output was closed', async () => {
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

describe('credentials', () => {
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

  it('exits with 3 if no server listens, and with 2 for wrong usage', async () => {
    const unreachable = { HEADGATE_URL: 'http://127.0.0.1:9' };
    expect((await headgate(['status'], { env: unreachable })).code).toBe(3);
    const codes = await Promise.all(
      [['nothing'], ['release'], ['status', '--no-such'], ['keys', 'nothing'], []].map(
        async (args) => (await headgate(args)).code,
      ),
    );
    expect(codes).toEqual([2, 2, 2, 2, 2]);
  });
});
