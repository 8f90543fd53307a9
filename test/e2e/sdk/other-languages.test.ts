// Blocks of docs/clients.md in other languages, run with the tools of the machine. The page marks those that are not run.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, test, type TestContext } from 'vitest';
import type { SdkStage } from '../support/sdk-stage.ts';
import { startSdkStage } from '../support/sdk-stage.ts';
import { QUESTION } from './cases/sdk-case.ts';

const run = promisify(execFile);

const GATEWAY_KEY = 'hg_for-the-tests-of-other-languages';
const RECIPES = new URL('./recipes/', import.meta.url);
const PAGE = new URL('../../../docs/clients.md', import.meta.url);

let stage: SdkStage;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-languages-'));
  await writeFile(join(folder, 'speech.wav'), Buffer.alloc(20_000, 'RIFF\r\n--'));
  stage = await startSdkStage({
    upstreams: (strict) =>
      ['openai', 'anthropic', 'gemini'].map((id) => ({
        id,
        base_url: strict.url,
        auth: { secret: 'UPSTREAM_KEY' },
      })),
    // The form is read where the model counts.
    groups: [{ name: 'audio', match: { models: ['whisper-1'] }, limits: { max_concurrency: 1 } }],
    env: { UPSTREAM_KEY: 'sk-of-the-operator' },
    keys: [
      { id: 'tests', hash: `sha256:${createHash('sha256').update(GATEWAY_KEY).digest('hex')}` },
    ],
  });
});

afterAll(async () => {
  await stage?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Runs a program and returns its output. Skips the test, or fails in CI, if the machine does not have it. */
async function output(
  context: TestContext,
  tool: string,
  args: readonly string[],
): Promise<string> {
  try {
    const { stdout } = await run(tool, args, { cwd: folder, timeout: 180_000 });
    return stdout;
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (!isMissing || process.env['CI'] !== undefined) throw error;
    return context.skip(`${tool} is not installed: its blocks of docs/clients.md were not run`);
  }
}

/** Runs a block for the shell with the address of this Headgate and a gateway key. */
async function shell(context: TestContext, name: string): Promise<string> {
  await output(context, 'curl', ['--version']);
  const text = await readFile(new URL(name, RECIPES), 'utf8');
  const script = text
    .replaceAll('https://headgate.example.workers.dev', stage.url)
    .replaceAll('your-provider-or-gateway-key', GATEWAY_KEY);
  return output(context, 'sh', ['-c', script]);
}

/** Joins the text of a stream of events. */
const streamed = (events: string, text: RegExp): string =>
  [...events.matchAll(text)].map(([, piece = '']) => JSON.parse(`"${piece}"`) as string).join('');

const OPENAI_TEXT = /"content":"((?:[^"\\]|\\.)*)"/g;

describe('curl', () => {
  test.for([
    { name: 'curl.sh', text: OPENAI_TEXT, model: 'gpt-4o-mini' },
    { name: 'curl-anthropic.sh', text: /"text": ?"((?:[^"\\]|\\.)*)"/g, model: 'claude-haiku-4-5' },
    { name: 'curl-gemini.sh', text: /"text": ?"((?:[^"\\]|\\.)*)"/g, model: 'gemini-2.5-flash' },
  ])('$name streams the answer', async ({ name, text, model }, context) => {
    const events = await shell(context, name);
    expect(streamed(events, text)).toBe(`[${model}] How much water does`);
  });

  it('uploads a file through a group that matches by model', async (context) => {
    const answer = await shell(context, 'curl-upload.sh');
    expect(JSON.parse(answer)).toHaveProperty('text');
    expect(stage.strict.stats().arrivals.at(-1)).toMatchObject({ model: 'whisper-1' });
  });
});

test('Python, the standard library, streams the answer', async (context) => {
  const file = fileURLToPath(new URL('standard-library.py', RECIPES));
  const program =
    'import runpy, sys; print("".join(runpy.run_path(sys.argv[1])["ask"](*sys.argv[2:])))';
  const args = ['-c', program, file, stage.url, GATEWAY_KEY, QUESTION];
  const text = await output(context, 'python3', args);
  expect(text.trimEnd()).toBe('[gpt-4o-mini] How much water does');
});

test('Java, java.net.http, streams the answer', async (context) => {
  const file = fileURLToPath(new URL('Ask.java', RECIPES));
  const events = await output(context, 'java', [file, stage.url, GATEWAY_KEY]);
  expect(streamed(events, OPENAI_TEXT)).toBe('[gpt-4o-mini] How much water does');
}, 90_000);

it('marks each block that no test runs', async () => {
  const page = await readFile(PAGE, 'utf8');
  const marks = {
    'packages.py': 'Not run here',
    'ask.go': 'Run once with Go 1.19, not part of the tests',
    'Ask.cs': 'Not run here',
  };
  for (const [name, mark] of Object.entries(marks)) {
    const block = await readFile(new URL(name, RECIPES), 'utf8');
    const before = page.slice(0, page.indexOf(block)).split('\n').slice(-6).join(' ');
    expect(before).toContain(mark);
  }
});
