import { fstatSync, openSync, closeSync, readFileSync } from 'node:fs';
import { createAdminClient, type AdminClient } from '../../src/contract/admin/client.ts';
import { cleanSecret } from '../../src/runtime/secrets.ts';
import { nearestNames } from '../../src/config/nearest-names.ts';
import { EXIT, exitOfStatus, CommandFailure, TooLate } from './failure.ts';

/** How long an answer may take: a preview over many pools is the longest. */
const ANSWER_WAIT_MS = 30_000;

/** Address of a Headgate on this machine, where none is named. */
const DEFAULT_URL = 'http://localhost:8787';

/** Options that every command which asks a Headgate has. */
export interface TargetOptions {
  readonly url?: string;
  readonly token?: string;
  readonly tokenFile?: string;
}

/** A deployment that commands speak to. */
export interface CliTarget {
  /** Its origin. */
  readonly url: string;
  readonly token: string | null;
  readonly admin: AdminClient;
}

/** Reads the address: without a path, so that one which was copied from a browser or an SDK is right too. */
function originOf(given: string): string {
  const { origin, protocol } = URL.canParse(given) ? new URL(given) : { origin: '', protocol: '' };
  if (protocol === 'http:' || protocol === 'https:') return origin;
  throw new CommandFailure(EXIT.usage, '--url (HEADGATE_URL): expected http://… or https://…');
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
  // A header takes no others, and what the platform says of one would repeat the token.
  if (found === null || /^[\x21-\x7e]+$/.test(found)) return found;
  throw new CommandFailure(
    EXIT.usage,
    'The token is empty, or has spaces or letters that no token has.',
  );
}

/** Reads a secret of the environment. Null: it is not set. One that cannot be used is an error, which names it. */
export function secretOf(env: NodeJS.ProcessEnv, name: string): string | null {
  const { value, fault } = cleanSecret(env[name]);
  if (fault === null || fault === 'is not set') return value;
  throw new CommandFailure(EXIT.usage, `${name} ${fault}. Set it again, to one token or key.`);
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
    throw new CommandFailure(EXIT.usage, `--token-file ${file}: cannot be read.`);
  }
}

function ignore(): void {
  // No reader is left.
}

/** Finds out whom to ask, and as whom. */
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

/** Sends a request; nobody there is a failure with the address, and never with what was sent. */
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

/** Sends a request and waits for the last byte, so that an answer which breaks off is none. */
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
  return new CommandFailure(EXIT.unreachable, `Nobody answers at ${origin} (${code}).`);
}

type TargetAnswer<Body> =
  | { readonly ok: true; readonly body: Body; readonly etag: string | null }
  | { readonly ok: false; readonly status: number; readonly problem: unknown };

/** Takes an answer, or fails with what the server says of it. */
export function taken<Body>(answer: TargetAnswer<Body>): Body {
  if (!answer.ok) throw failureOf(answer);
  if (typeof answer.body !== 'object') {
    throw new CommandFailure(EXIT.unreachable, 'What answers there is no Headgate.');
  }
  return answer.body;
}

/** Words a problem: its detail, and each field that is wrong. */
function failureOf({ status, problem }: { status: number; problem: unknown }): CommandFailure {
  const { detail, errors = [] } = Object(problem) as {
    readonly detail?: string;
    readonly errors?: readonly { readonly path: string; readonly message: string }[];
  };
  if (detail === undefined) {
    return new CommandFailure(
      exitOfStatus(status),
      `It answered with ${status}. Is that a Headgate?`,
    );
  }
  const fields = errors.map(({ path, message }) => `${path}: ${message}`);
  const reported = fields.filter((field) => !detail.includes(field));
  const hint =
    status === 401 ? 'Set HEADGATE_TOKEN to its ADMIN_TOKEN, or to an admin key (hga_…).' : null;
  return new CommandFailure(
    exitOfStatus(status),
    [detail, ...reported.map((field) => `  ${field}`), ...(hint === null ? [] : [hint])].join('\n'),
  );
}

/** Takes an answer about a group; where there is none by that name, it names those that may have been meant. */
export async function takenOf<Body>(
  { admin }: CliTarget,
  group: string,
  answer: TargetAnswer<Body>,
): Promise<Body> {
  if (answer.ok || answer.status !== 404) return taken(answer);
  const status = await admin('getStatus');
  if (!status.ok || status.body.groups.some(({ name }) => name === group)) return taken(answer);
  const names = status.body.groups.map(({ name }) => name);
  const near = nearestNames(group, names);
  const meant =
    near.length > 0
      ? `Did you mean ${near.join(', ')}?`
      : `There are: ${names.join(', ') || 'none'}.`;
  throw new CommandFailure(EXIT.notFound, `There is no group "${group}". ${meant}`);
}
