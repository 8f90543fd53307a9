import { readFileSync } from 'node:fs';
import { createAdminClient, type AdminClient } from '../../src/contract/admin/client.ts';
import { nearestNames } from '../../src/config/nearest-names.ts';
import { EXIT, exitOfStatus, Failure } from './failure.ts';

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
export interface Target {
  /** Its origin. */
  readonly url: string;
  readonly token: string | null;
  readonly admin: AdminClient;
}

/** Reads the address: without a path, so that one which was copied from a browser or an SDK is right too. */
function originOf(given: string): string {
  const { origin, protocol } = URL.canParse(given) ? new URL(given) : { origin: '', protocol: '' };
  if (protocol === 'http:' || protocol === 'https:') return origin;
  throw new Failure(EXIT.usage, '--url (HEADGATE_URL): expected http://… or https://…');
}

function tokenOf(options: TargetOptions, env: NodeJS.ProcessEnv): string | null {
  const { token, tokenFile } = options;
  if (token !== undefined) return token;
  if (tokenFile === undefined) return env['HEADGATE_TOKEN'] || env['ADMIN_TOKEN'] || null;
  try {
    return readFileSync(tokenFile, 'utf8').trim();
  } catch {
    throw new Failure(EXIT.usage, `--token-file ${tokenFile}: cannot be read.`);
  }
}

/** Finds out whom to ask, and as whom. */
export function targetOf(options: TargetOptions, env: NodeJS.ProcessEnv): Target {
  const url = originOf(options.url ?? env['HEADGATE_URL'] ?? DEFAULT_URL);
  const token = tokenOf(options, env);
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const admin = createAdminClient({
    baseUrl: `${url}/admin/api`,
    headers,
    fetch: (address, init) => ask(address, init),
  });
  return { url, token, admin };
}

/** Sends a request; nobody there is a failure with the address, and never with what was sent. */
export async function ask(address: string, init: RequestInit = {}): Promise<Response> {
  try {
    return await fetch(address, { ...init, signal: AbortSignal.timeout(ANSWER_WAIT_MS) });
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { readonly code?: string };
    const why = code ?? (error as Error).name;
    throw new Failure(EXIT.unreachable, `Nobody answers at ${new URL(address).origin} (${why}).`);
  }
}

type Answered<Body> =
  | { readonly ok: true; readonly body: Body; readonly etag: string | null }
  | { readonly ok: false; readonly status: number; readonly problem: unknown };

/** Takes an answer, or fails with what the server says of it. */
export function taken<Body>(answer: Answered<Body>): Body {
  if (!answer.ok) throw failureOf(answer);
  if (typeof answer.body !== 'object') {
    throw new Failure(EXIT.unreachable, 'What answers there is no Headgate.');
  }
  return answer.body;
}

/** Words a problem: its detail, and each field that is wrong. */
function failureOf({ status, problem }: { status: number; problem: unknown }): Failure {
  const { detail, errors = [] } = Object(problem) as {
    readonly detail?: string;
    readonly errors?: readonly { readonly path: string; readonly message: string }[];
  };
  if (detail === undefined) {
    return new Failure(exitOfStatus(status), `It answered with ${status}. Is that a Headgate?`);
  }
  const fields = errors.map(({ path, message }) => `${path}: ${message}`);
  const told = fields.filter((field) => !detail.includes(field));
  const hint =
    status === 401 ? 'Set HEADGATE_TOKEN to its ADMIN_TOKEN, or to an admin key (hga_…).' : null;
  return new Failure(
    exitOfStatus(status),
    [detail, ...told.map((field) => `  ${field}`), ...(hint === null ? [] : [hint])].join('\n'),
  );
}

/** Takes an answer about a group; where there is none by that name, it names those that may have been meant. */
export async function takenOf<Body>(
  { admin }: Target,
  group: string,
  answer: Answered<Body>,
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
  throw new Failure(EXIT.notFound, `There is no group "${group}". ${meant}`);
}
