import { setTimeout as delay } from 'node:timers/promises';

/** Refused by the Worker: says why, in its own words. */
export class ConfigRefused extends Error {
  override readonly name = 'ConfigRefused';
}

/** What is asked of a Headgate by the scripts that start it. */
export interface AdminTarget {
  /** Base URL, without a trailing slash. */
  readonly url: string;
  readonly adminToken: string;
}

/** How long a start may take. */
const READY_WAIT_MS = 20_000;

/** Calls in flight in the Worker, or null while it does not answer. */
export async function callsInFlight(url: string): Promise<number | null> {
  try {
    const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2_000) });
    const body = (await response.json()) as { ok?: boolean; calls_in_flight?: number };
    return response.ok && body.ok === true ? (body.calls_in_flight ?? 0) : null;
  } catch {
    return null;
  }
}

/** Waits until the Worker answers; false when it does not in time, or `gaveUp` says so. */
export async function untilReady(url: string, gaveUp: () => boolean): Promise<boolean> {
  const deadline = Date.now() + READY_WAIT_MS;
  while (Date.now() < deadline && !gaveUp()) {
    if ((await callsInFlight(url)) !== null) return true;
    await delay(20);
  }
  return false;
}

async function refusal(response: Response): Promise<ConfigRefused> {
  const text = await response.text();
  try {
    const problem = JSON.parse(text) as { title?: string; detail?: string; errors?: unknown[] };
    const lines = (problem.errors ?? []).map((error) => {
      const { path, message } = error as { path?: string; message?: string };
      return message === undefined ? JSON.stringify(error) : `  ${path ?? ''}: ${message}`;
    });
    const head = problem.detail ?? problem.title ?? `status ${response.status}`;
    // With one mistake the detail is that mistake.
    const told = lines.filter((line) => !head.includes(line.trim()));
    return new ConfigRefused([head, ...told].join('\n'));
  } catch {
    return new ConfigRefused(`status ${response.status}: ${text.slice(0, 2_000)}`);
  }
}

/** The whole configuration and its version, or null where none was ever written. */
export async function readConfig(
  target: AdminTarget,
): Promise<{ readonly etag: string; readonly body: string } | null> {
  const response = await fetch(`${target.url}/admin/api/config`, {
    headers: { authorization: `Bearer ${target.adminToken}`, accept: 'application/json' },
  });
  if (!response.ok) throw await refusal(response);
  const etag = response.headers.get('etag') ?? '';
  const body = await response.text();
  return etag.replace(/^W\//, '') === '"0"' ? null : { etag, body };
}

/** Replaces the configuration if its version is still `etag`. Throws `ConfigRefused`. */
export async function writeConfig(
  target: AdminTarget,
  etag: string,
  body: string,
  contentType: 'application/json' | 'application/yaml',
): Promise<void> {
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
  await response.body?.cancel();
}

/** Writes the first configuration. False: there is one already, and nothing was changed. */
export async function importFirst(
  target: AdminTarget,
  body: string,
  contentType: 'application/json' | 'application/yaml',
): Promise<boolean> {
  if ((await readConfig(target)) !== null) return false;
  await writeConfig(target, '"0"', body, contentType);
  return true;
}
