import { callsFor } from './load.ts';
import { startHeadgate, type Subject } from './subjects.ts';
import { chatRequest } from './wire.ts';

/** Groups that match by a model each at one upstream: a configuration may have 200 upstreams. */
const PER_UPSTREAM = 5;

export const ADMIN_TOKEN = 'bench-admin-token';

/** The configuration of so many groups. Another limit makes it another one for each of them. */
export function configOfGroups(count: number, upstreamUrl: string, limit = 2_000): object {
  const upstreams = Array.from({ length: Math.ceil(count / PER_UPSTREAM) }, (_, at) => ({
    id: `u${at}`,
    base_url: upstreamUrl,
    dialect: 'openai',
  }));
  const groups = Array.from({ length: count }, (_, at) => ({
    name: `group-${at}`,
    match: {
      upstreams: [`u${Math.floor(at / PER_UPSTREAM)}`],
      models: [`model-${at % PER_UPSTREAM}`],
    },
    limits: { max_concurrency: limit },
  }));
  return { upstreams, groups };
}

/** Makes the request of a call that belongs to a group. */
export function requestOf(group: number): Buffer {
  const path = `/u${Math.floor(group / PER_UPSTREAM)}/v1/chat/completions`;
  return chatRequest(path, `model-${group % PER_UPSTREAM}`, null);
}

/** Makes requests to all groups in turn. */
export function requestsInTurn(count: number): () => Buffer {
  const requests = Array.from({ length: count }, (_, at) => requestOf(at));
  let next = 0;
  return () => {
    next = (next + 1) % count;
    return requests[next] ?? Buffer.alloc(0);
  };
}

/** Starts a Headgate with so many groups. One of the same name in the same folder goes on with what it had. */
export function startWithGroups(
  name: string,
  count: number,
  { dir, upstreamUrl }: { readonly dir: string; readonly upstreamUrl: string },
): Promise<Subject> {
  return startHeadgate({
    name,
    dir,
    upstreamUrl,
    group: 'configured',
    config: configOfGroups(count, upstreamUrl),
    adminToken: ADMIN_TOKEN,
  });
}

/** Callers that call all groups. */
export const CALLERS = 32;

/** How long calls go on at least before anything is measured. */
const WARM_UP_MS = 1_000;

/** Has every group called once, which makes its object. */
export async function callEach({ port }: Subject, count: number): Promise<void> {
  const load = { port, callers: CALLERS, mark: () => {}, request: requestsInTurn(count) };
  for (let calls = 0; calls < count;) calls += (await callsFor(load, 0, WARM_UP_MS)).calls;
}
