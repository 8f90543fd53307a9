import type { AdminClient, AdminRequest } from '../../src/admin/client.ts';
import type { GroupStatus } from '../../src/contract/group-status.ts';
import {
  CANARY_GROUP_PREFIX,
  CANARY_MODEL_PREFIX,
  isCanaryGroup,
} from '../../src/config/document-changes.ts';
import { until } from './wait.ts';

/** Maximum time until closed calls have left the queue. */
const EMPTY_WITHIN_MS = 10_000;

export type GroupBody = AdminRequest<'PUT /groups/{name}'>['body'];

export interface CanaryGroup {
  readonly name: string;
  readonly model: string;
}

/** A group that grants nothing. Its calls wait or are rejected and never reach an upstream. */
export const CLOSED: GroupBody = {
  limits: { max_concurrency: 0 },
  queue: { max_length: 5_000, timeout_ms: 3_600_000 },
};

export function canaryGroup(run: string, label: string): CanaryGroup {
  const name = `${CANARY_GROUP_PREFIX}${run}-${label}`;
  return { name, model: `${CANARY_MODEL_PREFIX}${run}-${label}` };
}

/** An error of the admin API that ends the run. */
export class AdminRefused extends Error {
  override readonly name = 'AdminRefused';
}

export function bodyOf<Body>(
  what: string,
  answer:
    | { readonly ok: true; readonly body: Body }
    | { readonly ok: false; readonly status: number; readonly problem: unknown },
): Body {
  if (answer.ok) return answer.body;
  const { detail } = (answer.problem ?? {}) as { detail?: string };
  throw new AdminRefused(`${what}: ${answer.status} ${detail ?? ''}`.trim());
}

/** Creates a group that only calls with its model match. */
export async function makeGroup(
  admin: AdminClient,
  group: CanaryGroup,
  body: GroupBody,
): Promise<void> {
  const { models = [], ...match } = body.match ?? {};
  const document = { ...body, match: { ...match, models: [group.model, ...models] } };
  const answer = await admin('PUT /groups/{name}', {
    params: { name: group.name },
    body: document,
  });
  bodyOf(`Creating group \`${group.name}\``, answer);
}

/** Finds groups of earlier runs by their names and match rules. */
export async function leftovers(admin: AdminClient): Promise<string[]> {
  const page = bodyOf('Listing groups', await admin('GET /groups', { query: { limit: 1_000 } }));
  return page.groups.filter(isCanaryGroup).map(({ name }) => name);
}

export async function statusOf(admin: AdminClient, name: string): Promise<GroupStatus> {
  return bodyOf(
    `Reading the status of group \`${name}\``,
    await admin('GET /groups/{name}/status', { params: { name } }),
  );
}

/**
 * Removes a group whose calls were closed. Calls that still wait are cancelled first. Otherwise they would be routed
 * again, to a group with free slots.
 */
export async function removeGroup(admin: AdminClient, name: string): Promise<void> {
  const isEmpty = async (): Promise<boolean> => (await statusOf(admin, name)).queued === 0;
  // A failure to read the status does not prevent the removal.
  const emptied = await until(isEmpty, { withinMs: EMPTY_WITHIN_MS }).catch(() => null);
  if (emptied === null) await cancelWaiters(admin, name).catch(() => undefined);
  const answer = await admin('DELETE /groups/{name}', { params: { name } });
  if (!answer.ok && answer.status === 404) return;
  bodyOf(`Removing group \`${name}\``, answer);
}

async function cancelWaiters(admin: AdminClient, name: string): Promise<void> {
  const { waiters } = bodyOf(
    'Listing waiters',
    await admin('GET /groups/{name}/waiters', { params: { name } }),
  );
  for (const { ticket } of waiters) {
    await admin('DELETE /groups/{name}/waiters/{ticket}', { params: { name, ticket } });
  }
}
