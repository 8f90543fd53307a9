import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The versions that docs/clients.md names. */
const PACKAGES = {
  '@anthropic-ai/claude-code': '2.1.330',
  '@anthropic-ai/claude-agent-sdk': '0.3.330',
  '@google/gemini-cli': '0.61.0',
  '@openai/codex': '0.169.0',
  '@qwen-code/qwen-code': '0.24.4',
  'opencode-ai': '1.18.33',
};

/** They fetch or unpack their program after the installation. */
const WITH_SCRIPTS = ['@anthropic-ai/claude-code', 'opencode-ai'];

/** Where the agents are: outside the project, because they weigh 1.8 GB. */
export const AGENTS_DIR = process.env['AGENTS_DIR'] ?? join(tmpdir(), 'headgate-agents');

/** Installs the agents, unless they are there. */
export default async function setup(): Promise<void> {
  if (existsSync(join(AGENTS_DIR, 'node_modules/.bin/claude'))) return;
  await mkdir(AGENTS_DIR, { recursive: true });
  const manifest = {
    private: true,
    dependencies: PACKAGES,
    allowScripts: Object.fromEntries(WITH_SCRIPTS.map((name) => [name, true])),
  };
  await writeFile(join(AGENTS_DIR, 'package.json'), JSON.stringify(manifest));
  await promisify(execFile)('npm', ['install', '--no-audit', '--no-fund'], { cwd: AGENTS_DIR });
}
