import { setTimeout as delay } from 'node:timers/promises';
import { isForeign } from '../../packages/import/src/import-config.ts';
import { applyImport, planImport } from '../../packages/import/src/plan-import.ts';
import { parseConfigText } from '../../src/config/parse-text.ts';
import { createAdminClient } from '../../src/admin/client.ts';

/** The Worker rejected a configuration. The message is the Worker's own. */
export class ConfigRefused extends Error {
  override readonly name = 'ConfigRefused';
}

export interface AdminTarget {
  /** Base URL, without a trailing slash. */
  readonly url: string;
  readonly adminToken: string;
}

const READY_WAIT_MS = 20_000;

/** Returns the calls in flight in the Worker. null if the Worker does not respond. */
export async function callsInFlight(url: string): Promise<number | null> {
  try {
    const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2_000) });
    const body = (await response.json()) as { ok?: boolean; calls_in_flight?: number };
    return response.ok && body.ok === true ? (body.calls_in_flight ?? 0) : null;
  } catch {
    return null;
  }
}

async function untilTrue(
  check: () => Promise<boolean>,
  gaveUp: () => boolean = () => false,
): Promise<boolean> {
  const deadline = performance.now() + READY_WAIT_MS;
  while (performance.now() < deadline && !gaveUp()) {
    if (await check()) return true;
    await delay(20);
  }
  return false;
}

/** Waits until the Worker responds. Returns false after a timeout, or if `gaveUp` returns true. */
export function untilReady(url: string, gaveUp: () => boolean): Promise<boolean> {
  return untilTrue(async () => (await callsInFlight(url)) !== null, gaveUp);
}

/** Returns the version of the configuration that the Worker uses. null if it has none yet. */
async function routedVersion(url: string): Promise<number | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    const version = /^ *Configuration +version (\d+)$/m.exec(await response.text())?.[1];
    return version === undefined ? null : Number(version);
  } catch {
    return null;
  }
}

/** Waits until the Worker uses this version or a newer one. Returns false after a timeout. */
export function untilRouted(url: string, version: number, gaveUp: () => boolean): Promise<boolean> {
  return untilTrue(async () => ((await routedVersion(url)) ?? -1) >= version, gaveUp);
}

/** Whether the start page reports configured gateway keys. */
export async function hasGatewayKeys(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    return /^ *Gateway keys +\d+ configured$/m.test(await response.text());
  } catch {
    return false;
  }
}

async function refusal(response: Response): Promise<ConfigRefused> {
  const text = await response.text();
  try {
    return refusalBy(JSON.parse(text) as ConfigProblem, response.status);
  } catch {
    return new ConfigRefused(`status ${response.status}: ${text.slice(0, 2_000)}`);
  }
}

interface ConfigProblem {
  readonly title?: string;
  readonly detail?: string;
  readonly errors?: readonly { readonly path?: string; readonly message?: string }[] | undefined;
  readonly more?: number | undefined;
}

function refusalBy(problem: ConfigProblem, status: number): ConfigRefused {
  const lines = (problem.errors ?? []).map((error) =>
    error.message === undefined ? JSON.stringify(error) : `  ${error.path ?? ''}: ${error.message}`,
  );
  const head = problem.detail ?? problem.title ?? `status ${status}`;
  // If there is only one error, the detail contains it.
  const reported = lines.filter((line) => !head.includes(line.trim()));
  const rest = (problem.more ?? 0) > 0 ? [`  and ${problem.more} more`] : [];
  return new ConfigRefused([head, ...reported, ...rest].join('\n'));
}

interface FetchedConfig {
  readonly etag: string;
  readonly body: string;
}

/** Reads the whole configuration. null if none was ever written. */
export async function readConfig(target: AdminTarget): Promise<FetchedConfig | null> {
  const response = await fetch(`${target.url}/admin/api/config`, {
    headers: { authorization: `Bearer ${target.adminToken}`, accept: 'application/json' },
  });
  if (!response.ok) throw await refusal(response);
  const etag = response.headers.get('etag') ?? '';
  const body = await response.text();
  return etag.replace(/^W\//, '') === '"0"' ? null : { etag, body };
}

const versionOf = (etag: string): number => Number(/"(\d+)"/.exec(etag)?.[1] ?? 0);

/** The version that was written, and the warnings of the admin API about it. */
interface WrittenConfig {
  readonly version: number;
  readonly warnings: readonly string[];
}

/** Replaces the configuration if its version is still `etag`, and returns the new version. Throws `ConfigRefused`. */
export async function writeConfig(
  target: AdminTarget,
  etag: string,
  body: string,
  contentType: 'application/json' | 'application/yaml',
): Promise<WrittenConfig> {
  const response = await fetch(`${target.url}/admin/api/config`, {
    method: 'PUT',
    headers: {
      authorization: `Bearer ${target.adminToken}`,
      'content-type': contentType,
      'if-match': etag,
    },
    body,
  });
  if (!response.ok) throw await refusal(response);
  const { warnings } = (await response.json()) as Pick<WrittenConfig, 'warnings'>;
  return { version: versionOf(response.headers.get('etag') ?? ''), warnings };
}

/** Outcome of the first import, with the version that is stored now. */
export interface FirstImport extends WrittenConfig {
  /** false if a configuration already existed, in which case nothing was changed. */
  readonly imported: boolean;
}

export const NOT_IMPORTED: FirstImport = { imported: false, version: 0, warnings: [] };

export async function importFirst(
  target: AdminTarget,
  body: string,
  contentType: 'application/json' | 'application/yaml',
): Promise<FirstImport> {
  const stored = await readConfig(target);
  if (stored !== null) return { ...NOT_IMPORTED, version: versionOf(stored.etag) };
  const foreign = foreignDocument(body, contentType);
  const written =
    foreign === null
      ? await writeConfig(target, '"0"', body, contentType)
      : await writeForeign(target, foreign);
  return { imported: true, ...written };
}

/** Returns a document of another system. null for all other texts, which the Worker checks. */
function foreignDocument(body: string, contentType: string): unknown {
  try {
    const document = parseConfigText(body, contentType);
    return isForeign(document) ? document : null;
  } catch {
    return null;
  }
}

async function writeForeign({ url, adminToken }: AdminTarget, document: unknown) {
  const headers = { authorization: `Bearer ${adminToken}` };
  const admin = createAdminClient({ baseUrl: `${url}/admin/api`, headers });
  const plan = await planImport(admin, document);
  const answer = plan.ok ? await applyImport(admin, plan) : plan;
  if (!answer.ok) throw refusalBy(answer.problem, answer.status);
  const { version, warnings } = answer.body;
  return { version, warnings };
}
