import { fstatSync, openSync, closeSync, readFileSync } from 'node:fs';
import { createAdminClient, type AdminClient } from '../../src/admin/client.ts';
import { cleanSecret } from '../../src/runtime/secrets.ts';
import { nearestNames } from '../../src/config/explain-issues.ts';
import { EXIT, exitOfStatus, CommandFailure, TooLate } from './failure.ts';

/** Timeout of a request. A preview over many pools takes longest. */
const ANSWER_WAIT_MS = 30_000;

const DEFAULT_URL = 'http://localhost:8787';

export interface TargetOptions {
  readonly url?: string;
  readonly token?: string;
  readonly tokenFile?: string;
}

export interface CliTarget {
  /** Its origin. */
  readonly url: string;
  readonly token: string | null;
  readonly admin: AdminClient;
}

/** Reads the URL and drops its path, so that a URL copied from a browser or an SDK works too. */
function originOf(given: string): string {
  const { origin, protocol } = URL.canParse(given) ? new URL(given) : { origin: '', protocol: '' };
  if (protocol === 'http:' || protocol === 'https:') return origin;
  throw new CommandFailure(
    EXIT.usage,
    '--url (HEADGATE_URL): expected an http:// or https:// URL.',
  );
}

/** Warns that other users can see a token, without printing it. */
export const SEEN_IN_ARGUMENTS =
  'Every user of this machine can see the token in the list of processes. Use --token-file FILE, --token-file - (standard input) or HEADGATE_TOKEN instead of --token.';

function tokenOf(
  options: TargetOptions,
  env: NodeJS.ProcessEnv,
  note: (text: string) => void,
): string | null {
  const { token, tokenFile } = options;
  if (token !== undefined) note(SEEN_IN_ARGUMENTS);
  const given = token ?? (tokenFile === undefined ? null : tokenIn(tokenFile, note));
  const found = given ?? secretOf(env, 'HEADGATE_TOKEN') ?? secretOf(env, 'ADMIN_TOKEN');
  // A header accepts no other characters, and the platform's error message would repeat the token.
  if (found === null || /^[\x21-\x7e]+$/.test(found)) return found;
  throw new CommandFailure(
    EXIT.usage,
    'The token is empty or contains spaces or other invalid characters. Check how it was copied.',
  );
}

/**
 * Reads a secret from the environment. null if it is not set. An unusable value is an error that names the variable.
 */
export function secretOf(env: NodeJS.ProcessEnv, name: string): string | null {
  const { value, fault } = cleanSecret(env[name]);
  if (fault === null || fault === 'is not set') return value;
  throw new CommandFailure(EXIT.usage, `${name} ${fault}. Set it to a single token or key.`);
}

/** Reads a token from a file, or from standard input for `-`. */
export function tokenIn(file: string, note: (text: string) => void): string {
  try {
    const from = file === '-' ? 0 : openSync(file, 'r');
    const { mode } = fstatSync(from);
    if (file !== '-' && (mode & 0o077) !== 0 && process.platform !== 'win32') {
      note(`Other users of this machine can read ${file}. Run: chmod 600 ${file}`);
    }
    const token = readFileSync(from, 'utf8').trim();
    if (from !== 0) closeSync(from);
    return token;
  } catch {
    throw new CommandFailure(
      EXIT.usage,
      `--token-file ${file}: the file cannot be read. Check its path and permissions.`,
    );
  }
}

function ignore(): void {
  // Notes are optional.
}

export function targetOf(
  options: TargetOptions,
  env: NodeJS.ProcessEnv,
  note: (text: string) => void = ignore,
): CliTarget {
  const url = originOf(options.url ?? env['HEADGATE_URL'] ?? DEFAULT_URL);
  const token = tokenOf(options, env, note);
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const admin = createAdminClient({
    baseUrl: `${url}/admin/api`,
    headers,
    fetch: (address, init) => askWhole(address, init),
  });
  return { url, token, admin };
}

/** Sends a request. A failure names the origin and never repeats the request. */
export async function ask(
  address: string,
  init: RequestInit = {},
  waitMs = ANSWER_WAIT_MS,
): Promise<Response> {
  try {
    return await fetch(address, { ...init, signal: AbortSignal.timeout(waitMs) });
  } catch (error) {
    throw unanswered(address, error, waitMs);
  }
}

/** Sends a request and reads the whole response, so that a truncated response is a failure. */
async function askWhole(address: string, init: RequestInit): Promise<Response> {
  const response = await ask(address, init);
  try {
    const { status, headers } = response;
    const body = await response.text();
    return new Response(body === '' ? null : body, { status, headers });
  } catch (error) {
    throw unanswered(address, error, ANSWER_WAIT_MS);
  }
}

function unanswered(address: string, error: unknown, waitMs: number): CommandFailure {
  const { origin } = new URL(address);
  const { name, cause } = error as Error;
  if (name === 'TimeoutError') return new TooLate(origin, waitMs);
  const { code = name } = (cause ?? {}) as { readonly code?: string };
  return new CommandFailure(
    EXIT.unreachable,
    `No response from ${origin} (${code}). Check the URL and that Headgate is running.`,
  );
}

type TargetAnswer<Body> =
  | { readonly ok: true; readonly body: Body; readonly etag: string | null }
  | { readonly ok: false; readonly status: number; readonly problem: unknown };

/** Returns the body of a response, or throws the server's error. */
export function taken<Body>(answer: TargetAnswer<Body>): Body {
  if (!answer.ok) throw failureOf(answer);
  if (typeof answer.body !== 'object') {
    throw new CommandFailure(
      EXIT.unreachable,
      'The server is not Headgate. Check --url or HEADGATE_URL.',
    );
  }
  return answer.body;
}

function failureOf({ status, problem }: { status: number; problem: unknown }): CommandFailure {
  const { detail, errors = [] } = Object(problem) as {
    readonly detail?: string;
    readonly errors?: readonly { readonly path: string; readonly message: string }[];
  };
  if (detail === undefined) {
    return new CommandFailure(
      exitOfStatus(status),
      `The server returned ${status} without a reason. It may not be Headgate. Check --url or HEADGATE_URL.`,
    );
  }
  const fields = errors.map(({ path, message }) => `${path}: ${message}`);
  const reported = fields.filter((field) => !detail.includes(field));
  const hint =
    status === 401
      ? 'Set HEADGATE_TOKEN to the ADMIN_TOKEN of the deployment or to an admin key (hga_…).'
      : null;
  return new CommandFailure(
    exitOfStatus(status),
    [detail, ...reported.map((field) => `  ${field}`), ...(hint === null ? [] : [hint])].join('\n'),
  );
}

/** Returns the body of a response about a group. The error for an unknown name suggests similar names. */
export async function takenOf<Body>(
  { admin }: CliTarget,
  group: string,
  answer: TargetAnswer<Body>,
): Promise<Body> {
  if (answer.ok || answer.status !== 404) return taken(answer);
  const status = await admin('GET /status');
  if (!status.ok || status.body.groups.some(({ name }) => name === group)) return taken(answer);
  const names = status.body.groups.map(({ name }) => name);
  const near = nearestNames(group, names);
  const meant =
    near.length > 0 ? `Did you mean ${near.join(', ')}?` : `Groups: ${names.join(', ') || 'none'}.`;
  throw new CommandFailure(EXIT.notFound, `Group \`${group}\` does not exist. ${meant}`);
}
