// Commands of `headgate` that change the configuration, import one or read a token in another way.
import { chmod } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../../../scripts/serve/build.ts';
import { runToEnd } from '../support/command-line.ts';
import {
  documentWith,
  file,
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
    // A server that responds as Headgate does after another change.
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
});

describe('credentials', () => {
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
