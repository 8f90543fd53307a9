import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

/** How a command ended, and what it wrote. */
export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a program to its end, with what it reads from standard input. */
export async function runToEnd(
  program: readonly string[],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv; readonly input?: string },
): Promise<Ended> {
  const [first = '', ...args] = program;
  const { cwd, input = '' } = options;
  const { NODE_COMPILE_CACHE } = process.env;
  const env = { ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }), ...options.env };
  const child = spawn(first, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
  // One that ends without reading closes its end.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const code = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await code, out, err };
}
