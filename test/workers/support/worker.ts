import { env as bindings, exports } from 'cloudflare:workers';
import { vi } from 'vitest';
import { applyImport, planImport } from '../../../packages/import/src/plan-import.ts';
import { createAdminClient } from '../../../src/admin/client.ts';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import type { Env } from '../../../src/env.ts';
import { isolateConfig } from '../../../src/config/isolate-config.ts';

// The test pool types its bindings and exports by a generated file that this project does not keep.
export const env = bindings as unknown as Env;

/** The Worker, over a service binding: a fetch that is aborted there is a client that leaves. */
export const worker = (exports as unknown as { default: Fetcher }).default;

const ORIGIN = 'https://headgate.test';

export interface AdminAnswer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads many shapes of answers
  readonly json: any;
}

/** Asks the admin API. */
export async function admin(method: string, path: string, body?: unknown): Promise<AdminAnswer> {
  const response = await worker.fetch(`${ORIGIN}/admin/api${path}`, {
    method,
    headers: { authorization: 'Bearer test-admin-token', 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const json = (await response.json()) as AdminAnswer['json'];
  if (method !== 'GET') noteVersion(json);
  return { status: response.status, json };
}

/** The client of the command line and the dashboard, at this Worker. */
export const adminClient = createAdminClient({
  baseUrl: `${ORIGIN}/admin/api`,
  headers: { authorization: 'Bearer test-admin-token' },
  fetch: (url, init) => worker.fetch(url, init),
});

/** Imports a document of another system as the command line and the dashboard do. */
export async function importForeign(document: unknown): Promise<AdminAnswer> {
  const plan = await planImport(adminClient, document);
  const answer = plan.ok ? await applyImport(adminClient, plan) : plan;
  if (!answer.ok) return { status: answer.status, json: answer.problem };
  noteVersion(answer.body);
  return { status: answer.status, json: answer.body };
}

/** The last version of the configuration that a test has made. */
let newest = 0;

/** Notes the version that a change has made, by its answer. */
export function noteVersion(answer: { readonly version?: unknown } | null): void {
  if (typeof answer?.version === 'number') newest = Math.max(newest, answer.version);
}

/** Tells the version that a Worker would bring along which has the newest copy. */
export function newestVersion(): number {
  return newest;
}

/** Changes something over the admin API, and lets this isolate's Worker know at once. */
export async function change(method: string, path: string, body?: unknown): Promise<AdminAnswer> {
  const answer = await admin(method, path, body);
  if (answer.status > 299) throw new Error(`${method} ${path}: ${JSON.stringify(answer.json)}`);
  await readConfig(answer.json.version as number);
  return answer;
}

/** Replaces the whole configuration. */
export async function configure(config: ConfigInput): Promise<void> {
  await change('PUT', '/config', config);
}

/** A Worker reads the directory every few seconds; this one reads it now. */
async function readConfig(version: number): Promise<void> {
  await isolateConfig.forPool(env, { waitUntil: () => {} }, version);
}

/** Calls a route of the Worker. A body that is no string is sent as JSON. */
export function call(path: string, init: CallInit = {}): Promise<Response> {
  const { json, ...rest } = init;
  return worker.fetch(`${ORIGIN}${path}`, {
    redirect: 'manual',
    ...rest,
    ...(json === undefined
      ? {}
      : {
          method: 'POST',
          body: JSON.stringify(json),
          headers: { 'content-type': 'application/json', ...rest.headers },
        }),
  } as RequestInit);
}

export interface CallInit extends Omit<RequestInit, 'headers'> {
  readonly json?: unknown;
  readonly headers?: Record<string, string>;
}

/** A chat call in OpenAI's dialect, labelled for the upstream's list of arrivals. */
export function chat(path: string, label: string, init: CallInit = {}): Promise<Response> {
  const messages = [{ role: 'user', content: label }];
  const json = { model: 'gpt-4o-mini', stream: true, messages };
  return call(path, { json, ...init });
}

/** Conditions are checked every 10 ms so many times, and then at every fifth of these moments. */
const OFTEN = 20;
const SELDOM = 5;

/**
 * Waits until `check` no longer throws; for as long as a machine takes that is busy with other things, but for less than a
 * lease lasts without a renewal: one that is never released must not pass as released.
 */
export function until(check: () => unknown, timeoutMs = 40_000): Promise<void> {
  let times = 0;
  let failure: unknown;
  return vi.waitFor(
    async () => {
      times += 1;
      // Most conditions hold soon. Others are checked less often, because each check costs as much as a call.
      if (times > OFTEN && times % SELDOM > 0) throw failure;
      try {
        await check();
      } catch (error) {
        failure = error;
        throw error;
      }
    },
    { timeout: timeoutMs, interval: 10 },
  );
}

/** A call that is under way, with a caller that reads it to its end unless it leaves. */
export interface WorkerOpenCall {
  readonly label: string;
  readonly response: Promise<Response>;
  /** `done`: the body ended well. `cut`: it broke off, or there never was an answer. */
  readonly end: Promise<'done' | 'cut'>;
  leave(): void;
}

/** Sends a chat call as a client that may leave at any time. */
export function open(path: string, label: string, init: CallInit = {}): WorkerOpenCall {
  const client = new AbortController();
  const response = chat(path, label, { ...init, signal: client.signal });
  const end = response
    .then((answer) => answer.arrayBuffer())
    .then(
      () => 'done' as const,
      () => 'cut' as const,
    );
  return { label, response, end, leave: () => client.abort() };
}
