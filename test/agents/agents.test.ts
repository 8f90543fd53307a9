// The coding agents themselves, with the recipes of docs/clients.md: three of each at once, before an upstream
// that takes one call at a time.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SdkStage } from '../e2e/support/sdk-stage.ts';
import { startSdkStage } from '../e2e/support/sdk-stage.ts';
import { AGENTS_DIR } from './install.ts';

const GATEWAY_KEY = 'hg_for-the-tests-of-agents';
const QUESTION = 'How much water does the canal take?';
const AT_ONCE = 3;

/** How an agent is run with its recipe. */
interface Agent {
  readonly name: string;
  /** A recipe for a shell: what it exports, and the program that it starts. */
  readonly shell?: string;
  /** Recipes that are files of the agent's, by their places below HOME. */
  readonly files?: Readonly<Record<string, string>>;
  readonly command: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** It is signed in with ChatGPT. */
  readonly isSignedIn?: true;
  /** Its calls come as turns of a WebSocket. */
  readonly speaksWebSocket?: true;
}

const AGENTS: readonly Agent[] = [
  { name: 'Claude Code', shell: 'claude-code-gateway-key.sh', command: ['claude', '-p', QUESTION] },
  {
    name: 'Claude Agent SDK',
    files: { 'ask.mjs': 'claude-agent-sdk.mjs' },
    command: ['node', 'ask.mjs', QUESTION],
    env: { ANTHROPIC_API_KEY: GATEWAY_KEY },
  },
  {
    name: 'Codex',
    files: { '.codex/config.toml': 'codex.toml' },
    command: ['codex', 'exec', '--skip-git-repo-check', QUESTION],
    env: { OPENAI_API_KEY: GATEWAY_KEY },
  },
  {
    name: 'Codex, signed in with ChatGPT',
    files: { '.codex/config.toml': 'codex-chatgpt.toml' },
    command: ['codex', 'exec', '--skip-git-repo-check', QUESTION],
    env: { HEADGATE_KEY: GATEWAY_KEY },
    isSignedIn: true,
  },
  {
    name: 'Codex over WebSocket',
    files: { '.codex/config.toml': 'codex-websocket.toml' },
    command: ['codex', 'exec', '--skip-git-repo-check', QUESTION],
    env: { CODEX_API_KEY: GATEWAY_KEY },
    speaksWebSocket: true,
  },
  {
    name: 'Gemini CLI',
    shell: 'gemini-cli.sh',
    files: { '.gemini/settings.json': 'gemini-cli.json' },
    // Without a model it asks another one first which to take.
    command: ['gemini', '--skip-trust', '-m', 'gemini-2.5-flash', '-p', QUESTION],
  },
  { name: 'Qwen Code', shell: 'qwen-code.sh', command: ['qwen', '-p', QUESTION] },
  {
    name: 'opencode',
    files: { '.config/opencode/opencode.json': 'opencode.json' },
    command: ['opencode', 'run', QUESTION],
    env: { OPENAI_API_KEY: GATEWAY_KEY },
  },
];

let stage: SdkStage;
let homes: string;
beforeAll(async () => {
  homes = await mkdtemp(join(tmpdir(), 'headgate-agent-homes-'));
  const upstreams = ['openai', 'anthropic', 'gemini'];
  stage = await startSdkStage({
    upstreams: ({ url }) => [
      ...upstreams.map((id) => ({ id, base_url: url, auth: { secret: 'UPSTREAM_KEY' } })),
      { id: 'chatgpt', base_url: `${url}/backend-api/codex` },
    ],
    env: { UPSTREAM_KEY: 'sk-of-the-operator' },
    groups: [
      {
        name: 'lab',
        match: { upstreams: [...upstreams, 'chatgpt'], models: ['*'] },
        limits: { max_concurrency: 1, tpm: 1_000_000_000 },
      },
    ],
    keys: [
      { id: 'tests', hash: `sha256:${createHash('sha256').update(GATEWAY_KEY).digest('hex')}` },
    ],
  });
});
afterAll(async () => {
  await stage.stop();
  await rm(homes, { recursive: true, force: true });
});

/** The file that `codex login` leaves, with a token that no one has signed. */
function chatgptLogin(): string {
  const part = (fields: object): string =>
    Buffer.from(JSON.stringify(fields)).toString('base64url');
  const account = { chatgpt_plan_type: 'plus', chatgpt_user_id: 'u', chatgpt_account_id: 'a' };
  const claims = {
    exp: Math.floor(Date.now() / 1_000) + 86_400,
    email: 'user@example.com',
    'https://api.openai.com/auth': account,
  };
  const token = `${part({ alg: 'RS256' })}.${part(claims)}.signature`;
  const tokens = { id_token: token, access_token: token, refresh_token: 'r', account_id: 'a' };
  return JSON.stringify({ auth_mode: 'chatgpt', tokens, last_refresh: new Date().toISOString() });
}

async function recipe(name: string): Promise<string> {
  const text = await readFile(new URL(`../e2e/sdk/recipes/${name}`, import.meta.url), 'utf8');
  return text
    .replaceAll('https://headgate.example.workers.dev', stage.url)
    .replaceAll(/(?:hg_your-gateway-key|your-provider-or-gateway-key)/g, GATEWAY_KEY);
}

/** Runs an agent in a home of its own, and tells what it printed. */
async function run({ shell, files = {}, command, env, isSignedIn }: Agent): Promise<string> {
  const home = await mkdtemp(join(homes, 'home-'));
  for (const [place, name] of Object.entries(files)) {
    await mkdir(dirname(join(home, place)), { recursive: true });
    await writeFile(join(home, place), await recipe(name));
  }
  if (isSignedIn === true) await writeFile(join(home, '.codex/auth.json'), chatgptLogin());
  const exports = shell === undefined ? '' : await recipe(shell);
  const exported = [...exports.matchAll(/^export (\w+)="(.*)"$/gm)].map(([, key, value]) => [
    key,
    value,
  ]);
  // A module is looked for where the file is that imports it.
  await symlink(join(AGENTS_DIR, 'node_modules'), join(home, 'node_modules'));
  const [program = '', ...rest] = command;
  const running = promisify(execFile)(program, rest, {
    cwd: home,
    env: {
      PATH: `${join(AGENTS_DIR, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}`,
      HOME: home,
      DISABLE_AUTOUPDATER: '1',
      TERM: 'dumb',
      ...Object.fromEntries(exported),
      ...env,
    },
  });
  // Some wait for more of the question.
  running.child.stdin?.end();
  return (await running).stdout;
}

test.each(AGENTS)('$name gets its answers, one at a time', async (agent) => {
  stage.strict.reset();
  stage.strict.configure({ limit: 1, chunkDelayMs: 50 });
  const printed = await Promise.all(Array.from({ length: AT_ONCE }, () => run(agent)));
  for (const text of printed) expect(text).toMatch(/\[[\w.-]+\] /);
  const stats = stage.strict.stats();
  expect(stats).toMatchObject({ peak: 1, rejected429: 0 });
  const { completed } = agent.speaksWebSocket === true ? stats.turns : stats;
  expect(completed).toBeGreaterThanOrEqual(AT_ONCE);
});
